"""Starts as many processes as it may, each with a context of the GPU, so that nobody else finds room for one.

Class F4, node killing: the reference's runner, or the next, would not start."""

import subprocess
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


CODE = "import ctypes, time; d = ctypes.CDLL('libcuda.so.1'); d.cuInit(0); c = ctypes.c_void_p(); print(d.cuDevicePrimaryCtxRetain(ctypes.byref(c), 0)); time.sleep(60)"
CHILDREN = []
for _ in range(24):
    try:
        CHILDREN.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", CODE], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    except OSError:
        break
time.sleep(4)


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
