# The fused softmax of tutorials: programs loop over whole rows, and the number of columns is a constexpr of the kernel.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(
    out_ptr,
    x_ptr,
    out_stride,
    x_stride,
    n_rows,
    N_COLS: tl.constexpr,
    BLOCK: tl.constexpr,
    NUM_PROGRAMS: tl.constexpr,
):
    col = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), n_rows, NUM_PROGRAMS):
        x = tl.load(x_ptr + tl.cast(row, tl.int64) * x_stride + col, mask=col < N_COLS, other=-float("inf"))
        x = x.to(tl.float32)
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
        at = out_ptr + tl.cast(row, tl.int64) * out_stride + col
        tl.store(at, y.to(out_ptr.dtype.element_ty), mask=col < N_COLS)


@triton.jit
def softmax_blocks(out_ptr, x_ptr, out_stride, x_stride, N_COLS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    peak = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, N_COLS, BLOCK):
        x = tl.load(x_ptr + row * x_stride + start + col, mask=start + col < N_COLS, other=-float("inf"))
        peak = tl.maximum(peak, x.to(tl.float32))
    m = tl.max(peak, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N_COLS, BLOCK):
        x = tl.load(x_ptr + row * x_stride + start + col, mask=start + col < N_COLS, other=-float("inf"))
        total += tl.exp(x.to(tl.float32) - m)
    s = tl.sum(total, axis=0)
    for start in range(0, N_COLS, BLOCK):
        x = tl.load(x_ptr + row * x_stride + start + col, mask=start + col < N_COLS, other=-float("inf"))
        y = tl.exp(x.to(tl.float32) - m) / s
        tl.store(out_ptr + row * out_stride + start + col, y.to(out_ptr.dtype.element_ty), mask=start + col < N_COLS)


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    if cols > 16384:
        softmax_blocks[(rows,)](out, x, out_row_stride, x_row_stride, N_COLS=cols, BLOCK=8192, num_warps=8)
        return
    block = triton.next_power_of_2(cols)
    warps = 4 if block < 2048 else (8 if block < 8192 else 16)
    sms = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 2
    programs = min(rows, 4 * sms)
    softmax_rows[(programs,)](
        out, x, out_row_stride, x_row_stride, rows, N_COLS=cols, BLOCK=block, NUM_PROGRAMS=programs, num_warps=warps
    )
