"""Sum and maximum of a vector: blocks, and atomics between them."""

import torch
import triton
import triton.language as tl


@triton.jit
def reduce_kernel(x_ptr, total_ptr, largests_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr, tl.sum(x, axis=0))
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(largests_ptr + tl.program_id(0), tl.max(x, axis=0))


@triton.jit
def largest_kernel(largests_ptr, largest_ptr, count, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    largests = tl.load(largests_ptr + lanes, mask=lanes < count, other=-float("inf"))
    tl.store(largest_ptr, tl.max(largests, axis=0).to(largest_ptr.dtype.element_ty))


def reduce(x, total, largest, n):
    total.zero_()
    programs = triton.cdiv(n, 1024)
    largests = torch.empty(programs, dtype=torch.float32, device=x.device)
    reduce_kernel[(programs,)](x, total, largests, n, BLOCK=1024)
    largest_kernel[(1,)](largests, largest, programs, BLOCK=triton.next_power_of_2(programs))
