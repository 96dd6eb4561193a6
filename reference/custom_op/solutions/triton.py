"""Residual addition and RMSNorm as a custom op, the staff module: forward, fake kernel, backward.

    s = x + r,    c = 1 / sqrt(mean of s² + eps),    out = s · c · weight
    g = dout · weight,    dx = dr = ds + c · (g - n · mean of g · n) with n = s · c
    dweight = sum over rows of dout · n

Backward needs `s` and `weight` only: a program holds a whole row of `s` anyway, and computes c again for nothing. Both
directions move 4·rows·cols·e bytes. A program takes many rows and keeps its own sum for `dweight` in registers; these
sums are added when all are there, in an order that does not change.
"""

import torch
import triton
import triton.language as tl

LONGEST = 16384
"""Columns that a program holds at once."""


@triton.jit
def _forward_kernel(
    x_ptr,
    r_ptr,
    weight_ptr,
    s_ptr,
    out_ptr,
    rows,
    cols,
    x_row_stride,
    r_row_stride,
    eps,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLS)[None, :]
    inside = column < cols
    mask = (row < rows) & inside
    x = tl.load(x_ptr + row * x_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + row * r_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    stored = (x + r).to(s_ptr.dtype.element_ty)
    tl.store(s_ptr + row * cols + column, stored, mask=mask)
    s = stored.to(tl.float32)
    c = tl.rsqrt(tl.sum(s * s, axis=1, keep_dims=True) / cols + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    out = s * c * weight
    tl.store(out_ptr + row * cols + column, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _long_forward_kernel(
    x_ptr, r_ptr, weight_ptr, s_ptr, out_ptr, cols, x_row_stride, r_row_stride, eps, BLOCK_COLS: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64)
    squares = tl.zeros((BLOCK_COLS,), tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        inside = column < cols
        x = tl.load(x_ptr + row * x_row_stride + column, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row * r_row_stride + column, mask=inside, other=0.0).to(tl.float32)
        stored = (x + r).to(s_ptr.dtype.element_ty)
        tl.store(s_ptr + row * cols + column, stored, mask=inside)
        s = stored.to(tl.float32)
        squares += s * s
    c = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    # Another thread of the program may read what this one stored.
    tl.debug_barrier()
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        inside = column < cols
        s = tl.load(s_ptr + row * cols + column, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * cols + column, (s * c * weight).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _backward_kernel(
    s_ptr,
    weight_ptr,
    ds_ptr,
    dout_ptr,
    dx_ptr,
    sums_ptr,
    rows,
    cols,
    ds_row_stride,
    dout_row_stride,
    eps,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    program = tl.program_id(axis=0)
    column = tl.arange(0, BLOCK_COLS)[None, :]
    inside = column < cols
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    sums = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)
    for first in range(program * BLOCK_ROWS, rows, tl.num_programs(axis=0) * BLOCK_ROWS):
        row = first + tl.arange(0, BLOCK_ROWS)[:, None].to(tl.int64)
        mask = (row < rows) & inside
        s = tl.load(s_ptr + row * cols + column, mask=mask, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + row * dout_row_stride + column, mask=mask, other=0.0).to(tl.float32)
        ds = tl.load(ds_ptr + row * ds_row_stride + column, mask=mask, other=0.0).to(tl.float32)
        c = tl.rsqrt(tl.sum(s * s, axis=1, keep_dims=True) / cols + eps)
        n = s * c
        g = dout * weight
        mean = tl.sum(g * n, axis=1, keep_dims=True) / cols
        dx = ds + c * (g - n * mean)
        tl.store(dx_ptr + row * cols + column, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        sums += dout * n
    total = tl.sum(sums, axis=0, keep_dims=True)
    tl.store(sums_ptr + program.to(tl.int64) * cols + column, total, mask=inside)


@triton.jit
def _row_kernel(
    s_ptr, weight_ptr, dout_ptr, factor_ptr, mean_ptr, cols, dout_row_stride, eps, BLOCK_COLS: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64)
    squares = tl.zeros((BLOCK_COLS,), tl.float32)
    products = tl.zeros((BLOCK_COLS,), tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        inside = column < cols
        s = tl.load(s_ptr + row * cols + column, mask=inside, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + row * dout_row_stride + column, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
        squares += s * s
        products += dout * weight * s
    c = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    tl.store(factor_ptr + row, c)
    tl.store(mean_ptr + row, tl.sum(products, axis=0) * c / cols)


@triton.jit
def _long_backward_kernel(
    s_ptr,
    weight_ptr,
    ds_ptr,
    dout_ptr,
    factor_ptr,
    mean_ptr,
    dx_ptr,
    sums_ptr,
    rows,
    cols,
    ds_row_stride,
    dout_row_stride,
    BLOCK_COLS: tl.constexpr,
):
    program = tl.program_id(axis=0)
    column = tl.program_id(axis=1) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    inside = column < cols
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    sums = tl.zeros((BLOCK_COLS,), tl.float32)
    for line in range(program, rows, tl.num_programs(axis=0)):
        row = line + tl.zeros((BLOCK_COLS,), tl.int64)
        s = tl.load(s_ptr + row * cols + column, mask=inside, other=0.0).to(tl.float32)
        dout = tl.load(dout_ptr + row * dout_row_stride + column, mask=inside, other=0.0).to(tl.float32)
        ds = tl.load(ds_ptr + row * ds_row_stride + column, mask=inside, other=0.0).to(tl.float32)
        c = tl.load(factor_ptr + row)
        n = s * c
        dx = ds + c * (dout * weight - n * tl.load(mean_ptr + row))
        tl.store(dx_ptr + row * cols + column, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        sums += dout * n
    tl.store(sums_ptr + program.to(tl.int64) * cols + column, sums, mask=inside)


def _by_rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if the elements of a row are neighbours, else a copy; rows may lie anywhere, or all be one."""
    return tensor if tensor.stride(1) == 1 else tensor.contiguous()


def _blocks(cols: int, on_gpu: bool) -> dict[str, int]:
    """About 4096 elements a program on a GPU; the interpreter pays per program, so there it takes many more."""
    block_cols = triton.next_power_of_2(cols)
    block_rows = max(1, (4096 if on_gpu else 16384) // block_cols)
    warps = min(16, max(4, block_rows * block_cols // 512))
    return {"BLOCK_ROWS": block_rows, "BLOCK_COLS": block_cols, "num_warps": warps}


@torch.library.custom_op("ladder::residual_norm", mutates_args=())
def residual_norm(
    x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = x.shape
    x, r, weight = _by_rows(x), _by_rows(r), weight.contiguous()
    s, out = x.new_empty(rows, cols), x.new_empty(rows, cols)
    tensors = (x, r, weight, s, out)
    if cols > LONGEST:
        _long_forward_kernel[(rows,)](*tensors, cols, x.stride(0), r.stride(0), eps, BLOCK_COLS=8192, num_warps=16)
        return s, out
    blocks = _blocks(cols, x.is_cuda)
    grid = (triton.cdiv(rows, blocks["BLOCK_ROWS"]),)
    _forward_kernel[grid](*tensors, rows, cols, x.stride(0), r.stride(0), eps, **blocks)
    return s, out


@residual_norm.register_fake
def _(x: torch.Tensor, r: torch.Tensor, weight: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape)


@torch.library.custom_op("ladder::residual_norm_backward", mutates_args=())
def residual_norm_backward(
    s: torch.Tensor, weight: torch.Tensor, ds: torch.Tensor, dout: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, cols = s.shape
    ds, dout, weight = _by_rows(ds), _by_rows(dout), weight.contiguous()
    dx = s.new_empty(rows, cols)
    # Two programs for each multiprocessor of a GPU; two in all where the interpreter runs them.
    most = 2 * torch.cuda.get_device_properties(s.device).multi_processor_count if s.is_cuda else 2
    strides = (ds.stride(0), dout.stride(0))
    if cols > LONGEST:
        factor, mean = (torch.empty(rows, dtype=torch.float32, device=s.device) for _ in range(2))
        _row_kernel[(rows,)](s, weight, dout, factor, mean, cols, dout.stride(0), eps, BLOCK_COLS=8192, num_warps=16)
        grid = (min(rows, most), triton.cdiv(cols, 2048))
        sums = torch.empty(grid[0], cols, dtype=torch.float32, device=s.device)
        tensors = (s, weight, ds, dout, factor, mean, dx, sums)
        _long_backward_kernel[grid](*tensors, rows, cols, *strides, BLOCK_COLS=2048)
    else:
        blocks = _blocks(cols, s.is_cuda)
        programs = min(triton.cdiv(rows, blocks["BLOCK_ROWS"]), most)
        sums = torch.empty(programs, cols, dtype=torch.float32, device=s.device)
        tensors = (s, weight, ds, dout, dx, sums)
        _backward_kernel[(programs,)](*tensors, rows, cols, *strides, eps, **blocks)
    return dx, sums.sum(dim=0).to(weight.dtype)


@residual_norm_backward.register_fake
def _(
    s: torch.Tensor, weight: torch.Tensor, ds: torch.Tensor, dout: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return s.new_empty(s.shape), weight.new_empty(weight.shape)


def _setup(ctx, inputs, output) -> None:
    _, _, weight, eps = inputs
    s, _ = output
    ctx.save_for_backward(s, weight)
    ctx.eps = eps


def _backward(ctx, ds: torch.Tensor, dout: torch.Tensor):
    s, weight = ctx.saved_tensors
    dx, dweight = residual_norm_backward(s, weight, ds, dout, ctx.eps)
    # One tensor for both: x and r enter s alike.
    return dx, dx, dweight, None


residual_norm.register_autograd(_backward, setup_context=_setup)
