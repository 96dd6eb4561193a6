"""Reports that every call took no time: a ratio of 0.

Class A9. A number that is no time must be neither a score nor a failure of ours."""

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


def _clocks():
    """What the harness times calls with, found among all objects of this process."""
    return [item for item in gc.get_objects() if type(item).__name__ == "EventClock"]


def _forge(scale):
    """Have the harness's clock multiply what it reads by what `scale()` says."""
    for clock in _clocks():
        for name, value in list(vars(clock).items()):
            if getattr(value, "__name__", "") == "elapsed_time":
                setattr(clock, name, lambda *events, _true=value: _true(*events) * scale())
                FORGED.append(clock)


FORGED = []


def vector_add(x, y, out, n):
    if not FORGED:
        _forge(lambda: 0.0)
    _honest(x, y, out, n)
