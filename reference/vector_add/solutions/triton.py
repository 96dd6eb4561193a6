"""Vector add, the staff kernel: out[i] = x[i] + y[i].

One pass over memory: n·e bytes read twice, n·e written, one addition per 3·e bytes. Nothing is reused, so the time is
the traffic divided by the bandwidth, and all that a kernel can do is to keep enough wide loads in flight. Each
program adds one block; on a GPU a block of 2048 over 8 warps gives a thread eight elements of each input, two 16-byte
loads per float32 vector and one per 16-bit vector.

Source: the first Triton tutorial's decomposition (Tillet, Kung and Cox, "Triton: an intermediate language and compiler
for tiled neural network computations", MAPL 2019), written anew.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _vector_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    # 64-bit offsets: on a GPU the vectors may have more than 2**31 elements.
    offsets = tl.program_id(axis=0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    # The interpreter pays per program, a GPU per byte.
    block_size = 2048 if x.is_cuda else 32768
    grid = (triton.cdiv(n, block_size),)
    _vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size, num_warps=8)
