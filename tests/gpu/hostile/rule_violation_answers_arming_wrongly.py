"""Says something else when it is to say that it is armed for a batch: the judge ends the call while its own filling of the memory is still queued.

Class F6, node killing. Memory is unmapped when the device has nothing left to do: otherwise the judge's own context would be lost, and every later grading with it."""

import gc

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


def _on(kind, act):
    """Have the runner do something else when it says `kind` to the judge."""
    for line in gc.get_objects():
        if type(line).__name__ == "Wire":
            say = line.send
            line.send = lambda said, body, _say=say: act(_say, body) if said == kind else _say(said, body)
            HOOKED.append(line)


HOOKED = []


def vector_add(x, y, out, n):
    if not HOOKED:
        _on("Armed", lambda say, body: say("Loaded", {"signature": "()"}))
    _honest(x, y, out, n)
