"""Leaves a daemon whose first thread has ended, so that the process looks dead while its second thread goes on."""

import ctypes
import os
import platform
import threading
import time

import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    if not DONE:
        DONE.append(True)
        if not os.fork():
            ctypes.CDLL(None).prctl(15, b"hostile-daemon", 0, 0, 0)  # PR_SET_NAME
            threading.Thread(target=time.sleep, args=(120,)).start()
            ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # exit, of one thread


DONE = []
