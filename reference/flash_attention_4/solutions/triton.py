"""FlashAttention 4, the staff kernel: attention for tensor cores that outrun the exponentials.

Per row of q it keeps a maximum m, the sum of exponentials and the weighted sum of values, as FlashAttention 2 does,
with two changes. The maximum may be behind: m moves, and the sums are rescaled, only if some row of the tile has a
score that is more than LAG above it (base 2). Until then p = 2**(s - m) is as large as 2**LAG, which all types
hold; the quotient in the end is the same. And every fourth exponential is computed on the multipliers, because the
special function unit, the only one that knows exp2, has a quarter of the throughput that the others need it to
have:

    x = n + f,  |f| <= 1/2,    2**x = 2**n (c0 + c1 f + c2 f**2 + c3 f**3)

n comes from adding 1.5 * 2**23, which leaves no bits for a fraction, and is added to the exponent's bits. The
coefficients were fitted here for the least relative error, 7.5e-5.

`_attention_kernel` runs everywhere. For Blackwell it gets tensor descriptors and large tiles: its products become
tcgen05, and its sums stay in tensor memory unless they are rescaled. Hopper gets a kernel in Gluon, Triton's lower
layer, for rows of 64 or 128 elements at multiples of 16 bytes: two warp groups with a tile of 64 rows each take turns
at the tensor cores, one computing exponentials while the other multiplies, and another warp loads. Its sums are in
registers, where a branch costs more than rescaling: only the maximum lags. An eighth of its exponentials goes to the
multipliers where there is no causal mask; with one, that was slower.

Sources: Zadouri et al., "FlashAttention-4", 2026; Cody and Waite, "Software Manual for the Elementary Functions",
1980; Dao, "FlashAttention-2", 2023; for Hopper Shah et al., "FlashAttention-3", 2024.
"""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor

LAG = tl.constexpr(8.0)
"""How far a row's maximum may be behind, in base 2."""

# Its name changed between triton 3.6 and 3.9.
_tma_load = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared


@triton.jit
def _rows(
    source, head, first, length, dim, stride,
    DESCRIBED: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """A tile of one head's rows. With a descriptor it may reach into the next head's, and its rows are whole."""
    if DESCRIBED:
        tile = source.load([head * length + first, 0])
    else:
        row, column = tl.arange(0, HEIGHT), tl.arange(0, WIDTH)
        # A tensor may have more than 2**31 elements, a head has not: 64 bits for where it starts, 32 within it.
        start = source + (head.to(tl.int64) * length + first) * stride
        mask = (first + row[:, None] < length) & (column[None, :] < dim)
        tile = tl.load(start + row[:, None] * stride + column[None, :], mask=mask, other=0.0)
    return tile


@triton.jit
def _power(x):
    """2**x without the special function unit, for x <= LAG; 2**-126 for what is smaller."""
    x = tl.maximum(x, -126.0)
    shifted = x + 12582912.0
    rest = x - (shifted - 12582912.0)
    cubic = ((0.05517167 * rest + 0.24261114) * rest + 0.69326097) * rest + 0.99992806
    return (cubic.to(tl.int32, bitcast=True) + (shifted.to(tl.int32, bitcast=True) << 23)).to(tl.float32, bitcast=True)


@triton.jit
def _powers(x, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """2**x; every fourth column on the multipliers."""
    even, odd = tl.split(tl.reshape(x, (BLOCK_M, BLOCK_N // 4, 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    even, odd = tl.join(tl.exp2(first), tl.exp2(third)), tl.join(tl.exp2(second), _power(fourth))
    return tl.reshape(tl.join(even, odd), (BLOCK_M, BLOCK_N))


@triton.jit
def _attention_kernel(
    q_rows, k_rows, v_rows, out_ptr, lse_ptr, max_ptr, q_heads, kv_heads, q_len, kv_len, dim, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
    CAUSAL: tl.constexpr, DESCRIBED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # The tiles at the end see the most keys: they come first, so that short ones fill the gaps at the end.
    first = (tl.num_programs(axis=0) - 1 - tl.program_id(axis=0)) * BLOCK_M
    head = tl.program_id(axis=1)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    row, column = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
    rows = first + row
    q = _rows(q_rows, head, first, q_len, dim, q_row_stride, DESCRIBED, BLOCK_M, BLOCK_D)
    offset = kv_len - q_len
    end, full = kv_len, kv_len // BLOCK_N * BLOCK_N
    last = tl.full((BLOCK_M,), kv_len - 1, tl.int32)
    if CAUSAL:
        end = tl.minimum(tl.maximum(first + BLOCK_M + offset, 0), kv_len)
        full = tl.minimum(tl.maximum(first + offset + 1, 0), kv_len) // BLOCK_N * BLOCK_N
        last = tl.minimum(rows + offset, kv_len - 1)
    largest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    weighted = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    weighted, total, largest = _walk(
        weighted, total, largest, q, k_rows, v_rows, kv_head, 0, full, kv_len, dim, last, scale,
        k_row_stride, v_row_stride, False, DESCRIBED, BLOCK_M, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    weighted, total, largest = _walk(
        weighted, total, largest, q, k_rows, v_rows, kv_head, full, end, kv_len, dim, last, scale,
        k_row_stride, v_row_stride, True, DESCRIBED, BLOCK_M, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    sees = largest > float("-inf")
    lse = tl.where(sees, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + head.to(tl.int64) * q_len + rows, lse, mask=rows < q_len)
    tl.store(max_ptr + head.to(tl.int64) * q_len + rows, largest, mask=rows < q_len)
    out = weighted * tl.where(sees, 1.0 / total, 0.0)[:, None]
    out_start = out_ptr + (head.to(tl.int64) * q_len + first) * out_row_stride
    mask = (rows[:, None] < q_len) & (column[None, :] < dim)
    tl.store(out_start + row[:, None] * out_row_stride + column[None, :], out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _walk(
    weighted, total, largest, q, k_rows, v_rows, kv_head, start, end, kv_len, dim, last, scale,
    k_row_stride, v_row_stride,
    MASKED: tl.constexpr, DESCRIBED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Take in the keys from `start` to `end`; a row sees those up to `last`."""
    key = tl.arange(0, BLOCK_N)
    for first in range(start, end, BLOCK_N):
        k = _rows(k_rows, kv_head, first, kv_len, dim, k_row_stride, DESCRIBED, BLOCK_N, BLOCK_D)
        scores = tl.dot(q, tl.trans(k))
        if MASKED:
            scores = tl.where(first + key[None, :] <= last[:, None], scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1) * scale)
        behind = larger > largest + LAG
        if tl.max(behind.to(tl.int32), axis=0) > 0:
            raised = tl.where(behind, larger, largest)
            # A row that has seen no key yet has -inf everywhere, and -inf - -inf is no number.
            shrink = tl.exp2(largest - tl.where(raised == float("-inf"), 0.0, raised))
            total = total * shrink
            weighted = weighted * shrink[:, None]
            largest = raised
        subtracted = tl.where(largest == float("-inf"), 0.0, largest)
        p = _powers(scores * scale - subtracted[:, None], BLOCK_M, BLOCK_N)
        total = total + tl.sum(p, axis=1)
        v = _rows(v_rows, kv_head, first, kv_len, dim, v_row_stride, DESCRIBED, BLOCK_N, BLOCK_D)
        weighted = tl.dot(p.to(v.dtype), v, weighted)
    return weighted, total, largest


# --- Hopper ----------------------------------------------------------------------------------------------------------


@gluon.jit
def _share(tiles):
    """How many of all tiles are this program's."""
    return gl.cdiv(tiles - gl.program_id(0), gl.num_programs(0))


@gluon.jit
def _tile(
    number, q_heads, kv_heads, q_len, kv_len,
    CAUSAL: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """Head, key head, first row, blocks of keys, and those that all rows see. Groups of heads share keys in L2."""
    tile = number * gl.num_programs(0) + gl.program_id(0)
    tiles_m = gl.cdiv(q_len, BLOCK_M)
    within = tile % (tiles_m * GROUP)
    head = tile // (tiles_m * GROUP) * GROUP + within % GROUP
    row = within // GROUP
    end, full = kv_len, kv_len // BLOCK_N
    if CAUSAL:
        row = tiles_m - 1 - row
        first_seen = row * BLOCK_M + kv_len - q_len + 1
        end = gl.minimum(gl.maximum(first_seen + BLOCK_M - 1, 0), kv_len)
        full = gl.minimum(gl.maximum(first_seen, 0), kv_len) // BLOCK_N
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    return head, kv_head, row * BLOCK_M, gl.cdiv(end, BLOCK_N), full


@gluon.jit
def _load_tiles(
    q_rows, k_rows, v_rows, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free,
    q_heads, kv_heads, q_len, kv_len, tiles,
    CAUSAL: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, GROUP: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """One warp: from the last block of keys to the first, as far ahead as there is room."""
    block = 0
    for number in range(_share(tiles)):
        head, kv_head, first, blocks, _full = _tile(
            number, q_heads, kv_heads, q_len, kv_len, CAUSAL, BLOCK_M, BLOCK_N, GROUP
        )
        for half in gl.static_range(2):
            mbarrier.wait(q_free.index(half), (number & 1) ^ 1)
            mbarrier.expect(q_ready.index(half), q_rows.block_type.nbytes)
            place = head * q_len + first + half * (BLOCK_M // 2)
            _tma_load(q_rows, [place, 0], q_ready.index(half), q_s.index(half))
        for j in range(blocks):
            place = kv_head * kv_len + (blocks - 1 - j) * BLOCK_N
            slot, phase = block % STAGES, (block // STAGES) & 1
            mbarrier.wait(k_free.index(slot), phase ^ 1)
            mbarrier.expect(k_ready.index(slot), k_rows.block_type.nbytes)
            _tma_load(k_rows, [place, 0], k_ready.index(slot), k_s.index(slot))
            mbarrier.wait(v_free.index(slot), phase ^ 1)
            mbarrier.expect(v_ready.index(slot), v_rows.block_type.nbytes)
            _tma_load(v_rows, [place, 0], v_ready.index(slot), v_s.index(slot))
            block += 1


@gluon.jit
def _partial_sums(p, ROWS: gl.constexpr, BLOCK_N: gl.constexpr):
    """Sums that each thread can form alone; the four threads of a row add theirs up once, at the end."""
    return gl.sum(gl.reshape(p, (ROWS, BLOCK_N // 8, 8)), 1)


@gluon.jit
def _wide_power(x):
    """`_power` in Gluon."""
    x = gl.maximum(x, -126.0)
    shifted = x + 12582912.0
    rest = x - (shifted - 12582912.0)
    cubic = ((0.05517167 * rest + 0.24261114) * rest + 0.69326097) * rest + 0.99992806
    return (cubic.to(gl.int32, bitcast=True) + (shifted.to(gl.int32, bitcast=True) << 23)).to(gl.float32, bitcast=True)


@gluon.jit
def _wide_powers(x, SCORES: gl.constexpr, ROWS: gl.constexpr, BLOCK_N: gl.constexpr):
    """2**x; of 32 columns four on the multipliers. A thread holds pairs, 8 columns apart: nothing moves."""
    left, right = gl.split(gl.permute(gl.reshape(x, (ROWS, BLOCK_N // 16, 2, 8)), (0, 1, 3, 2)))
    third, fourth = gl.split(gl.permute(gl.reshape(right, (ROWS, BLOCK_N // 32, 2, 8)), (0, 1, 3, 2)))
    even, odd = gl.split(gl.reshape(fourth, (ROWS, BLOCK_N // 32, 4, 2)))
    fourth = gl.reshape(gl.join(gl.exp2(even), _wide_power(odd)), (ROWS, BLOCK_N // 32, 8))
    fourth = gl.convert_layout(fourth, third.type.layout)
    right = gl.reshape(gl.permute(gl.join(gl.exp2(third), fourth), (0, 1, 3, 2)), (ROWS, BLOCK_N // 16, 8))
    right = gl.convert_layout(right, left.type.layout)
    whole = gl.reshape(gl.permute(gl.join(gl.exp2(left), right), (0, 1, 3, 2)), (ROWS, BLOCK_N))
    return gl.convert_layout(whole, SCORES)


@gluon.jit
def _exponentials(
    scores, largest, scale, last, first,
    MASKED: gl.constexpr, CUBIC: gl.constexpr, SCORES: gl.constexpr, ROWS: gl.constexpr, BLOCK_N: gl.constexpr,
):  # fmt: skip
    if MASKED:
        key = first + gl.arange(0, BLOCK_N, gl.SliceLayout(0, SCORES))
        scores = gl.where(key[None, :] <= last[:, None], scores, float("-inf"))
    larger = gl.max(scores, 1) * scale
    larger = gl.where(larger > largest + LAG, larger, largest)
    subtracted = larger
    if MASKED:
        subtracted = gl.where(larger == float("-inf"), 0.0, larger)
    x = scores * scale - subtracted[:, None]
    p = _wide_powers(x, SCORES, ROWS, BLOCK_N) if CUBIC else gl.exp2(x)
    return p, larger, gl.exp2(largest - subtracted)


@gluon.jit
def _half(
    half, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turns, out_ptr, lse_ptr, max_ptr,
    q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
    CAUSAL: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, DIM: gl.constexpr, GROUP: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip
    """One warp group: 64 rows of every tile."""
    ROWS: gl.constexpr = BLOCK_M // 2
    SCORES: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16]
    )
    OUT: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, DIM, 16])
    FACTOR: gl.constexpr = gl.DotOperandLayout(0, OUT, 2)
    ROW: gl.constexpr = gl.SliceLayout(1, SCORES)
    dtype: gl.constexpr = q_s.dtype
    zero = gl.zeros((ROWS, BLOCK_N), gl.float32, SCORES)
    block, turn = 0, 0
    for number in range(_share(tiles)):
        head, _kv_head, first, blocks, full = _tile(
            number, q_heads, kv_heads, q_len, kv_len, CAUSAL, BLOCK_M, BLOCK_N, GROUP
        )
        rows = first + half * ROWS + gl.arange(0, ROWS, ROW)
        last = gl.zeros((ROWS,), gl.int32, ROW) + (kv_len - 1)
        if CAUSAL:
            last = gl.minimum(rows + (kv_len - q_len), kv_len - 1)
        largest = gl.full((ROWS,), float("-inf"), gl.float32, ROW)
        total = _partial_sums(zero, ROWS, BLOCK_N)
        weighted = gl.zeros((ROWS, DIM), gl.float32, OUT)
        mbarrier.wait(q_ready.index(half), number & 1)
        q = q_s.index(half)
        if blocks > 0:
            mbarrier.wait(turns.index(half), turn & 1)
            mbarrier.wait(k_ready.index(block % STAGES), (block // STAGES) & 1)
            scores = warpgroup_mma(q, k_s.index(block % STAGES).permute((1, 0)), zero, use_acc=False, is_async=True)
            mbarrier.arrive(turns.index(1 - half), count=1)
            turn += 1
            scores = warpgroup_mma_wait(0, [scores])
            mbarrier.arrive(k_free.index(block % STAGES), count=1)
            p, largest, _shrink = _exponentials(
                scores, largest, scale, last, (blocks - 1) * BLOCK_N, True, not CAUSAL, SCORES, ROWS, BLOCK_N
            )
            total = _partial_sums(p, ROWS, BLOCK_N)
            factor = gl.convert_layout(p.to(dtype), FACTOR)
            masked = gl.maximum(blocks - full, 1)
            for j in range(1, masked):
                block, turn, weighted, total, largest, factor = _step(
                    half, block, turn, weighted, total, largest, factor, zero, q, k_s, v_s,
                    k_ready, k_free, v_ready, v_free, turns, scale, last, (blocks - 1 - j) * BLOCK_N,
                    True, not CAUSAL, SCORES, OUT, FACTOR, ROWS, BLOCK_N, STAGES,
                )  # fmt: skip
            for j in range(masked, blocks):
                block, turn, weighted, total, largest, factor = _step(
                    half, block, turn, weighted, total, largest, factor, zero, q, k_s, v_s,
                    k_ready, k_free, v_ready, v_free, turns, scale, last, (blocks - 1 - j) * BLOCK_N,
                    False, not CAUSAL, SCORES, OUT, FACTOR, ROWS, BLOCK_N, STAGES,
                )  # fmt: skip
            mbarrier.arrive(q_free.index(half), count=1)
            mbarrier.wait(v_ready.index(block % STAGES), (block // STAGES) & 1)
            product = warpgroup_mma(factor, v_s.index(block % STAGES), weighted, is_async=True)
            weighted = warpgroup_mma_wait(0, [product])
            mbarrier.arrive(v_free.index(block % STAGES), count=1)
            block += 1
        else:
            mbarrier.arrive(q_free.index(half), count=1)
        _store_half(
            weighted, total, largest, out_ptr, lse_ptr, max_ptr, head.to(gl.int64) * q_len, rows, q_len, out_row_stride,
            ROW, OUT, DIM,
        )  # fmt: skip


@gluon.jit
def _store_half(
    weighted, total, largest, out_ptr, lse_ptr, max_ptr, head_start, rows, q_len, out_row_stride,
    ROW: gl.constexpr, OUT: gl.constexpr, DIM: gl.constexpr,
):  # fmt: skip
    """Divide by the sums, and write the rows that there are."""
    whole = gl.convert_layout(gl.sum(total, 1), ROW)
    sees = largest > float("-inf")
    lse = gl.where(sees, (largest + gl.log2(whole)) * 0.6931471805599453, float("-inf"))
    gl.store(lse_ptr + head_start + rows, lse, mask=rows < q_len)
    gl.store(max_ptr + head_start + rows, largest, mask=rows < q_len)
    inverse = gl.convert_layout(gl.where(sees, 1.0 / whole, 0.0), gl.SliceLayout(1, OUT))
    row = gl.convert_layout(rows, gl.SliceLayout(1, OUT))
    column = gl.arange(0, DIM, gl.SliceLayout(0, OUT))
    inside = (row < q_len)[:, None] & (column < DIM)[None, :]
    start = out_ptr + head_start * out_row_stride
    out = (weighted * inverse[:, None]).to(out_ptr.dtype.element_ty)
    gl.store(start + row[:, None] * out_row_stride + column[None, :], out, mask=inside)


@gluon.jit
def _step(
    half, block, turn, weighted, total, largest, factor, zero, q, k_s, v_s, k_ready, k_free, v_ready, v_free, turns,
    scale, last, first, MASKED: gl.constexpr, CUBIC: gl.constexpr, SCORES: gl.constexpr, OUT: gl.constexpr,
    FACTOR: gl.constexpr, ROWS: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Start the next scores, then add up the last block's values; exponentials meanwhile."""
    follows = block + 1
    mbarrier.wait(k_ready.index(follows % STAGES), (follows // STAGES) & 1)
    mbarrier.wait(turns.index(half), turn & 1)
    scores = warpgroup_mma(q, k_s.index(follows % STAGES).permute((1, 0)), zero, use_acc=False, is_async=True)
    mbarrier.wait(v_ready.index(block % STAGES), (block // STAGES) & 1)
    product = warpgroup_mma(factor, v_s.index(block % STAGES), weighted, is_async=True)
    mbarrier.arrive(turns.index(1 - half), count=1)
    scores = warpgroup_mma_wait(1, [scores])
    mbarrier.arrive(k_free.index(follows % STAGES), count=1)
    p, larger, shrink = _exponentials(scores, largest, scale, last, first, MASKED, CUBIC, SCORES, ROWS, BLOCK_N)
    shared = gl.convert_layout(shrink, gl.SliceLayout(1, total.type.layout))
    total = total * shared[:, None] + _partial_sums(p, ROWS, BLOCK_N)
    follow = gl.convert_layout(p.to(factor.dtype), FACTOR)
    # It never waits: the values are there. Its branch keeps the assembler from moving the exponentials behind the wait
    # for the tensor cores, where nothing would overlap.
    mbarrier.wait(v_ready.index(block % STAGES), (block // STAGES) & 1)
    weighted = warpgroup_mma_wait(0, [product])
    mbarrier.arrive(v_free.index(block % STAGES), count=1)
    weighted = weighted * gl.convert_layout(shrink, gl.SliceLayout(1, OUT))[:, None]
    return follows, turn + 1, weighted, total, larger, follow


@gluon.jit
def _hopper_kernel(
    q_rows, k_rows, v_rows, out_ptr, lse_ptr, max_ptr, q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
    CAUSAL: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, DIM: gl.constexpr, GROUP: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip
    q_s = gl.allocate_shared_memory(q_rows.dtype, [2, BLOCK_M // 2, DIM], q_rows.layout)
    k_s = gl.allocate_shared_memory(k_rows.dtype, [STAGES, BLOCK_N, DIM], k_rows.layout)
    v_s = gl.allocate_shared_memory(v_rows.dtype, [STAGES, BLOCK_N, DIM], v_rows.layout)
    q_ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_free = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(q_ready.index(i), count=1)
        mbarrier.init(q_free.index(i), count=1)
        mbarrier.init(turns.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_ready.index(i), count=1)
        mbarrier.init(k_free.index(i), count=2)
        mbarrier.init(v_ready.index(i), count=1)
        mbarrier.init(v_free.index(i), count=2)
    mbarrier.arrive(turns.index(0), count=1)
    gl.warp_specialize([
        (_half, (0, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turns, out_ptr, lse_ptr,
                 max_ptr, q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
                 CAUSAL, BLOCK_M, BLOCK_N, DIM, GROUP, STAGES)),
        (_half, (1, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turns, out_ptr, lse_ptr,
                 max_ptr, q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
                 CAUSAL, BLOCK_M, BLOCK_N, DIM, GROUP, STAGES)),
        (_load_tiles, (q_rows, k_rows, v_rows, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free,
                       q_heads, kv_heads, q_len, kv_len, tiles, CAUSAL, BLOCK_M, BLOCK_N, GROUP, STAGES)),
    ], [4, 1], [240, 24])  # fmt: skip


# --- launching -------------------------------------------------------------------------------------------------------


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    row_max: torch.Tensor,
    batch: int,
    q_heads: int,
    kv_heads: int,
    q_len: int,
    kv_len: int,
    dim: int,
    causal: int,
    scale: float,
    q_row_stride: int,
    k_row_stride: int,
    v_row_stride: int,
    out_row_stride: int,
) -> None:
    base_2 = scale * 1.4426950408889634
    described = q.is_cuda and dim in {64, 128} and all(_has_descriptor(rows) for rows in (q, k, v))
    generation = torch.cuda.get_device_properties(q.device).major if q.is_cuda else 0
    if described and generation == 9:
        _on_hopper(q, k, v, out, lse, row_max, causal, base_2)
        return
    described = described and generation >= 10
    block_m, block_n, warps = (128, 128, 8) if described else (64, 64, 4)
    sources = (q, k, v)
    if described:
        sources = tuple(_rows_of(rows, block) for rows, block in ((q, block_m), (k, block_n), (v, block_n)))
    _attention_kernel[(triton.cdiv(q_len, block_m), batch * q_heads)](
        *sources, out, lse, row_max, q_heads, kv_heads, q_len, kv_len, dim, base_2,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=bool(causal), DESCRIBED=described, BLOCK_M=block_m, BLOCK_N=block_n,
        BLOCK_D=max(16, triton.next_power_of_2(dim)), num_warps=warps, num_stages=2,
    )  # fmt: skip


def _has_descriptor(rows: torch.Tensor) -> bool:
    """Hardware moves tiles of rows that all begin at multiples of 16 bytes."""
    return rows.data_ptr() % 16 == 0 and rows.stride(2) * rows.element_size() % 16 == 0


def _rows_of(rows: torch.Tensor, height: int) -> TensorDescriptor:
    """All heads' rows below one another."""
    count, dim = rows.shape[0] * rows.shape[1] * rows.shape[2], rows.shape[3]
    return TensorDescriptor(rows, [count, dim], [rows.stride(2), 1], [height, dim])


def _on_hopper(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    row_max: torch.Tensor,
    causal: int,
    scale: float,
) -> None:
    batch, q_heads, q_len, dim = q.shape
    kv_heads, kv_len = k.shape[1], k.shape[2]
    block_m, block_n = 128, 128
    tiles = triton.cdiv(q_len, block_m) * batch * q_heads
    programs = torch.cuda.get_device_properties(q.device).multi_processor_count
    group = next(size for size in (8, 4, 2, 1) if batch * q_heads % size == 0)
    _hopper_kernel[(min(tiles, programs),)](
        _described(q, block_m // 2), _described(k, block_n), _described(v, block_n), out, lse, row_max,
        q_heads, kv_heads, q_len, kv_len, scale, out.stride(2), tiles,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, DIM=dim, GROUP=group, STAGES=2, num_warps=4,
    )  # fmt: skip


def _described(rows: torch.Tensor, height: int) -> GluonDescriptor:
    """All heads' rows below one another.

    A tile may reach into the next head: its scores are masked, its rows not stored.
    """
    dim = rows.shape[3]
    dtype = gl.float16 if rows.dtype == torch.float16 else gl.bfloat16
    layout = gl.NVMMASharedLayout.get_default_for([height, dim], dtype)
    count = rows.shape[0] * rows.shape[1] * rows.shape[2]
    return GluonDescriptor(rows, [count, dim], [rows.stride(2), 1], [height, dim], layout)
