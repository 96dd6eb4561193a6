"""Quantised GEMM, the staff kernel: out[i, j] = (Σ_l a[i, l] · b[j, l]) · a_scale[i] · b_scale[j], int8 factors.

The form is rung 14's: tiles of 128 × 256, slices by descriptors, a program for each multiprocessor that takes tile
after tile. Numbers of one byte change three things. A slice of 128 of K is as many bytes as one of 64 was, so that the
same ring of stages feeds an instruction of twice the speed. The sums are integers: int32 holds every one of them
exactly, in any order. And b has to be stored by columns of the product, as it is: for bytes wgmma reads no factor
transposed.

A tile's sums become float32 when all of K is in them, and meet both scales there, once for each element of out. Scales
inside of the sum would cost a product for each of its terms, and its exactness.

Matrices whose rows do not all begin at multiples of 16 bytes have no descriptor: they take pointers and masks.

Source: the form of rung 14's staff kernel; PTX ISA, "Asynchronous warpgroup level matrix instructions", for integers.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _tile(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """The tile of a program: column by column inside a group of GROUP_M rows of tiles."""
    per_group = GROUP_M * tiles_n
    first = program // per_group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = program % per_group
    return first + within % height, within // height


@triton.jit
def _halves(tile):
    """The left and the right half of a tile."""
    ROWS: tl.constexpr = tile.shape[0]
    COLUMNS: tl.constexpr = tile.shape[1] // 2
    return tl.split(tl.permute(tl.reshape(tile, (ROWS, 2, COLUMNS)), (0, 2, 1)))


@triton.jit
def _scaled(sums, a_scale_ptr, b_scale_ptr, m, n, row, column):
    """A part of a tile, whose sums are complete, in float32 and times both scales."""
    rows = row + tl.arange(0, sums.shape[0])
    columns = column + tl.arange(0, sums.shape[1])
    a_scale = tl.load(a_scale_ptr + rows, mask=rows < m, other=0.0)
    b_scale = tl.load(b_scale_ptr + columns, mask=columns < n, other=0.0)
    return sums.to(tl.float32) * a_scale[:, None] * b_scale[None, :]


@triton.jit
def _store(part, out_ptr, out_row_stride, m, n, row, column):
    """Store a part of a tile by pointers."""
    rows = row + tl.arange(0, part.shape[0])[:, None]
    columns = column + tl.arange(0, part.shape[1])[None, :]
    at = out_ptr + rows.to(tl.int64) * out_row_stride + columns
    tl.store(at, part, mask=(rows < m) & (columns < n))


@triton.jit
def _finish(
    sums, a_scale_ptr, b_scale_ptr, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE: tl.constexpr
):
    """Scale a part of a tile and store it: by pointers where rows do not end at multiples of 16 bytes."""
    part = _scaled(sums, a_scale_ptr, b_scale_ptr, m, n, row, column)
    if WHOLE:
        out_matrix.store([row, column], part)
    else:
        _store(part, out_ptr, out_row_stride, m, n, row, column)


@triton.jit
def _descriptor_kernel(
    a_matrix,
    b_matrix,
    a_scale_ptr,
    b_scale_ptr,
    out_matrix,
    out_ptr,
    out_row_stride,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    FLATTEN: tl.constexpr,
    WHOLE: tl.constexpr,
):
    PART: tl.constexpr = BLOCK_N // 4
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(axis=0), tiles_m * tiles_n, tl.num_programs(axis=0), flatten=FLATTEN):
        tile_m, tile_n = _tile(tile, tiles_m, tiles_n, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
        for start in range(0, k, BLOCK_K):
            a = a_matrix.load([row, start])
            b = b_matrix.load([column, start])
            sums = tl.dot(a, b.T, sums, out_dtype=tl.int32)
        # A quarter at a time: on its way out it needs a quarter of the shared memory, and one more stage fits.
        left, right = _halves(sums)
        one, two = _halves(left)
        three, four = _halves(right)
        _finish(one, a_scale_ptr, b_scale_ptr, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)
        column += PART
        _finish(two, a_scale_ptr, b_scale_ptr, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)
        column += PART
        _finish(three, a_scale_ptr, b_scale_ptr, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)
        column += PART
        _finish(four, a_scale_ptr, b_scale_ptr, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)


@triton.jit
def _pointer_kernel(
    a_ptr,
    b_ptr,
    a_scale_ptr,
    b_scale_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    out_row_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = _tile(tl.program_id(axis=0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + row.to(tl.int64) * a_row_stride + inner[None, :]
    b_tile = b_ptr + column.to(tl.int64) * b_row_stride + inner[:, None]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_tile + start, mask=(row < m) & (inner[None, :] < k - start), other=0)
        b = tl.load(b_tile + start, mask=(inner[:, None] < k - start) & (column < n), other=0)
        sums = tl.dot(a, b, sums, out_dtype=tl.int32)
    part = _scaled(sums, a_scale_ptr, b_scale_ptr, m, n, tile_m * BLOCK_M, tile_n * BLOCK_N)
    _store(part, out_ptr, out_row_stride, m, n, tile_m * BLOCK_M, tile_n * BLOCK_N)


def quantised_gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    out_row_stride: int,
) -> None:
    if all(_has_descriptor(matrix) for matrix in (a, b, out)):
        _by_descriptors(a, b, a_scale, b_scale, out, m, n, k)
        return
    # The interpreter pays per operation on a tile: few and large ones, but still several to a matrix.
    block_m, block_n, block_k, stages = (128, 128, 64, 3) if a.is_cuda else (32, 64, 256, 1)
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    _pointer_kernel[grid](
        a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, num_warps=8, num_stages=stages,
    )  # fmt: skip


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.stride(0) * matrix.element_size() % 16 == 0


def _is_stored_whole(matrix: torch.Tensor) -> bool:
    """Hardware stores 16 bytes of a row at once, also where fewer are left of it; it loads as many as there are."""
    return matrix.shape[1] * matrix.element_size() % 16 == 0


def _by_descriptors(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
) -> None:
    if a.is_cuda:
        block_m, block_n, block_k, group, stages = 128, 256, 128, 16, 4
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    else:
        block_m, block_n, block_k, group, stages, programs = 32, 64, 256, 8, 1, 1
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    _descriptor_kernel[(min(programs, tiles),)](
        _described(a, (m, k), (block_m, block_k)),
        _described(b, (n, k), (block_n, block_k)),
        a_scale,
        b_scale,
        _described(out, (m, n), (block_m, block_n // 4)),
        out, out.stride(0), m, n, k,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group, FLATTEN=True,
        WHOLE=_is_stored_whole(out), num_warps=8, num_stages=stages,
    )  # fmt: skip


def _described(matrix: torch.Tensor, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    return TensorDescriptor(matrix, list(shape), [matrix.stride(0), 1], list(block))
