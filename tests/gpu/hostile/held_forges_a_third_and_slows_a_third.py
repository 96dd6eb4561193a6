"""Forges its own time in a third of the pairs and slows the reference in another third: the median of its times is true, so is that of the reference's, and the median of the ratios is neither.

Class A8 and F7. What is bounded has to be the number that ranks: the ratio."""

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


HOST = torch.empty(2**27, dtype=torch.uint8, pin_memory=True)
DEVICE = torch.empty(2**27, dtype=torch.uint8, device="cuda")
STREAMS = [torch.cuda.Stream(), torch.cuda.Stream()]
CALLS, HOOKED = [], []


def _copies():
    for _ in range(16):
        with torch.cuda.stream(STREAMS[0]):
            HOST.copy_(DEVICE, non_blocking=True)
        with torch.cuda.stream(STREAMS[1]):
            DEVICE.copy_(HOST, non_blocking=True)


def _hook():
    for clock in _clocks():
        for name, value in list(vars(clock).items()):
            if getattr(value, "__name__", "") == "synchronize":
                setattr(clock, name, lambda *args, _true=value: (_true(*args), _copies() if len(CALLS) % 6 == 2 else None))
            if getattr(value, "__name__", "") == "elapsed_time":
                setattr(clock, name, lambda *events, _true=value: _true(*events) * (0.8 if len(CALLS) % 6 in (4, 5) else 1.0))
        HOOKED.append(clock)


def vector_add(x, y, out, n):
    if not HOOKED:
        _hook()
    CALLS.append(n)
    _honest(x, y, out, n)
