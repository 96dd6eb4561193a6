"""Heuristics compute the block size and whether a mask is needed at all; full blocks run without one."""

import torch
import triton
import triton.language as tl


def _block_size(args):
    n = args["n"]
    if n <= 4096:
        return 512
    if n <= 1 << 20:
        return 1024
    return 2048


@triton.heuristics(
    {
        "BLOCK_SIZE": _block_size,
        "EVEN_N": lambda args: args["n"] % _block_size(args) == 0,
        "num_warps": lambda args: 4 if args["n"] <= 1 << 20 else 8,
    }
)
@triton.jit
def _axpy_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr, EVEN_N: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    if EVEN_N:
        x = tl.load(x_ptr + offs)
        y = tl.load(y_ptr + offs)
    else:
        x = tl.load(x_ptr + offs, mask=offs < n)
        y = tl.load(y_ptr + offs, mask=offs < n)
    res = tl.fma(x.to(tl.float32), tl.zeros((BLOCK_SIZE,), tl.float32) + a, y.to(tl.float32))
    if EVEN_N:
        tl.store(out_ptr + offs, res.to(out_ptr.dtype.element_ty))
    else:
        tl.store(out_ptr + offs, res.to(out_ptr.dtype.element_ty), mask=offs < n)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    _axpy_kernel[grid](a, x, y, out, n)
