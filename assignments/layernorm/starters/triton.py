"""LayerNorm and RMSNorm: every row is brought to mean zero and variance one, then scaled and shifted by column."""

import torch
import triton
import triton.language as tl


@triton.jit
def _layernorm_kernel(
    x_ptr,  # input matrix
    weight_ptr,  # the factor for each column
    bias_ptr,  # the value added to each column
    out_ptr,  # output matrix
    cols,  # how many columns both matrices have
    x_row_stride,  # elements from one row of x to the next
    out_row_stride,  # elements from one row of out to the next
    eps,  # added to the variance, under the root
    center,  # 1: LayerNorm; 0: RMSNorm, whose mean counts as 0
    BLOCK_SIZE: tl.constexpr,  # a power of two that is at least `cols`
):
    # One program handles one row, and holds all of it at once.
    row = tl.program_id(axis=0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < cols

    x = tl.load(x_ptr + row * x_row_stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / cols
    # Your part: what remains of this difference when the mean is 10000 and the deviation 1? And where is `center`?
    variance = tl.sum(x * x, axis=0) / cols - mean * mean
    out = (x - mean) * tl.rsqrt(variance + eps)

    # Your part: weight and bias.
    tl.store(out_ptr + row * out_row_stride + columns, out, mask=mask)


def layernorm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    out: torch.Tensor,
    rows: int,
    cols: int,
    x_row_stride: int,
    out_row_stride: int,
    eps: float,
    center: int,
) -> None:
    # The judge calls this function. It writes its answer into `out`; what it returns is ignored.
    block_size = triton.next_power_of_2(cols)
    _layernorm_kernel[(rows,)](
        x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center, BLOCK_SIZE=block_size
    )
