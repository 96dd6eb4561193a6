"""Tiled matmul, the staff kernel: c[i, j] = Σ_l a[i, l] · b[l, j], summed in float32.

Each program owns one tile of c and walks over K. A slice of BLOCK_K costs (BLOCK_M + BLOCK_N)·BLOCK_K loads and gives
2·BLOCK_M·BLOCK_N·BLOCK_K operations: with square tiles of edge B that is B/e operations per byte, against 1/e for the
naive form. Programs are numbered in groups of GROUP_M rows of tiles, so that those that run together share columns of
b in L2. float32 is multiplied as float32 (`ieee`), not as TF32, whose ten bits this rung's tolerance does not allow.

16-bit matrices whose rows begin at multiples of 16 bytes take another kernel: their tiles are moved by descriptors,
which is one instruction for a whole tile and knows the matrix's edges, and a program takes tile after tile, so that the
loads of the next begin while the last one is stored.

Source: the blocking of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, at the level
of registers and shared memory; the grouped order and the persistent form as in Triton's tutorials, written anew.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


# Sizes and strides are not looked at: each combination of ones and multiples of 16 among them would be a kernel of its
# own, which takes a second to compile. All but m come in units of UNIT elements, 16 where all of them are, or 1: that
# says how much of a row can be loaded at once, which is all that matters for speed.
@triton.jit(do_not_specialize=["m", "n", "k", "a_row_stride", "b_row_stride", "c_row_stride"])
def _matmul_kernel(
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
    UNIT: tl.constexpr,
):
    n, k = n * UNIT, k * UNIT
    a_row_stride, b_row_stride, c_row_stride = a_row_stride * UNIT, b_row_stride * UNIT, c_row_stride * UNIT
    tile_m, tile_n = _tile(tl.program_id(axis=0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP_M)
    first_row, first_column = tile_m * BLOCK_M, tile_n * BLOCK_N
    row, column = tl.arange(0, BLOCK_M)[:, None], tl.arange(0, BLOCK_N)[None, :]
    inner = tl.arange(0, BLOCK_K)
    # Matrices may have more than 2**31 elements, a tile has not: 64 bits for where it starts, 32 within it. All offsets
    # in 64 bits cost a seventh of the speed on an H200.
    a_tile = a_ptr + first_row.to(tl.int64) * a_row_stride + row * a_row_stride + inner[None, :]
    b_tile = b_ptr + first_column + inner[:, None] * b_row_stride + column
    rows, columns = m - first_row, n - first_column
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_tile, mask=(row < rows) & (inner[None, :] < k - start), other=0.0)
        b = tl.load(b_tile, mask=(inner[:, None] < k - start) & (column < columns), other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        a_tile += BLOCK_K
        b_tile += BLOCK_K * b_row_stride
    c_tile = c_ptr + first_row.to(tl.int64) * c_row_stride + first_column + row * c_row_stride + column
    c_mask = (row < rows) & (column < columns)
    tl.store(c_tile, accumulator.to(c_ptr.dtype.element_ty), mask=c_mask)


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
            b = b_matrix.load([start, column])
            accumulator = tl.dot(a, b, accumulator)
        # Stored in two halves, the tile needs half the shared memory on its way out, and one more stage fits.
        halves = tl.permute(tl.reshape(accumulator, (BLOCK_M, 2, HALF)), (0, 2, 1))
        left, right = tl.split(halves)
        _store(left, c_matrix, c_ptr, c_row_stride, m, n, row, column, WHOLE)
        _store(right, c_matrix, c_ptr, c_row_stride, m, n, row, column + HALF, WHOLE)


@triton.jit
def _tile(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """The tile of a program: column by column inside a group of GROUP_M rows of tiles."""
    per_group = GROUP_M * tiles_n
    first = program // per_group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = program % per_group
    return first + within % height, within // height


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
    if a.element_size() == 2 and all(_has_descriptor(matrix) for matrix in (a, b, c)):
        _matmul_by_descriptors(a, b, c, m, n, k)
        return
    if not a.is_cuda:
        # The interpreter pays per operation on a tile: few and large ones, but still several to a matrix.
        block_m, block_n, block_k, warps, stages = 64, 128, 32, 4, 1
    elif a.element_size() == 2 and triton.cdiv(m, 128) * triton.cdiv(n, 256) < _multiprocessors(a):
        # Large tiles would leave multiprocessors idle: 131 µs instead of 68 for 1480 × 547 × 1948 on an H200.
        block_m, block_n, block_k, warps, stages = 64, 128, 32, 4, 3
    elif a.element_size() == 2:
        block_m, block_n, block_k, warps, stages = 128, 256, 64, 8, 3
    else:
        # Without tensor cores: a thread multiplies four by eight elements of a tile out of its registers.
        block_m, block_n, block_k, warps, stages = 128, 64, 16, 8, 4
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    lengths = (n, k, a_row_stride, b_row_stride, c_row_stride)
    unit = 16 if all(length % 16 == 0 for length in lengths) else 1
    _matmul_kernel[grid](
        a, b, c, m, *(length // unit for length in lengths),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=8, UNIT=unit, num_warps=warps, num_stages=stages,
    )  # fmt: skip


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.stride(0) * matrix.element_size() % 16 == 0


def _is_stored_whole(matrix: torch.Tensor) -> bool:
    """Hardware stores 16 bytes of a row at once, also where fewer are left of it; it loads as many as there are."""
    return matrix.shape[1] * matrix.element_size() % 16 == 0


def _matmul_by_descriptors(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, m: int, n: int, k: int) -> None:
    if a.is_cuda:
        block_m, block_n, block_k, group, stages = 128, 256, 64, 16, 4
        programs = _multiprocessors(a)
    else:
        block_m, block_n, block_k, group, stages, programs = 64, 128, 32, 8, 1, 1
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    _descriptor_kernel[(min(programs, tiles),)](
        _described(a, (m, k), (block_m, block_k)),
        _described(b, (k, n), (block_k, block_n)),
        _described(c, (m, n), (block_m, block_n // 2)),
        c, c.stride(0), m, n, k,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group, WHOLE=_is_stored_whole(c),
        num_warps=8, num_stages=stages,
    )  # fmt: skip


def _multiprocessors(matrix: torch.Tensor) -> int:
    return torch.cuda.get_device_properties(matrix.device).multi_processor_count


def _described(matrix: torch.Tensor, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    return TensorDescriptor(matrix, list(shape), [matrix.stride(0), 1], list(block))
