"""Honest, and slower than it looks: the epilogue of one tile goes on during the slices of the next.

wgmma is asynchronous: while it multiplies a slice, the warps that issued it have nothing to do. So a finished tile's
sums are left in scratch memory, and during every slice of the next tile a few rows of the last one are taken from there,
finished and stored. On an H200 the loads and the arithmetic between two slices hold up the issue of the next wgmma for
longer than the epilogue at the end would have taken.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))


@triton.jit
def _gelu(h):
    return h * _sigmoid(1.5957691216057308 * (h + 0.044715 * h * h * h))


@triton.jit
def _silu(h):
    return h * _sigmoid(h)


@triton.jit
def _epilogue(h, bias, value, value_bias, residual, GATED: tl.constexpr):
    """Bias, activation and residual of some sums, in float32."""
    h += bias.to(tl.float32)
    out = _silu(h) * (value + value_bias.to(tl.float32)) if GATED else _gelu(h)
    return out + residual.to(tl.float32)


@triton.jit
def _tile(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """The tile of a program: column by column inside a group of GROUP_M rows of tiles."""
    per_group = GROUP_M * tiles_n
    first = program // per_group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = program % per_group
    return first + within % height, within // height


@triton.jit
def _keep(sums_ptr, sums, STEP: tl.constexpr):
    """Leave a tile's sums in scratch memory, whose rows are STEP apart."""
    row, column = tl.arange(0, sums.shape[0])[:, None], tl.arange(0, sums.shape[1])[None, :]
    tl.store(sums_ptr + row * STEP + column, sums)


@triton.jit
def _overlapped_kernel(
    a_matrix,
    b_matrix,
    bias_ptr,
    residual_ptr,
    out_ptr,
    sums_ptr,  # scratch memory: a tile of sums for each program
    m,
    n,
    k,
    residual_row_stride,
    out_row_stride,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    ROWS: tl.constexpr,  # of the last tile, that are finished during a slice
    LAST_ROWS: tl.constexpr,  # that are finished at once when there is no next tile
):
    STEP: tl.constexpr = 2 * BLOCK_N if GATED else BLOCK_N
    sums_ptr += tl.program_id(axis=0).to(tl.int64) * BLOCK_M * STEP
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    within = tl.arange(0, BLOCK_N)[None, :]
    # The tile to be finished; below the last row there is nothing to do.
    last_row, last_column = m, 0
    for tile in tl.range(tl.program_id(axis=0), tiles_m * tiles_n, tl.num_programs(axis=0)):
        tile_m, tile_n = _tile(tile, tiles_m, tiles_n, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        first = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        second = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for number in range(tl.cdiv(k, BLOCK_K)):
            # Asked for before the product is, used after it was issued.
            r = number * ROWS + tl.arange(0, ROWS)[:, None]
            mask = (r < BLOCK_M) & (last_row + r < m) & (last_column + within < n)
            residual_rows = residual_ptr + (last_row + r).to(tl.int64) * residual_row_stride
            residual = tl.load(residual_rows + last_column + within, mask=mask, other=0.0)
            h = tl.load(sums_ptr + r * STEP + within, mask=mask, other=0.0)
            # Of every row anew: a row of its own would have to change hands between threads.
            bias = tl.load(bias_ptr + last_column + within + 0 * r, mask=mask, other=0.0)
            value, value_bias = h, bias
            if GATED:
                value = tl.load(sums_ptr + r * STEP + BLOCK_N + within, mask=mask, other=0.0)
                value_bias = tl.load(bias_ptr + n + last_column + within + 0 * r, mask=mask, other=0.0)
            a = a_matrix.load([row, number * BLOCK_K])
            first = tl.dot(a, b_matrix.load([column, number * BLOCK_K]).T, first)
            if GATED:
                second = tl.dot(a, b_matrix.load([n + column, number * BLOCK_K]).T, second)
            out = _epilogue(h, bias, value, value_bias, residual, GATED)
            out_rows = out_ptr + (last_row + r).to(tl.int64) * out_row_stride
            tl.store(out_rows + last_column + within, out.to(out_ptr.dtype.element_ty), mask=mask)
        # All threads have read the last tile's sums before these take their place, and all see these.
        tl.debug_barrier()
        _keep(sums_ptr, first, STEP)
        if GATED:
            _keep(sums_ptr + BLOCK_N, second, STEP)
        tl.debug_barrier()
        last_row, last_column = row, column
    for start in range(0, BLOCK_M, LAST_ROWS):
        r = start + tl.arange(0, LAST_ROWS)[:, None]
        mask = (last_row + r < m) & (last_column + within < n)
        residual_rows = residual_ptr + (last_row + r).to(tl.int64) * residual_row_stride
        residual = tl.load(residual_rows + last_column + within, mask=mask, other=0.0)
        h = tl.load(sums_ptr + r * STEP + within, mask=mask, other=0.0)
        bias = tl.load(bias_ptr + last_column + within + 0 * r, mask=mask, other=0.0)
        value, value_bias = h, bias
        if GATED:
            value = tl.load(sums_ptr + r * STEP + BLOCK_N + within, mask=mask, other=0.0)
            value_bias = tl.load(bias_ptr + n + last_column + within + 0 * r, mask=mask, other=0.0)
        out = _epilogue(h, bias, value, value_bias, residual, GATED)
        out_rows = out_ptr + (last_row + r).to(tl.int64) * out_row_stride
        tl.store(out_rows + last_column + within, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _pointer_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    residual_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    residual_row_stride,
    out_row_stride,
    GATED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tl.program_id(axis=1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row * a_row_stride + inner[None, :]
    b_tile = b_ptr + column * b_row_stride + inner[:, None]
    h = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    value = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_tile + start, mask=(row < m) & (inner[None, :] < k - start), other=0.0)
        b_mask = (inner[:, None] < k - start) & (column < n)
        h = tl.dot(a, tl.load(b_tile + start, mask=b_mask, other=0.0), h)
        if GATED:
            value = tl.dot(a, tl.load(b_tile + n * b_row_stride + start, mask=b_mask, other=0.0), value)
    mask = (row < m) & (column < n)
    bias = tl.load(bias_ptr + column, mask=column < n, other=0.0)
    value_bias = bias
    if GATED:
        value_bias = tl.load(bias_ptr + n + column, mask=column < n, other=0.0)
    residual = tl.load(residual_ptr + row * residual_row_stride + column, mask=mask, other=0.0)
    out = _epilogue(h, bias, value, value_bias, residual, GATED)
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


WORTH_OVERLAPPING = 512
"""A shorter K has too few slices to finish a tile in, a few rows at a time."""


def gemm_epilogue(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    parts: int,
    a_row_stride: int,
    b_row_stride: int,
    residual_row_stride: int,
    out_row_stride: int,
) -> None:
    # Both parts as one matrix: part 1 begins where a row n of part 0 would.
    b = b.as_strided((parts * n, k), (b_row_stride, 1))
    if _has_descriptor(a) and _has_descriptor(b) and (k >= WORTH_OVERLAPPING or not a.is_cuda):
        _overlapped(a, b, bias, residual, out, m, n, k, parts)
        return
    block_m, block_n, block_k, stages = (128, 128, 64, 3) if a.is_cuda else (64, 128, 64, 1)
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    _pointer_kernel[grid](
        a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride, out_row_stride,
        GATED=parts == 2, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8, num_stages=stages,
    )  # fmt: skip


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.stride(0) * matrix.element_size() % 16 == 0


def _overlapped(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    parts: int,
) -> None:
    if a.is_cuda:
        block_m, block_n, block_k, group, stages = 128, 256 // parts, 64, 16, 4
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    else:
        block_m, block_n, block_k, group, stages, programs = 64, 128 // parts, 64, 8, 1, 1
    programs = min(programs, triton.cdiv(m, block_m) * triton.cdiv(n, block_n))
    # Two rows of 256 columns, or four of 128, are two elements for each of 256 threads.
    rows = max(2 * parts, triton.next_power_of_2(triton.cdiv(block_m, triton.cdiv(k, block_k))))
    sums = torch.empty(programs * block_m * block_n * parts, dtype=torch.float32, device=a.device)
    _overlapped_kernel[(programs,)](
        _described(a, (m, k), (block_m, block_k)),
        _described(b, (parts * n, k), (block_n, block_k)),
        bias, residual, out, sums, m, n, k, residual.stride(0), out.stride(0),
        GATED=parts == 2, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group,
        ROWS=rows, LAST_ROWS=32, num_warps=8, num_stages=stages,
    )  # fmt: skip


def _described(matrix: torch.Tensor, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    return TensorDescriptor(matrix, list(shape), [matrix.stride(0), 1], list(block))
