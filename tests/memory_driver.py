"""A CUDA driver without a GPU whose memory is real: what a launch gets is written down, and kernels can be played."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef void *handle;
typedef unsigned long long u64;
static u64 starts[4096], sizes[4096];
static int count;
int cuInit(unsigned flags) { return flags; }
int cuDeviceGet(int *d, int i) { *d = i; return 0; }
int cuDevicePrimaryCtxRetain(handle *c, int d) { *c = (handle)(8ul + d); return 0; }
int cuCtxSetCurrent(handle c) { return c == (handle)8 ? 0 : 201; }
int cuGetErrorString(int e, const char **s) { *s = e == 700 ? "illegal address" : "?"; return 0; }
int cuMemAlloc_v2(u64 *p, size_t n) {
    void *memory = aligned_alloc(256, (n + 255) / 256 * 256);
    *p = starts[count] = (u64)memory;
    sizes[count++] = n;
    return 0;
}
static int owner(u64 address) {
    for (int i = 0; i < count; i++) if (address >= starts[i] && address < starts[i] + sizes[i]) return i;
    return -1;
}
int cuMemFree_v2(u64 p) {
    int i = owner(p);
    if (i < 0 || starts[i] != p) return 1;
    free((void *)p);
    count--;
    starts[i] = starts[count];
    sizes[i] = sizes[count];
    return 0;
}
int cuMemcpyHtoD_v2(u64 to, const void *from, size_t n) { memcpy((void *)to, from, n); return 0; }
int cuMemcpyDtoH_v2(void *to, u64 from, size_t n) { memcpy(to, (void *)from, n); return 0; }
int cuModuleLoadData(handle *m, const void *image) { *m = (handle)image; return memcmp(image, "\177ELF", 4) ? 200 : 0; }
int cuModuleGetFunction(handle *f, handle m, const char *name) { (void)m; *f = strdup(name); return 0; }
int cuCtxSynchronize(void) { return 0; }
/* The kernel's name says what it does to the first byte of each array: "add" counts it up, others go wrong. */
int cuLaunchKernel(handle f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, handle stream, void **arguments, void **extra) {
    FILE *log = fopen(getenv("LAUNCHES"), "a");
    fprintf(log, "%s %u %u %u %u %u %u %u %d", (char *)f, x, y, z, bx, by, bz, shared, !stream && !extra);
    for (void **a = arguments; *a; a++) {
        u64 word = *(u64 *)*a;
        int i = owner(word);
        fprintf(log, i < 0 ? " %llx" : " array", word);
        if (i >= 0 && !strcmp((char *)f, "add")) ++*(char *)word;
        if (i >= 0 && !strcmp((char *)f, "leaves")) ((char *)starts[i])[sizes[i] - 1] = 0;
    }
    fprintf(log, "\n");
    fclose(log);
    if (!strcmp((char *)f, "hangs")) for (;;) pause();
    if (!strcmp((char *)f, "crashes")) raise(SIGSEGV);
    return strcmp((char *)f, "faults") ? 0 : 700;
}
"""


def build(folder: Path) -> Path:
    """Compile it; the folder it is in belongs in LD_LIBRARY_PATH."""
    source = folder / "driver.c"
    source.write_text(_SOURCE, encoding="utf-8")
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / "libcuda.so.1"), str(source)]
    subprocess.run(command, check=True)
    return folder
