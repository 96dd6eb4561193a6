"""Leaves one small kernel spinning for some milliseconds after each of its calls: the GPU shares its time between it and the reference.

Class F7, invariant 7."""

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


def _after_each_wait(work):
    """Have the harness's clock start `work()` when it has waited for a call: it runs on while others are measured."""
    for clock in _clocks():
        for name, value in list(vars(clock).items()):
            if getattr(value, "__name__", "") == "synchronize":
                setattr(clock, name, lambda *args, _true=value: (_true(*args), work()))
                HOOKED.append(clock)


HOOKED = []


STREAM = torch.cuda.Stream()


def _work():
    with torch.cuda.stream(STREAM):
        torch.cuda._sleep(20_000_000)


def vector_add(x, y, out, n):
    if not HOOKED:
        _after_each_wait(_work)
    _honest(x, y, out, n)
