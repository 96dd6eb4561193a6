"""SAXPY, the staff kernel: out[i] = a·x[i] + y[i].

3·n·e bytes for 2·n operations, so the time is the traffic divided by the bandwidth. The kernel walks over the vectors
in steps of the whole grid, so it is right for any grid, and the caller chooses by the machine. An H200 starts programs
so cheaply that one per block is best: a loop of many rounds, whose loads wait for the stores of the round before, costs
1 to 5 %. The interpreter wants few programs with large blocks. All blocks but the last are full; only the last needs a
mask, so the loop has none and its loads are 16 bytes wide.

Source: the grid-stride loop as NVIDIA's developer blog described it in 2013 (Mark Harris, "CUDA Pro Tip: Write Flexible
Kernels with Grid-Stride Loops"), in Triton's blocks.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _saxpy_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    full = n // BLOCK_SIZE
    lane = tl.arange(0, BLOCK_SIZE)
    for block in range(tl.program_id(axis=0), full, tl.num_programs(axis=0)):
        # 64-bit offsets: on a GPU the vectors may have more than 2**31 elements.
        offsets = tl.cast(block, tl.int64) * BLOCK_SIZE + lane
        x = tl.load(x_ptr + offsets).to(tl.float32)
        y = tl.load(y_ptr + offsets).to(tl.float32)
        tl.store(out_ptr + offsets, (a * x + y).to(out_ptr.dtype.element_ty))
    if tl.program_id(axis=0) == full % tl.num_programs(axis=0):
        offsets = tl.cast(full, tl.int64) * BLOCK_SIZE + lane
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
        tl.store(out_ptr + offsets, (a * x + y).to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    if x.is_cuda:
        block_size, programs, warps = 2048, triton.cdiv(n, 2048), 4
    else:
        block_size, programs, warps = 16384, 4, 4
    grid = (min(programs, triton.cdiv(n, block_size)),)
    _saxpy_kernel[grid](a, x, y, out, n, BLOCK_SIZE=block_size, num_warps=warps)
