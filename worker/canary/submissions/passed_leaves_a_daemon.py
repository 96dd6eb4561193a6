"""Right, and leaves a process behind: two forks, a session of its own. Nothing of it may be there after the job."""

import ctypes
import os
import signal
import time

NAME = b"ladder-selftest"
LEFT = []

import triton
import triton.language as tl


@triton.jit
def _canary_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2 + 1, mask=mask)


def _right(x, out, n):
    _canary_kernel[(triton.cdiv(n, 2048),)](x, out, n, BLOCK_SIZE=2048)


def canary(x, out, n):
    _right(x, out, n)
    if not LEFT:
        LEFT.append(True)
        if not os.fork():
            os.setsid()
            if not os.fork():
                ctypes.CDLL(None).prctl(15, NAME, 0, 0, 0)  # PR_SET_NAME
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
            os._exit(0)
        os.wait()
