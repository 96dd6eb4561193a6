"""FlashAttention 2, the staff kernel: softmax attention in one pass over the keys, scores kept on the chip.

A program owns BLOCK_M rows of one query head and walks over the keys its last row sees, BLOCK_N at a time. Per row it
keeps the largest score so far, the sum of exponentials and the weighted sum of values, and rescales both when the
maximum grows. Scores are in base 2, because exp2 is what the hardware has. Blocks that all rows see whole need no mask:
a loop of their own.

Hopper gets a kernel in Gluon, Triton's lower layer, for 16-bit rows of 64 or 128 elements at multiples of 16 bytes.
Two warp groups own 64 rows each and another warp loads. A warp group starts the product of the next scores before that
of the last probabilities, and computes exponentials while the tensor cores work; the two take turns at starting.

Sources: Dao, "FlashAttention-2", 2023; Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; for
the overlap Shah et al., "FlashAttention-3", 2024.
"""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

# Its name changed between triton 3.6 and 3.9.
_tma_load = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared


@triton.jit
def _attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, dim, scale,
    q_row_stride, k_row_stride, v_row_stride, out_row_stride,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    # The tiles at the end see the most keys: they come first, so that short ones fill the gaps at the end.
    first = (tl.num_programs(axis=0) - 1 - tl.program_id(axis=0)) * BLOCK_M
    head = tl.program_id(axis=1)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    row, column = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
    rows = first + row
    # A tensor may have more than 2**31 elements, a head has not: 64 bits for where it starts, 32 within it.
    q_start = q_ptr + (head.to(tl.int64) * q_len + first) * q_row_stride
    q_mask = (rows[:, None] < q_len) & (column[None, :] < dim)
    q = tl.load(q_start + row[:, None] * q_row_stride + column[None, :], mask=q_mask, other=0.0)
    k_start = k_ptr + kv_head.to(tl.int64) * kv_len * k_row_stride
    v_start = v_ptr + kv_head.to(tl.int64) * kv_len * v_row_stride
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
        weighted, total, largest, q, k_start, v_start, 0, full, kv_len, dim, last, scale, k_row_stride, v_row_stride,
        False, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    weighted, total, largest = _walk(
        weighted, total, largest, q, k_start, v_start, full, end, kv_len, dim, last, scale, k_row_stride, v_row_stride,
        True, BLOCK_N, BLOCK_D,
    )  # fmt: skip
    sees = total > 0
    lse = tl.where(sees, (largest + tl.log2(total)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + head.to(tl.int64) * q_len + rows, lse, mask=rows < q_len)
    out = weighted * tl.where(sees, 1.0 / total, 0.0)[:, None]
    out_start = out_ptr + (head.to(tl.int64) * q_len + first) * out_row_stride
    tl.store(out_start + row[:, None] * out_row_stride + column[None, :], out.to(out_ptr.dtype.element_ty), mask=q_mask)


@triton.jit
def _walk(
    weighted, total, largest, q, k_start, v_start, start, end, kv_len, dim, last, scale, k_row_stride, v_row_stride,
    MASKED: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Take in the keys from `start` to `end`; a row sees those up to `last`."""
    key, column = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    for first in range(start, end, BLOCK_N):
        mask = (first + key[:, None] < kv_len) & (column[None, :] < dim)
        k_block = k_start + first * k_row_stride
        k = tl.load(k_block + key[:, None] * k_row_stride + column[None, :], mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k))
        if MASKED:
            scores = tl.where(first + key[None, :] <= last[:, None], scores, float("-inf"))
        larger = tl.maximum(largest, tl.max(scores, axis=1) * scale)
        # A row that has seen no key yet has -inf everywhere, and -inf - -inf is no number.
        subtracted = tl.where(larger == float("-inf"), 0.0, larger)
        p = tl.exp2(scores * scale - subtracted[:, None])
        shrink = tl.exp2(largest - subtracted)
        total = total * shrink + tl.sum(p, axis=1)
        v_block = v_start + first * v_row_stride
        v = tl.load(v_block + key[:, None] * v_row_stride + column[None, :], mask=mask, other=0.0)
        weighted = tl.dot(p.to(v.dtype), v, weighted * shrink[:, None])
        largest = larger
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
def _exponentials(
    scores, largest, scale, last, first, MASKED: gl.constexpr, SCORES: gl.constexpr, BLOCK_N: gl.constexpr
):
    if MASKED:
        key = first + gl.arange(0, BLOCK_N, gl.SliceLayout(0, SCORES))
        scores = gl.where(key[None, :] <= last[:, None], scores, float("-inf"))
    larger = gl.maximum(largest, gl.max(scores, 1) * scale)
    subtracted = larger
    if MASKED:
        subtracted = gl.where(larger == float("-inf"), 0.0, larger)
    return gl.exp2(scores * scale - subtracted[:, None]), larger, gl.exp2(largest - subtracted)


@gluon.jit
def _half(
    half, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turns, out_ptr, lse_ptr,
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
                scores, largest, scale, last, (blocks - 1) * BLOCK_N, True, SCORES, BLOCK_N
            )
            total = _partial_sums(p, ROWS, BLOCK_N)
            factor = gl.convert_layout(p.to(dtype), FACTOR)
            masked = gl.maximum(blocks - full, 1)
            for j in range(1, masked):
                block, turn, weighted, total, largest, factor = _step(
                    half, block, turn, weighted, total, largest, factor, zero, q, k_s, v_s,
                    k_ready, k_free, v_ready, v_free, turns, scale, last, (blocks - 1 - j) * BLOCK_N,
                    True, SCORES, OUT, FACTOR, ROWS, BLOCK_N, STAGES,
                )  # fmt: skip
            for j in range(masked, blocks):
                block, turn, weighted, total, largest, factor = _step(
                    half, block, turn, weighted, total, largest, factor, zero, q, k_s, v_s,
                    k_ready, k_free, v_ready, v_free, turns, scale, last, (blocks - 1 - j) * BLOCK_N,
                    False, SCORES, OUT, FACTOR, ROWS, BLOCK_N, STAGES,
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
            weighted, total, largest, out_ptr, lse_ptr, head.to(gl.int64) * q_len, rows, q_len, out_row_stride,
            ROW, OUT, DIM,
        )  # fmt: skip


@gluon.jit
def _store_half(
    weighted, total, largest, out_ptr, lse_ptr, head_start, rows, q_len, out_row_stride,
    ROW: gl.constexpr, OUT: gl.constexpr, DIM: gl.constexpr,
):  # fmt: skip
    """Divide by the sums, and write the rows that there are."""
    whole = gl.convert_layout(gl.sum(total, 1), ROW)
    lse = gl.where(whole > 0, (largest + gl.log2(whole)) * 0.6931471805599453, float("-inf"))
    gl.store(lse_ptr + head_start + rows, lse, mask=rows < q_len)
    inverse = gl.convert_layout(gl.where(whole > 0, 1.0 / whole, 0.0), gl.SliceLayout(1, OUT))
    row = gl.convert_layout(rows, gl.SliceLayout(1, OUT))
    column = gl.arange(0, DIM, gl.SliceLayout(0, OUT))
    inside = (row < q_len)[:, None] & (column < DIM)[None, :]
    start = out_ptr + head_start * out_row_stride
    out = (weighted * inverse[:, None]).to(out_ptr.dtype.element_ty)
    gl.store(start + row[:, None] * out_row_stride + column[None, :], out, mask=inside)


@gluon.jit
def _step(
    half, block, turn, weighted, total, largest, factor, zero, q, k_s, v_s, k_ready, k_free, v_ready, v_free, turns,
    scale, last, first, MASKED: gl.constexpr, SCORES: gl.constexpr, OUT: gl.constexpr, FACTOR: gl.constexpr,
    ROWS: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
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
    p, larger, shrink = _exponentials(scores, largest, scale, last, first, MASKED, SCORES, BLOCK_N)
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
    q_rows, k_rows, v_rows, out_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
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
                 q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
                 CAUSAL, BLOCK_M, BLOCK_N, DIM, GROUP, STAGES)),
        (_half, (1, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turns, out_ptr, lse_ptr,
                 q_heads, kv_heads, q_len, kv_len, scale, out_row_stride, tiles,
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
    if q.is_cuda and dim in {64, 128} and _is_hopper(q) and all(_has_descriptor(rows) for rows in (q, k, v)):
        _on_hopper(q, k, v, out, lse, causal, base_2)
        return
    block_m, block_n, warps, stages = (64, 64, 4, 2) if q.is_cuda else (64, 64, 4, 1)
    _attention_kernel[(triton.cdiv(q_len, block_m), batch * q_heads)](
        q, k, v, out, lse, q_heads, kv_heads, q_len, kv_len, dim, base_2,
        q_row_stride, k_row_stride, v_row_stride, out_row_stride,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        num_warps=warps, num_stages=stages,
    )  # fmt: skip


def _is_hopper(tensor: torch.Tensor) -> bool:
    return torch.cuda.get_device_properties(tensor.device).major == 9


def _has_descriptor(rows: torch.Tensor) -> bool:
    """Hardware moves tiles of rows that all begin at multiples of 16 bytes."""
    return rows.data_ptr() % 16 == 0 and rows.stride(2) * rows.element_size() % 16 == 0


def _on_hopper(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, causal: int, scale: float
) -> None:
    batch, q_heads, q_len, dim = q.shape
    kv_heads, kv_len = k.shape[1], k.shape[2]
    block_m, block_n = 128, 128
    tiles = triton.cdiv(q_len, block_m) * batch * q_heads
    programs = torch.cuda.get_device_properties(q.device).multi_processor_count
    group = next(size for size in (8, 4, 2, 1) if batch * q_heads % size == 0)
    _hopper_kernel[(min(tiles, programs),)](
        _described(q, block_m // 2), _described(k, block_n), _described(v, block_n), out, lse,
        q_heads, kv_heads, q_len, kv_len, scale, out.stride(2), tiles,
        CAUSAL=bool(causal), BLOCK_M=block_m, BLOCK_N=block_n, DIM=dim, GROUP=group, STAGES=2, num_warps=4,
    )  # fmt: skip


def _described(rows: torch.Tensor, height: int) -> TensorDescriptor:
    """All heads' rows below one another.

    A tile may reach into the next head: its scores are masked, its rows not stored.
    """
    dim = rows.shape[3]
    dtype = gl.float16 if rows.dtype == torch.float16 else gl.bfloat16
    layout = gl.NVMMASharedLayout.get_default_for([height, dim], dtype)
    count = rows.shape[0] * rows.shape[1] * rows.shape[2]
    return TensorDescriptor(rows, [count, dim], [rows.stride(2), 1], [height, dim], layout)
