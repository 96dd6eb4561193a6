"""Vector add, first milestone: right, with a run of 32 neighbouring elements for every lane.

That is how one divides the work between the cores of a processor. On a GPU the 32 lanes of a warp then load from 32
places that lie 32 elements apart: each load fetches a whole sector of 32 bytes for every lane, of which it uses one
element now. The others are used later, if they are still in the cache then.
"""

import torch
import triton
import triton.language as tl

LANES = 256
RUN = 32


@triton.jit
def _vector_add_kernel(x_ptr, y_ptr, out_ptr, n, LANES: tl.constexpr, RUN: tl.constexpr):
    first = (tl.program_id(axis=0).to(tl.int64) * LANES + tl.arange(0, LANES)) * RUN
    for step in range(RUN):
        offsets = first + step
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    grid = (triton.cdiv(n, LANES * RUN),)
    _vector_add_kernel[grid](x, y, out, n, LANES=LANES, RUN=RUN, num_warps=8)
