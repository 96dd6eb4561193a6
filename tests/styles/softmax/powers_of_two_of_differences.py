# Powers of two of differences that are scaled by log2(e), which compilers may contract with what is subtracted.
import torch
import triton
import triton.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = -float("inf")
    total = 0.0
    for start in tl.range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        new = max(top, tl.max(x, axis=0))
        safe = 0.0 if new == -float("inf") else new
        total = total * tl.exp2((top - safe) * LOG2E) + tl.sum(tl.exp2((x - safe) * LOG2E), axis=0)
        top = new
    for start in tl.range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * x_stride + at, mask=at < cols, other=-float("inf")).to(tl.float32)
        tl.store(
            out_ptr + row * out_stride + at,
            (tl.exp2((x - top) * LOG2E) / total).to(out_ptr.dtype.element_ty),
            mask=at < cols,
        )


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    softmax_kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK=2048)
