"""Reduction, the staff kernel: total = Σ x[i], largest = max x[i].

n·e bytes are read once, for both answers, so the time is the traffic divided by the bandwidth. Stage one: a fixed
number of programs strides over x; each keeps a running sum and maximum in every lane of a block, so that the loop has
no reduction in it, and folds the lanes once, at its end: a tree of shuffles inside each warp, then shared memory
between warps. Stage two: one program folds the programs' partial results. No atomics, so every call gives the same
bits; and chains of additions stay short, n / (programs · lanes).

Source: Harris, "Optimizing parallel reduction in CUDA", NVIDIA 2007, in Triton's blocks.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _partial_kernel(x_ptr, totals_ptr, largests_ptr, n, BLOCK_SIZE: tl.constexpr):
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    largest = tl.full((BLOCK_SIZE,), -float("inf"), tl.float32)
    lane = tl.arange(0, BLOCK_SIZE)
    full = n // BLOCK_SIZE
    for block in range(tl.program_id(axis=0), full, tl.num_programs(axis=0)):
        x = tl.load(x_ptr + tl.cast(block, tl.int64) * BLOCK_SIZE + lane).to(tl.float32)
        total += x
        largest = tl.maximum(largest, x)
    if tl.program_id(axis=0) == full % tl.num_programs(axis=0):
        offsets = tl.cast(full, tl.int64) * BLOCK_SIZE + lane
        # Lanes beyond the end must change neither answer: zero for the sum, -inf for the maximum.
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=-float("inf")).to(tl.float32)
        total += tl.where(offsets < n, x, 0.0)
        largest = tl.maximum(largest, x)
    tl.store(totals_ptr + tl.program_id(axis=0), tl.sum(total, axis=0))
    tl.store(largests_ptr + tl.program_id(axis=0), tl.max(largest, axis=0))


@triton.jit
def _last_kernel(totals_ptr, largests_ptr, total_ptr, largest_ptr, partials, BLOCK_SIZE: tl.constexpr):
    lane = tl.arange(0, BLOCK_SIZE)
    total = tl.sum(tl.load(totals_ptr + lane, mask=lane < partials, other=0.0), axis=0)
    largest = tl.max(tl.load(largests_ptr + lane, mask=lane < partials, other=-float("inf")), axis=0)
    tl.store(total_ptr, total)
    tl.store(largest_ptr, largest.to(largest_ptr.dtype.element_ty))


def reduce(x: torch.Tensor, total: torch.Tensor, largest: torch.Tensor, n: int) -> None:
    if x.is_cuda:
        block_size, programs, warps = 4096, 16 * torch.cuda.get_device_properties(x.device).multi_processor_count, 8
    else:
        block_size, programs, warps = 65536, 4, 4
    programs = min(programs, triton.cdiv(n, block_size))
    totals = torch.empty(programs, dtype=torch.float32, device=x.device)
    largests = torch.empty(programs, dtype=torch.float32, device=x.device)
    _partial_kernel[(programs,)](x, totals, largests, n, BLOCK_SIZE=block_size, num_warps=warps)
    _last_kernel[(1,)](totals, largests, total, largest, programs, BLOCK_SIZE=triton.next_power_of_2(programs))
