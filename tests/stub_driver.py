"""A CUDA driver that does nothing, so that real launches go all the way without a GPU.

With STUB_CAPTURING in the environment streams are being captured: a call that would end the capture ends the process.
Events happen when the device comes to them: after as many further launches as STUB_BEHIND says. Only then the memory
that a copy was to read is read; what a kernel would find in its tables is appended to the file that STUB_TABLES names,
a line a launch: its stream, the number of copies since the launch before, and the words of the copy, in hexadecimal.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void *handle;
static int capturing(void) { return getenv("STUB_CAPTURING") != 0; }
static int not_captured(const char *what) {
    if (capturing()) { fprintf(stderr, "%s ends a capture\n", what); abort(); }
    return 0;
}
static int any(void **out) { *out = (void *)8; return 0; }
int cuDriverGetVersion(int *v) { *v = 13030; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDeviceGet(int *d, int i) { (void)i; *d = 0; return 0; }
int cuCtxGetDevice(int *d) { *d = 0; return 0; }
int cuDeviceGetAttribute(int *v, int what, int d) { (void)d; *v = what == 75 ? 9 : what == 76 ? 0 : 1024; return 0; }
int cuCtxGetCurrent(handle *c) { return any(c); }
int cuCtxGetId(handle c, unsigned long long *i) { (void)c; *i = 1; return 0; }
int cuDevicePrimaryCtxRetain(handle *c, int d) { (void)d; return any(c); }
int cuPointerGetAttribute(void *v, int what, unsigned long p) {
    (void)p;
    if (what == 9) *(int *)v = 0; else *(void **)v = (void *)8;
    return 0;
}
int cuLibraryLoadData(handle *l) { return any(l); }
int cuModuleLoadData(handle *m) { return any(m); }
int cuModuleGetFunction(handle *f) { return any(f); }
int cuLibraryGetKernel(handle *k) { return any(k); }
int cuKernelGetFunction(handle *f) { return any(f); }
int cuStreamGetCtx(handle s, handle *c) { (void)s; return any(c); }
int cuStreamGetCtx_v2(handle s, handle *c, handle *g) { (void)s; if (g) *g = 0; return any(c); }
int cuGetErrorString(int e, const char **s) { (void)e; *s = "none"; return 0; }
int cuStreamCreate(handle *s) { return any(s); }
int cuMemAllocAsync(handle *p, size_t n, handle s) { (void)s; *p = malloc(n); return 0; }
int cuMemFreeAsync(handle p, handle s) { (void)s; free(p); return 0; }
int cuEventElapsedTime(float *t) { *t = 1.0f; return 0; }
int cuStreamIsCapturing(handle s, int *state) { (void)s; *state = capturing(); return 0; }
int cuStreamGetCaptureInfo_v2(handle s, int *state) { (void)s; *state = 0; return 0; }
int cuStreamGetCaptureInfo_v3(handle s, int *state) { (void)s; *state = 0; return 0; }
static int nothing(void) { return 0; }
int cuInit(unsigned flags) { (void)flags; return 0; }
int cuCtxSetCurrent(handle c) { (void)c; return 0; }
int cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return 0; }
int cuStreamGetPriority(handle s, int *p) { (void)s; *p = 0; return 0; }
int cuStreamQuery(handle s) { (void)s; return not_captured("cuStreamQuery"); }
int cuStreamSynchronize(handle s) { (void)s; return not_captured("cuStreamSynchronize"); }
int cuStreamDestroy_v2(handle s) { (void)s; return 0; }
int cuModuleUnload(handle m) { (void)m; return 0; }
/* What the device has to do: copies, launches and events of all streams, in the order in which they were enqueued. */
typedef struct { int kind; handle a, b, stream; size_t n; } todo;
typedef struct { int pending; } event;
enum { COPY, LAUNCH, EVENT };
static todo queue[1 << 16];
static unsigned head, tail;
static int launches_waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void step(void) {
    todo one = queue[head++ % (1 << 16)];
    if (one.kind == COPY) memcpy(one.a, one.b, one.n);
    if (one.kind == EVENT) --((event *)one.a)->pending;
    if (one.kind == LAUNCH) {
        launches_waiting--;
        const char *tables = getenv("STUB_TABLES");
        if (tables && one.b) {
            FILE *file = fopen(tables, "a");
            fprintf(file, "%lx %lx", (unsigned long)one.stream, (unsigned long)one.n);
            unsigned long *words = one.a;
            for (size_t i = 0; i < (size_t)one.b / 8; i++) fprintf(file, " %lx", words[i]);
            fprintf(file, "\n");
            fclose(file);
        }
    }
}
static void enqueue(todo one) {
    const char *behind = getenv("STUB_BEHIND");
    queue[tail++ % (1 << 16)] = one;
    launches_waiting += one.kind == LAUNCH;
    while (head != tail && launches_waiting > (behind ? atoi(behind) : 0)) step();
    while (!behind && head != tail) step();
}
static __thread struct { handle to; size_t bytes; int count; } copied;
int cuMemAlloc(handle *p, size_t n) { *p = malloc(n); return not_captured("cuMemAlloc"); }
int cuMemAllocHost(handle *p, size_t n) { *p = malloc(n); return 0; }
int cuMemAlloc_v2(handle *p, size_t n) { *p = malloc(n); return not_captured("cuMemAlloc"); }
int cuMemAllocHost_v2(handle *p, size_t n) { *p = malloc(n); return not_captured("cuMemAllocHost"); }
int cuMemcpyHtoDAsync_v2(handle to, handle from, size_t n, handle s) {
    pthread_mutex_lock(&lock);
    enqueue((todo){COPY, to, from, s, n});
    pthread_mutex_unlock(&lock);
    copied.to = to, copied.bytes = n, copied.count++;
    return not_captured("cuMemcpyHtoDAsync");
}
int cuLaunchKernel(handle f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, handle s) {
    pthread_mutex_lock(&lock);
    enqueue((todo){LAUNCH, copied.to, (handle)copied.bytes, s, copied.count});
    pthread_mutex_unlock(&lock);
    copied.bytes = copied.count = 0;
    return 0;
}
int cuEventCreate(handle *e) { *e = calloc(1, sizeof(event)); return 0; }
int cuEventRecord(handle e, handle s) {
    pthread_mutex_lock(&lock);
    ++((event *)e)->pending;
    enqueue((todo){EVENT, e, 0, s, 0});
    pthread_mutex_unlock(&lock);
    return not_captured("cuEventRecord");
}
int cuEventQuery(handle e) {
    pthread_mutex_lock(&lock);
    int pending = ((event *)e)->pending;
    pthread_mutex_unlock(&lock);
    not_captured("cuEventQuery");
    return pending ? 600 : 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
    static __thread int own;
    int old = own;
    own = *mode, *mode = old;
    return 0;
}
int cuGetProcAddress_v2(const char *name, void **f, int v, unsigned long flags, int *s) {
    (void)v; (void)flags;
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
    *f = found ? found : (void *)nothing;
    if (s) *s = 0;
    return 0;
}
"""


def build(folder: Path) -> Path:
    """Compile the stub; the folder it is in belongs in LD_LIBRARY_PATH."""
    source = folder / "stub.c"
    source.write_text(_SOURCE)
    command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(folder / "libcuda.so.1"), str(source)]
    subprocess.run(command, check=True)
    return folder
