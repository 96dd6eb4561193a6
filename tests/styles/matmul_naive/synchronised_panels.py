# One launch for each panel of rows, with torch.cuda.synchronize after each; outer products are added up.
import torch
import triton
import triton.language as tl


@triton.jit
def panel_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rm = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    a_column = a_ptr + rm.to(tl.int64) * stride_am
    b_row = b_ptr + rn
    for _ in range(0, k):
        a = tl.load(a_column, mask=rm < m, other=0.0).to(tl.float32)
        b = tl.load(b_row, mask=rn < n, other=0.0).to(tl.float32)
        acc += a[:, None] * b[None, :]
        a_column += 1
        b_row += stride_bk
    c_ptrs = c_ptr + rm[:, None].to(tl.int64) * stride_cm + rn[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < m) & (rn[None, :] < n))


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    c_row_stride: int,
) -> None:
    panel = 512
    for first in range(0, m, panel):
        rows = min(panel, m - first)
        grid = (triton.cdiv(n, 64), triton.cdiv(rows, 16))
        panel_kernel[grid](
            a[first:],
            b,
            c[first:],
            rows,
            n,
            k,
            a_row_stride,
            b_row_stride,
            c_row_stride,
            BLOCK_M=16,
            BLOCK_N=64,
            num_warps=8,
        )
        if a.is_cuda:
            torch.cuda.synchronize()
