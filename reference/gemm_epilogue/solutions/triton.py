"""GEMM with an epilogue, the staff kernels: out = act(a · bᵀ + bias) + residual, in one launch.

With one part of b, act is GELU (its tanh form). With two, the first gives the gate g and the second the values u, and
act is SiLU(g) · u. The sums of a tile are in registers when its walk over K ends: the bias is added, the activation
taken and the residual added right there, and out is written once. Nothing but out and the residual moves that a plain
product would not move.

The plain form has tiles of 128 × 256. The gated one has two accumulators of 128 × 128, so that a program holds the gate
and the value of the same elements; both walk over K side by side and share the slice of a. The epilogue goes a part of
a tile at a time, which bounds the registers and the shared memory that it needs. While it lasts, the tensor cores stand
still: the longer K, the less that is.

Both activations are one base-2 exponential and one quotient for each element. GELU's tanh form is h · sigmoid(2z) with
z = √(2/π) · (h + 0.044715 · h³), because (1 + tanh z) / 2 = sigmoid(2z). For large negative h the exponential is
infinite and the sigmoid 0, which is right; nothing has to be clamped.

Matrices whose rows do not all begin at multiples of 16 bytes have no descriptor: they take pointers and masks.

Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016; Shazeer, "GLU variants improve transformer", 2020;
the product as in rung 14.
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
def _halves(tile):
    """The left and the right half of a tile."""
    ROWS: tl.constexpr = tile.shape[0]
    COLUMNS: tl.constexpr = tile.shape[1] // 2
    return tl.split(tl.permute(tl.reshape(tile, (ROWS, 2, COLUMNS)), (0, 2, 1)))


@triton.jit
def _bias(bias_ptr, column, n, COLUMNS: tl.constexpr):
    """The bias of some neighbouring columns, as a row."""
    columns = column + tl.arange(0, COLUMNS)
    return tl.load(bias_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]


@triton.jit
def _finish(part, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE: tl.constexpr):
    """Add the residual to a part of a tile, round it and store it.

    By pointers where rows of out do not end at multiples of 16 bytes, or it would go beyond.
    """
    part += residual_matrix.load([row, column]).to(tl.float32)
    if WHOLE:
        out_matrix.store([row, column], part.to(out_matrix.dtype))
    else:
        rows = row + tl.arange(0, part.shape[0])[:, None]
        columns = column + tl.arange(0, part.shape[1])[None, :]
        at = out_ptr + rows.to(tl.int64) * out_row_stride + columns
        tl.store(at, part.to(out_ptr.dtype.element_ty), mask=(rows < m) & (columns < n))


@triton.jit
def _finish_gelu(
    part, bias_ptr, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE: tl.constexpr
):
    h = part + _bias(bias_ptr, column, n, part.shape[1])
    _finish(_gelu(h), residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)


@triton.jit
def _gelu_kernel(
    a_matrix,
    b_matrix,
    bias_ptr,
    residual_matrix,
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
        accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_matrix.load([row, start])
            b = b_matrix.load([column, start])
            accumulator = tl.dot(a, b.T, accumulator)
        left, right = _halves(accumulator)
        first, second = _halves(left)
        third, fourth = _halves(right)
        _finish_gelu(first, bias_ptr, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)
        _finish_gelu(
            second, bias_ptr, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column + PART, WHOLE
        )
        _finish_gelu(
            third, bias_ptr, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column + 2 * PART, WHOLE
        )
        _finish_gelu(
            fourth, bias_ptr, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column + 3 * PART, WHOLE
        )


@triton.jit
def _gated_kernel(
    a_matrix,
    b_matrix,
    bias_ptr,
    residual_matrix,
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
    PART: tl.constexpr = BLOCK_N // 2
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(axis=0), tiles_m * tiles_n, tl.num_programs(axis=0), flatten=FLATTEN):
        tile_m, tile_n = _tile(tile, tiles_m, tiles_n, GROUP_M)
        row, column = tile_m * BLOCK_M, tile_n * BLOCK_N
        gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        value = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, k, BLOCK_K):
            a = a_matrix.load([row, start])
            gate = tl.dot(a, b_matrix.load([column, start]).T, gate)
            value = tl.dot(a, b_matrix.load([n + column, start]).T, value)
        left_gate, right_gate = _halves(gate)
        left, right = _halves(value)
        left += _bias(bias_ptr + n, column, n, PART)
        right += _bias(bias_ptr + n, column + PART, n, PART)
        left *= _silu(left_gate + _bias(bias_ptr, column, n, PART))
        right *= _silu(right_gate + _bias(bias_ptr, column + PART, n, PART))
        _finish(left, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column, WHOLE)
        _finish(right, residual_matrix, out_matrix, out_ptr, out_row_stride, m, n, row, column + PART, WHOLE)


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


SHORT_K = 4096
"""Up to here the loads of the next tile's first slices are a part of its time: loading them early is worth more than
what a flattened loop costs. With two parts it never is."""


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
    if all(_has_descriptor(matrix) for matrix in (a, b, residual, out)):
        _by_descriptors(a, b, bias, residual, out, m, n, k, parts)
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


def _is_stored_whole(matrix: torch.Tensor) -> bool:
    """Hardware stores 16 bytes of a row at once, also where fewer are left of it; it loads as many as there are."""
    return matrix.shape[1] * matrix.element_size() % 16 == 0


def _by_descriptors(
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
        block_m, block_k, group, stages, part = 128, 64, 16, 4, 64
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
    else:
        block_m, block_k, group, stages, part, programs = 64, 64, 8, 1, 32, 1
    block_n = 4 * part // parts
    kernel = _gelu_kernel if parts == 1 else _gated_kernel
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    kernel[(min(programs, tiles),)](
        _described(a, (m, k), (block_m, block_k)),
        _described(b, (parts * n, k), (block_n, block_k)),
        bias,
        _described(residual, (m, n), (block_m, part)),
        _described(out, (m, n), (block_m, part)),
        out, out.stride(0), m, n, k,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group, FLATTEN=parts == 1 and k <= SHORT_K,
        WHOLE=_is_stored_whole(out), num_warps=8, num_stages=stages,
    )  # fmt: skip


def _described(matrix: torch.Tensor, shape: tuple[int, int], block: tuple[int, int]) -> TensorDescriptor:
    return TensorDescriptor(matrix, list(shape), [matrix.stride(0), 1], list(block))
