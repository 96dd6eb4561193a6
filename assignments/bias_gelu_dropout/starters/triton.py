"""Bias, GELU and dropout: out = keep * gelu(x + bias) / (1 - p), and the mask of what is kept."""

import torch
import triton
import triton.language as tl


# The seed changes with every call: Triton must not compile again when it happens to be a multiple of 16.
@triton.jit(do_not_specialize=["seed"])
def _bias_gelu_dropout_kernel(
    x_ptr,  # rows · cols elements
    bias_ptr,  # one for each column
    out_ptr,
    mask_ptr,  # one byte for each element: 1 where it is kept
    size,  # rows · cols
    cols,
    p,  # the probability of being dropped, a number
    seed,  # the key of the random numbers
    BLOCK_SIZE: tl.constexpr,  # how many elements a program handles
):
    element = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    inside = element < size
    x = tl.load(x_ptr + element, mask=inside, other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + element % cols, mask=inside, other=0.0).to(tl.float32)
    gelu = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))

    # Four words of 32 bits for the counter of this element's pack: eight numbers of 16 bits.
    first, second, third, fourth = tl.randint4x(seed, element // 8)
    # Your part: these are numbers of some element of the pack. Take this one's, and keep what is not less than p · 65536.
    keep = (first & 0xFFFF) >= 0

    # Your part: what is dropped is zero, and what is kept is divided by 1 - p.
    tl.store(out_ptr + element, gelu.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(mask_ptr + element, keep.to(tl.uint8), mask=inside)


def bias_gelu_dropout(
    x: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    mask: torch.Tensor,
    rows: int,
    cols: int,
    p: float,
    seed: int,
) -> None:
    # The judge calls this function. It writes its answers into `out` and `mask`; what it returns is ignored.
    size = rows * cols
    grid = (triton.cdiv(size, 1024),)
    _bias_gelu_dropout_kernel[grid](x, bias, out, mask, size, cols, p, seed, BLOCK_SIZE=1024)
