"""Returns at once; a thread launches the kernel when the harness waits for the device, and hopes that it is done before anybody looks.

Class A5. What is not there when the snapshot is taken is wrong; what is there was on the sealed clock."""

import queue
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


WORK = queue.SimpleQueue()


def _later():
    while True:
        work = WORK.get()
        time.sleep(0.00015)
        with torch.cuda.stream(STREAM):
            _honest(*work)


STREAM = torch.cuda.Stream()
threading.Thread(target=_later, daemon=True).start()


def vector_add(x, y, out, n):
    WORK.put((x, y, out, n))
