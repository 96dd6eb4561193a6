"""A thread writes one nanosecond over the runner's own control word, over and over.

Class A9. The number is a claim; the sealed clock bounds it."""

import gc
import mmap
import threading
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


def _keep_it_short():
    views = [memoryview(item) for item in gc.get_objects() if type(item) in (mmap.mmap, memoryview)]
    words = [view.cast("B") for view in views if view.nbytes == 4096 and not view.readonly]
    while True:
        for word in words:
            word[8:16] = b"\x01" + bytes(7)
        time.sleep(0.00002)


STARTED = []


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
    if not STARTED:
        STARTED.append(threading.Thread(target=_keep_it_short, daemon=True))
        STARTED[0].start()
