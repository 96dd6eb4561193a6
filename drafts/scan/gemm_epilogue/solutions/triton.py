"""GEMM with an epilogue, the staff kernels: out = act(a · bᵀ + bias) + residual, in one launch.

With as many rows of b as columns of out, act is GELU (its tanh form). With twice as many, the upper half of b gives the gate
g and the lower half the values u, and act is SiLU(g) · u. The sums of a tile are in registers when its walk over K ends:
the bias is added, the activation taken and the residual added right there, and out is written once. Nothing but
out and the residual moves that a plain product would not move.

The plain form has tiles of 128 × 256, whose sums begin with the bias. The gated one has two accumulators of 128 × 128, so that a
program holds the gate and the value of the same elements; both walk over K side by side and share the slice of a.
The epilogue goes half a tile at a time, which halves the registers and the shared memory that it needs.

Both activations are one base-2 exponential and one quotient for each element: GELU's tanh form is h · σ(2z) with
z = √(2/π) · (h + 0.044715 · h³), because (1 + tanh z) / 2 = σ(2z).

Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016; Shazeer, "GLU variants improve transformer", 2020.
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
def _finish(part, residual_matrix, out_matrix, row, column):
    """Add the residual to a part of a tile, round it and store it."""
    part += residual_matrix.load([row, column]).to(tl.float32)
    out_matrix.store([row, column], part.to(out_matrix.dtype))


@triton.jit
def _gelu_kernel(
    a_matrix,
    b_matrix,
    bias_ptr,
    residual_matrix,
    out_matrix,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    PART: tl.constexpr = BLOCK_N // 4
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    # Flattened, both loops are one to the compiler, which then loads across the end of a tile.
    for tile in tl.range(tl.program_id(axis=0), tiles_m * tiles_n, tl.num_programs(axis=0), flatten=True):
        tile_m, tile_n = _tile(tile, tiles_m, tiles_n, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        columns = column + tl.arange(0, BLOCK_N)
        bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32) + bias[None, :]
        for start in range(0, k, BLOCK_K):
            a = a_matrix.load([row, start])
            b = b_matrix.load([column, start])
            accumulator = tl.dot(a, b.T, accumulator)
        left, right = _halves(accumulator)
        first, second = _halves(left)
        third, fourth = _halves(right)
        _finish(_gelu(first), residual_matrix, out_matrix, row, column)
        _finish(_gelu(second), residual_matrix, out_matrix, row, column + PART)
        _finish(_gelu(third), residual_matrix, out_matrix, row, column + 2 * PART)
        _finish(_gelu(fourth), residual_matrix, out_matrix, row, column + 3 * PART)


@triton.jit
def _gated_kernel(
    a_matrix,
    b_matrix,
    bias_ptr,
    residual_matrix,
    out_matrix,
    m,
    n,
    k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    PART: tl.constexpr = BLOCK_N // 2
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(axis=0), tiles_m * tiles_n, tl.num_programs(axis=0), flatten=True):
        tile_m, tile_n = _tile(tile, tiles_m, tiles_n, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        value = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_matrix.load([row, start])
            gate = tl.dot(a, b_matrix.load([column, start]).T, gate)
            value = tl.dot(a, b_matrix.load([n + column, start]).T, value)
        columns = column + tl.arange(0, BLOCK_N)
        gate_bias = tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
        value_bias = tl.load(bias_ptr + n + columns, mask=columns < n, other=0.0).to(tl.float32)
        left, right = _halves(_silu(gate + gate_bias[None, :]) * (value + value_bias[None, :]))
        _finish(left, residual_matrix, out_matrix, row, column)
        _finish(right, residual_matrix, out_matrix, row, column + PART)


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
    first = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    second = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        a = tl.load(a_tile + start, mask=(row < m) & (inner[None, :] < k - start), other=0.0)
        b_mask = (inner[:, None] < k - start) & (column < n)
        first = tl.dot(a, tl.load(b_tile + start, mask=b_mask, other=0.0), first)
        if GATED:
            second = tl.dot(a, tl.load(b_tile + n * b_row_stride + start, mask=b_mask, other=0.0), second)
    h = first + tl.load(bias_ptr + column, mask=column < n, other=0.0).to(tl.float32)
    if GATED:
        value = second + tl.load(bias_ptr + n + column, mask=column < n, other=0.0).to(tl.float32)
        out = _silu(h) * value
    else:
        out = _gelu(h)
    mask = (row < m) & (column < n)
    out += tl.load(residual_ptr + row * residual_row_stride + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


def gemm_epilogue(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    p: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    residual_row_stride: int,
    out_row_stride: int,
) -> None:
    gated = p == 2 * n
    if all(_has_descriptor(matrix) for matrix in (a, b, residual, out)):
        _by_descriptors(a, b, bias, residual, out, m, n, k, gated)
        return
    block_m, block_n, block_k, stages = (128, 128, 64, 3) if a.is_cuda else (64, 128, 64, 1)
    grid = (triton.cdiv(m, block_m), triton.cdiv(n, block_n))
    _pointer_kernel[grid](
        a, b, bias, residual, out, m, n, k, a_row_stride, b_row_stride, residual_row_stride, out_row_stride,
        GATED=gated, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8, num_stages=stages,
    )  # fmt: skip


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.stride(0) * matrix.element_size() % 16 == 0


def _by_descriptors(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: torch.Tensor,
    residual: torch.Tensor,
    out: torch.Tensor,
    m: int,
    n: int,
    k: int,
    gated: bool,
) -> None:
    if a.is_cuda:
        block_m, block_k, group, stages, part = 128, 64, 16, 4, 64
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    else:
        block_m, block_k, group, stages, part, programs = 64, 64, 8, 1, 32, 1
    block_n = 2 * part if gated else 4 * part
    kernel = _gated_kernel if gated else _gelu_kernel
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    kernel[(min(programs, tiles),)](
        _described(a, (m, k), (block_m, block_k)),
        _described(b, tuple(b.shape), (block_n, block_k)),
        bias,
        _described(residual, (m, n), (block_m, part)),
        _described(out, (m, n), (block_m, part)),
        m, n, k,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group, num_warps=8, num_stages=stages,
    )  # fmt: skip


def _described(matrix: torch.Tensor, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    return TensorDescriptor(matrix, list(shape), [matrix.stride(0), 1], list(block))
