"""Numerics first: every lane keeps a Kahan sum with its correction, and lanes are folded in float64."""

import torch
import triton
import triton.language as tl


@triton.jit
def _kahan_kernel(x_ptr, sums_ptr, maxima_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    lane = tl.arange(0, BLOCK)

    running = tl.zeros((BLOCK,), dtype=tl.float32)
    lost = tl.zeros((BLOCK,), dtype=tl.float32)
    top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(pid * BLOCK, n, step):
        inside = start + lane < n
        value = tl.load(x_ptr + start + lane, mask=inside, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, value)
        value = tl.where(inside, value, 0.0)
        # What the last addition lost is taken off the next summand.
        corrected = value - lost
        new = running + corrected
        lost = (new - running) - corrected
        running = new
    exact = running.to(tl.float64) - lost.to(tl.float64)
    tl.store(sums_ptr + pid, tl.sum(exact, axis=0))
    tl.store(maxima_ptr + pid, tl.max(top, axis=0))


@triton.jit
def _fold_kernel(sums_ptr, maxima_ptr, total_ptr, largest_ptr, count, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + lane, mask=lane < count, other=0.0)
    maxima = tl.load(maxima_ptr + lane, mask=lane < count, other=float("-inf"))
    tl.store(total_ptr, tl.sum(sums, axis=0).to(tl.float32))
    tl.store(largest_ptr, tl.max(maxima, axis=0).to(largest_ptr.dtype.element_ty))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    block = 2048
    most = 8
    if x.is_cuda:
        most = 4 * torch.cuda.get_device_properties(x.device).multi_processor_count
    programs = min(triton.cdiv(n, block), most)
    sums = torch.empty(programs, dtype=torch.float64, device=x.device)
    maxima = torch.empty(programs, dtype=torch.float32, device=x.device)
    _kahan_kernel[(programs,)](x, sums, maxima, n, BLOCK=block, num_warps=8)
    _fold_kernel[(1,)](sums, maxima, total, largest, programs, BLOCK=triton.next_power_of_2(programs))
