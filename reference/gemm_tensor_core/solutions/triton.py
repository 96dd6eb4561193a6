"""Tensor-core GEMM, the staff kernel: c[i, j] = Σ_l a[i, l] · b[j, l], 16-bit factors, summed in float32.

c is cut into tiles of 128 × 256. On Hopper such a tile is two warp groups' work: each issues wgmma for 64 × 256 × 16,
whose factors come from shared memory and whose 64 × 256 sums are 128 registers of each thread; that is what bounds the
tile. Both matrices have K innermost, so both tiles of factors are moved and swizzled in the same way, and b's is read
transposed by the instruction itself, at no cost. Slices are moved by descriptors, which know the edges of the matrices;
the grid is as wide as the device, and a program takes tile after tile, so that the loads of the next begin while the
last one is stored.

Matrices whose rows do not all begin at multiples of 16 bytes have no descriptor: they take pointers and masks.

Source: the form of rung 7's staff kernel with b stored by columns; PTX ISA, "Asynchronous warpgroup level matrix
instructions", for shapes and layouts.
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
def _store(part, c_matrix, c_ptr, c_row_stride, m, n, row, column, WHOLE: tl.constexpr):
    """Store a part of a tile: by pointers where rows do not end at multiples of 16 bytes, or it would go beyond."""
    if WHOLE:
        c_matrix.store([row, column], part.to(c_matrix.dtype))
    else:
        rows = row + tl.arange(0, part.shape[0])[:, None]
        columns = column + tl.arange(0, part.shape[1])[None, :]
        at = c_ptr + rows.to(tl.int64) * c_row_stride + columns
        tl.store(at, part.to(c_ptr.dtype.element_ty), mask=(rows < m) & (columns < n))


@triton.jit
def _descriptor_kernel(
    a_matrix,
    b_matrix,
    c_matrix,
    c_ptr,
    c_row_stride,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    WHOLE: tl.constexpr,
):
    HALF: tl.constexpr = BLOCK_N // 2
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    # Flattened, both loops are one to the compiler, which then loads across the end of a tile.
    for tile in tl.range(tl.program_id(axis=0), tiles_m * tiles_n, tl.num_programs(axis=0), flatten=True):
        tile_m, tile_n = _tile(tile, tiles_m, tiles_n, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_matrix.load([row, start])
            b = b_matrix.load([column, start])
            accumulator = tl.dot(a, b.T, accumulator)
        # Stored in two halves, the tile needs half the shared memory on its way out, and one more stage fits.
        left, right = tl.split(tl.permute(tl.reshape(accumulator, (BLOCK_M, 2, HALF)), (0, 2, 1)))
        _store(left, c_matrix, c_ptr, c_row_stride, m, n, row, column, WHOLE)
        _store(right, c_matrix, c_ptr, c_row_stride, m, n, row, column + HALF, WHOLE)


@triton.jit
def _pointer_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_row_stride,
    b_row_stride,
    c_row_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = _tile(tl.program_id(axis=0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    first_row, first_column = tile_m * BLOCK_M, tile_n * BLOCK_N
    row, column = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    # 64 bits for where a tile starts, 32 within it.
    a_tile = a_ptr + first_row.to(tl.int64) * a_row_stride + row * a_row_stride + inner[None, :]
    b_tile = b_ptr + first_column.to(tl.int64) * b_row_stride + column * b_row_stride + inner[:, None]
    rows, columns = m - first_row, n - first_column
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_tile, mask=(row < rows) & (inner[None, :] < k - start), other=0.0)
        b = tl.load(b_tile, mask=(inner[:, None] < k - start) & (column < columns), other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_tile += BLOCK_K
        b_tile += BLOCK_K
    c_tile = c_ptr + first_row.to(tl.int64) * c_row_stride + first_column + row * c_row_stride + column
    tl.store(c_tile, accumulator.to(c_ptr.dtype.element_ty), mask=(row < rows) & (column < columns))


def gemm(
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
    if all(_has_descriptor(matrix) for matrix in (a, b, c)):
        _gemm_by_descriptors(a, b, c, m, n, k)
        return
    # The interpreter pays per operation on a tile: few and large ones, but still several to a matrix.
    block_m, block_n, block_k, stages = (128, 256, 64, 3) if a.is_cuda else (64, 128, 64, 1)
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    _pointer_kernel[grid](
        a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, num_warps=8, num_stages=stages,
    )  # fmt: skip


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.stride(0) * matrix.element_size() % 16 == 0


def _is_stored_whole(matrix: torch.Tensor) -> bool:
    """Hardware stores 16 bytes of a row at once, also where fewer are left of it; it loads as many as there are."""
    return matrix.shape[1] * matrix.element_size() % 16 == 0


def _gemm_by_descriptors(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, m: int, n: int, k: int) -> None:
    if a.is_cuda:
        block_m, block_n, block_k, group, stages = 128, 256, 64, 16, 4
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    else:
        block_m, block_n, block_k, group, stages, programs = 64, 128, 64, 8, 1, 1
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    _descriptor_kernel[(min(programs, tiles),)](
        _described(a, (m, k), (block_m, block_k)),
        _described(b, (n, k), (block_n, block_k)),
        _described(c, (m, n), (block_m, block_n // 2)),
        c, c.stride(0), m, n, k,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group, WHOLE=_is_stored_whole(c),
        num_warps=8, num_stages=stages,
    )  # fmt: skip


def _described(matrix: torch.Tensor, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    return TensorDescriptor(matrix, list(shape), [matrix.stride(0), 1], list(block))
