"""Leaves a process of its own that holds a context of the GPU and computes on.

Class F3. The whole tree ends with the runner, and its contexts with it."""

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


CODE = """
import ctypes, os, torch
ctypes.CDLL(None).prctl(15, b"hostile-daemon", 0, 0, 0)
if os.fork(): os._exit(0)
os.setsid()
torch.cuda.init()
while True: torch.cuda._sleep(100_000_000); torch.cuda.synchronize()
"""
STARTED = []


def vector_add(x, y, out, n):
    if not STARTED:
        STARTED.append(subprocess.Popen([sys.executable, "-c", CODE]))
        time.sleep(3)
    _honest(x, y, out, n)
