# triton.heuristics choose block and warps from the number of columns; a row that fits the block stays in registers.
import torch
import triton
import triton.language as tl


def _block(args):
    return min(16384, triton.next_power_of_2(args["cols"]))


@triton.heuristics(
    {
        "BLOCK": _block,
        "FITS": lambda args: args["cols"] <= 16384,
        "num_warps": lambda args: min(16, max(1, _block(args) // 256)),
    }
)
@triton.jit
def layernorm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    out_ptr,
    cols,
    x_stride,
    out_stride,
    eps,
    center,
    BLOCK: tl.constexpr,
    FITS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    out_ptr += row * out_stride
    lane = tl.arange(0, BLOCK)
    if FITS:
        x = tl.load(x_ptr + lane, mask=lane < cols, other=0.0).to(tl.float32)
        mean = tl.where(center != 0, tl.sum(x, axis=0) / cols, 0.0)
        rest = tl.where(lane < cols, x - mean, 0.0)
        scale = tl.rsqrt(tl.sum(rest * rest, axis=0) / cols + eps)
        w = tl.load(w_ptr + lane, mask=lane < cols, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + lane, mask=lane < cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + lane, (rest * scale * w + b).to(out_ptr.dtype.element_ty), mask=lane < cols)
    else:
        sums = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            sums += tl.load(x_ptr + start + lane, mask=start + lane < cols, other=0.0).to(tl.float32)
        mean = tl.where(center != 0, tl.sum(sums, axis=0) / cols, 0.0)
        squares = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            x = tl.load(x_ptr + start + lane, mask=start + lane < cols, other=0.0).to(tl.float32)
            rest = tl.where(start + lane < cols, x - mean, 0.0)
            squares += rest * rest
        scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
        for start in range(0, cols, BLOCK):
            inside = start + lane < cols
            x = tl.load(x_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            b = tl.load(b_ptr + start + lane, mask=inside, other=0.0).to(tl.float32)
            y = (x - mean) * scale * w + b
            tl.store(out_ptr + start + lane, y.to(out_ptr.dtype.element_ty), mask=inside)


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
    layernorm_kernel[(rows,)](x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center)
