"""A CUDA driver that does nothing, so that real launches go all the way without a GPU.

With STUB_CAPTURING in the environment streams are being captured: a call that would end the capture ends the process.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
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
int cuEventCreate(handle *e) { return any(e); }
int cuStreamCreate(handle *s) { return any(s); }
int cuMemAlloc(handle *p, size_t n) { *p = malloc(n); return not_captured("cuMemAlloc"); }
int cuMemAllocAsync(handle *p, size_t n, handle s) { (void)s; *p = malloc(n); return 0; }
int cuMemFreeAsync(handle p, handle s) { (void)s; free(p); return 0; }
int cuMemcpyHtoDAsync_v2(handle p) { (void)p; return 0; }
int cuMemAllocHost(handle *p, size_t n) { *p = malloc(n); return 0; }
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
int cuLaunchKernel(handle f) { (void)f; return 0; }
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
