"""Fused mixture of experts, the staff kernel: five launches for any number of experts, and no word to the host.

1. Route: for some tokens at a time the largest logit, the lowest number among equals, `top` times; the weights are the
   softmax of what was found.
2. Place: pair t · top + j is choice j of token t. The program of an expert counts the pairs of lower experts and its
   own, and writes the numbers of its own pairs from there on, in their order. Nothing is sorted but numbers.
3. Gate and up: a grid as large as rows may need at worst. A program counts the tiles of all experts, finds its own, and
   ends if there is none. It loads rows of x by the numbers of its pairs, and keeps gate and value of the same elements,
   as rung 21's; what it stores is silu(gate) · value, in the order of experts.
4. Down: the same with those rows. The weight is multiplied in the epilogue, and rows go back to their pair's place.
5. Combine: the `top` rows of a token, which are neighbours now, are added in float32, in order.

With few tokens for an expert the weights' way through memory is all that counts: tiles are 16 rows high then, so that
one tile has all tokens of an expert, and its weights are read once.

Source: Shazeer et al., "Outrageously large neural networks", 2017; Gale et al., "MegaBlocks", 2023; rungs 21 and 24.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _route_kernel(
    logits_ptr, chosen_ptr, weights_ptr, tokens, experts,
    TOP: tl.constexpr, SLOTS: tl.constexpr, ROWS: tl.constexpr, EXPERTS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(axis=0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    expert = tl.arange(0, EXPERTS)
    there = (expert < experts)[None, :]
    logits = tl.load(
        logits_ptr + token[:, None] * experts + expert[None, :], mask=(token < tokens)[:, None] & there, other=0.0
    )
    logits = tl.where(there, logits, float("-inf"))
    largest = tl.max(logits, axis=1)
    slot = tl.arange(0, SLOTS)
    chosen = tl.zeros((ROWS, SLOTS), tl.int32)
    powers = tl.zeros((ROWS, SLOTS), tl.float32)
    for j in tl.static_range(TOP):
        best = tl.max(logits, axis=1)
        found = tl.min(tl.where(logits == best[:, None], expert[None, :], EXPERTS), axis=1)
        logits = tl.where(expert[None, :] == found[:, None], float("-inf"), logits)
        chosen = tl.where(slot[None, :] == j, found[:, None], chosen)
        powers = tl.where(slot[None, :] == j, tl.exp(best - largest)[:, None], powers)
    at = token[:, None] * TOP + slot[None, :]
    mask = (token < tokens)[:, None] & (slot < TOP)[None, :]
    tl.store(chosen_ptr + at, chosen, mask=mask)
    tl.store(weights_ptr + at, powers / tl.sum(powers, axis=1)[:, None], mask=mask)


@triton.jit
def _place_kernel(chosen_ptr, pairs_ptr, counts_ptr, pairs, BLOCK: tl.constexpr):
    """The numbers of one expert's pairs, in their order, behind those of all lower experts; and how many they are."""
    expert = tl.program_id(axis=0)
    lane = tl.arange(0, BLOCK)
    before, count = 0, 0
    for start in range(0, pairs, BLOCK):
        theirs = tl.load(chosen_ptr + start + lane, mask=start + lane < pairs, other=expert + 1)
        before += tl.sum((theirs < expert).to(tl.int32), axis=0)
        count += tl.sum((theirs == expert).to(tl.int32), axis=0)
    tl.store(counts_ptr + expert, count)
    for start in range(0, pairs, BLOCK):
        theirs = tl.load(chosen_ptr + start + lane, mask=start + lane < pairs, other=expert + 1)
        mine = (theirs == expert).to(tl.int32)
        tl.store(pairs_ptr + before + tl.cumsum(mine, axis=0) - 1, start + lane, mask=mine == 1)
        before += tl.sum(mine, axis=0)


@triton.jit
def _tile(counts_ptr, experts, most, tiles_n, ROWS: tl.constexpr, EXPERTS: tl.constexpr, GROUP: tl.constexpr):
    """What a program has to do: its expert (`experts` if nothing), its first row, its end, its tile of columns.

    `most` is how many tiles of rows there may be; GROUP of them walk through the columns together.
    """
    program = tl.program_id(axis=0)
    first = program // (GROUP * tiles_n) * GROUP
    height = tl.minimum(most - first, GROUP)
    within = program % (GROUP * tiles_n)
    tile = first + within % height
    number = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + number, mask=number < experts, other=0)
    tiles = tl.cdiv(counts, ROWS)
    # The experts whose tiles all come before this one; empty experts among them.
    done = tl.cumsum(tiles, axis=0) <= tile
    expert = tl.sum((done & (number < experts)).to(tl.int32), axis=0)
    rows_before = tl.sum(tl.where(done, counts, 0), axis=0)
    tiles_before = tl.sum(tl.where(done, tiles, 0), axis=0)
    count = tl.sum(tl.where(number == expert, counts, 0), axis=0)
    return expert, rows_before + (tile - tiles_before) * ROWS, rows_before + count, within // height


@triton.jit
def _weights(
    matrix, ptr, first, column, columns, start, k, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, DESCRIBED: tl.constexpr
):
    """Rows `first` + `column` and on of a matrix of weights with k columns, from `start` on, transposed."""
    if DESCRIBED:
        # Rows of the next part or expert may come along: their columns are not stored.
        tile = matrix.load([first + column, start])
    else:
        row = column + tl.arange(0, BLOCK_N)[:, None]
        inner = start + tl.arange(0, BLOCK_K)[None, :]
        tile = tl.load(ptr + (first + row).to(tl.int64) * k + inner, mask=(row < columns) & (inner < k), other=0.0)
    return tile.T


@triton.jit
def _up_kernel(
    x_ptr, matrix, gate_up_ptr, pairs_ptr, counts_ptr, y_ptr, experts, hidden, inner, most,
    TOP: tl.constexpr, EXPERTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, DESCRIBED: tl.constexpr,
):  # fmt: skip
    expert, row, end, tile_n = _tile(counts_ptr, experts, most, tl.cdiv(inner, BLOCK_N), BLOCK_M, EXPERTS, GROUP)
    if expert < experts:
        rows = row + tl.arange(0, BLOCK_M)
        mask = rows < end
        token = tl.load(pairs_ptr + rows, mask=mask, other=0) // TOP
        column, inside = tile_n * BLOCK_N, tl.arange(0, BLOCK_K)
        x_tile = x_ptr + token.to(tl.int64)[:, None] * hidden + inside[None, :]
        first = expert * 2 * inner
        gate = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        value = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, hidden, BLOCK_K):
            x = tl.load(x_tile + start, mask=mask[:, None] & (inside[None, :] < hidden - start), other=0.0)
            b = _weights(matrix, gate_up_ptr, first, column, inner, start, hidden, BLOCK_N, BLOCK_K, DESCRIBED)
            gate = tl.dot(x, b, gate)
            b = _weights(matrix, gate_up_ptr, first + inner, column, inner, start, hidden, BLOCK_N, BLOCK_K, DESCRIBED)
            value = tl.dot(x, b, value)
        y = gate / (1.0 + tl.exp2(gate * -1.4426950408889634)) * value
        columns = column + tl.arange(0, BLOCK_N)
        at = y_ptr + rows.to(tl.int64)[:, None] * inner + columns[None, :]
        tl.store(at, y.to(y_ptr.dtype.element_ty), mask=mask[:, None] & (columns < inner)[None, :])


@triton.jit
def _down_kernel(
    y_ptr, matrix, down_ptr, pairs_ptr, counts_ptr, weights_ptr, parts_ptr, experts, hidden, inner, most,
    EXPERTS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    DESCRIBED: tl.constexpr,
):  # fmt: skip
    expert, row, end, tile_n = _tile(counts_ptr, experts, most, tl.cdiv(hidden, BLOCK_N), BLOCK_M, EXPERTS, GROUP)
    if expert < experts:
        rows = row + tl.arange(0, BLOCK_M)
        mask = rows < end
        column, inside = tile_n * BLOCK_N, tl.arange(0, BLOCK_K)
        y_tile = y_ptr + rows.to(tl.int64)[:, None] * inner + inside[None, :]
        sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, inner, BLOCK_K):
            y = tl.load(y_tile + start, mask=mask[:, None] & (inside[None, :] < inner - start), other=0.0)
            b = _weights(matrix, down_ptr, expert * hidden, column, hidden, start, inner, BLOCK_N, BLOCK_K, DESCRIBED)
            sums = tl.dot(y, b, sums)
        pair = tl.load(pairs_ptr + rows, mask=mask, other=0)
        sums *= tl.load(weights_ptr + pair, mask=mask, other=0.0)[:, None]
        columns = column + tl.arange(0, BLOCK_N)
        at = parts_ptr + pair.to(tl.int64)[:, None] * hidden + columns[None, :]
        tl.store(at, sums.to(parts_ptr.dtype.element_ty), mask=mask[:, None] & (columns < hidden)[None, :])


@triton.jit
def _combine_kernel(parts_ptr, out_ptr, hidden, TOP: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(axis=0).to(tl.int64)
    column = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < hidden
    total = tl.zeros((BLOCK,), tl.float32)
    for j in tl.static_range(TOP):
        total += tl.load(parts_ptr + (token * TOP + j) * hidden + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * hidden + column, total.to(out_ptr.dtype.element_ty), mask=mask)


def fused_moe(
    x: torch.Tensor,
    logits: torch.Tensor,
    gate_up: torch.Tensor,
    down: torch.Tensor,
    chosen: torch.Tensor,
    out: torch.Tensor,
    tokens: int,
    experts: int,
    top: int,
    hidden: int,
    inner: int,
) -> None:
    pairs = tokens * top
    weights = torch.empty(pairs, dtype=torch.float32, device=x.device)
    order = torch.empty(pairs, dtype=torch.int32, device=x.device)
    counts = torch.empty(experts, dtype=torch.int32, device=x.device)
    y = torch.empty((pairs, inner), dtype=x.dtype, device=x.device)
    parts = torch.empty((pairs, hidden), dtype=x.dtype, device=x.device)

    padded = triton.next_power_of_2(experts)
    rows = max(1, (2048 if x.is_cuda else 16384) // padded)
    _route_kernel[(triton.cdiv(tokens, rows),)](
        logits, chosen, weights, tokens, experts, TOP=top, SLOTS=triton.next_power_of_2(top), ROWS=rows, EXPERTS=padded
    )
    _place_kernel[(experts,)](chosen, order, counts, pairs, BLOCK=2048)

    up, downwards = _shapes(x.is_cuda, pairs / experts)
    _up_kernel[_grid(up, pairs, experts, inner)](
        x, _described(gate_up, 2 * experts * inner, hidden, up), gate_up, order, counts, y, experts, hidden, inner,
        _most(up, pairs, experts), TOP=top, EXPERTS=padded, DESCRIBED=_has_descriptor(gate_up), **up,
    )  # fmt: skip
    _down_kernel[_grid(downwards, pairs, experts, hidden)](
        y, _described(down, experts * hidden, inner, downwards), down, order, counts, weights, parts, experts, hidden,
        inner, _most(downwards, pairs, experts), EXPERTS=padded, DESCRIBED=_has_descriptor(down), **downwards,
    )  # fmt: skip
    block = min(1024, triton.next_power_of_2(hidden))
    _combine_kernel[(tokens, triton.cdiv(hidden, block))](parts, out, hidden, TOP=top, BLOCK=block)


Shape = dict[str, int]


def _shapes(on_gpu: bool, average: float) -> tuple[Shape, Shape]:
    """Tiles, warps and stages of the two products, for so many rows for each expert."""
    if not on_gpu:
        tile = {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP": 8, "num_warps": 4, "num_stages": 1}
        return tile, tile
    if average <= 32:
        tile = {"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 128, "GROUP": 1, "num_warps": 4, "num_stages": 4}
        return tile, tile
    if average <= 192:
        tile = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8, "num_warps": 4, "num_stages": 4}
        return tile, tile
    tile = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP": 8, "num_warps": 8, "num_stages": 4}
    return tile, tile | {"BLOCK_N": 256, "num_stages": 3}


def _most(shape: Shape, pairs: int, experts: int) -> int:
    """How many tiles of rows there may be: every expert that has a pair may have one tile that is not full."""
    filled = min(pairs, experts)
    return filled + (pairs - filled) // shape["BLOCK_M"]


def _grid(shape: Shape, pairs: int, experts: int, columns: int) -> tuple[int]:
    return (_most(shape, pairs, experts) * triton.cdiv(columns, shape["BLOCK_N"]),)


def _has_descriptor(matrix: torch.Tensor) -> bool:
    """Hardware moves tiles of a matrix whose rows all begin at multiples of 16 bytes."""
    return matrix.data_ptr() % 16 == 0 and matrix.shape[-1] * matrix.element_size() % 16 == 0


def _described(matrix: torch.Tensor, rows: int, columns: int, shape: Shape) -> TensorDescriptor | None:
    if not _has_descriptor(matrix):
        return None
    return TensorDescriptor(matrix, [rows, columns], [columns, 1], [shape["BLOCK_N"], shape["BLOCK_K"]])
