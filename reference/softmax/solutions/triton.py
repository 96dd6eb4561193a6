"""Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / Σ_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].

Rows that fit a program's registers are read once and written once: 2·rows·cols·e bytes, the least there is.

Longer rows of whole parts are split over programs, so that they too are read once. Each program keeps its part in
registers, publishes the part's maximum and sum in one word of 64 bits, waits for the words of the row's other parts,
and writes its quotients. Parts are numbered by a ticket, in the order in which programs begin to run: of all rows that
somebody waits for, at most the last one has parts that nobody has begun, and the others' programs end and make room.

Other long rows go through the online form, and all of them in the interpreter, where programs run one after the other
and none can wait for a later one. Maximum m and sum s are carried over blocks of columns,

    m' = max(m, max(block)),    s' = s · exp(m - m') + Σ exp(block - m'),

so that the first pass needs one read, and a second writes the quotients: 3·rows·cols·e bytes. The second goes
backwards: what was read last is still in the L2 cache. Exponentials are taken in base 2, exp(x) = 2^(x · log2 e),
which is what the hardware has.

Sources: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867); the tickets and
words are those of Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", NVIDIA 2016.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
# Five programs of four warps to a multiprocessor keep 160 KiB of rows in 96 registers of each thread.
PART_BYTES = 32768
WARPS = 4
REGISTERS = 96
CHUNKS = 2
# A row's parts wait for one another, so there has to be room for all of them: seven multiprocessors have it. And every
# warp reads all words of a row by itself: of more than 32, two warps could hold copies of a word that differ.
MOST_PARTS = 32


@triton.jit
def _softmax_short_kernel(
    x_ptr, out_ptr, rows, cols, x_row_stride, out_row_stride, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    row = tl.program_id(axis=0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.arange(0, BLOCK_COLS)[None, :]
    mask = (row < rows) & (column < cols)
    # Lanes outside count as -inf; a row beyond the last is all -inf, so its maximum is replaced to keep NaN out.
    x = tl.load(x_ptr + row * x_row_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    largest = tl.max(x, axis=1, keep_dims=True)
    largest = tl.where(largest == -float("inf"), 0.0, largest)
    numerator = tl.exp2((x - largest) * LOG2_E)
    total = tl.sum(numerator, axis=1, keep_dims=True)
    out = numerator / tl.where(row < rows, total, 1.0)
    tl.store(out_ptr + row * out_row_stride + column, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _unseen(x, PACK: tl.constexpr):
    """x, by a way that the compiler does not see: otherwise it keeps x as the float32 that it once made of it.

    `PACK` is how many elements fit 32 bits. With 16 bits an element, twice as many fit the registers.
    """
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=x.dtype, is_pure=False, pack=PACK)


@triton.jit
def _publish(word_ptr, largest, total):
    """Make a part's maximum and sum known. No such word is 0: a sum of 0 goes with a maximum of -inf."""
    high = largest.to(tl.int32, bitcast=True).to(tl.int64) << 32
    low = total.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    tl.atomic_xchg(word_ptr, high | low, sem="relaxed")


@triton.jit
def _of_row(words_ptr, parts, PARTS: tl.constexpr):
    """The row's maximum and sum, as soon as all of its parts are published."""
    part = tl.arange(0, PARTS)
    pointers = words_ptr + tl.where(part < parts, part, 0)
    word = tl.load(pointers, volatile=True)
    while tl.min((word != 0).to(tl.int32), axis=0) == 0:
        word = tl.load(pointers, volatile=True)
    largest = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    total = (word & 0xFFFFFFFF).to(tl.int32).to(tl.float32, bitcast=True)
    row_largest = tl.max(largest, axis=0)
    total = tl.where(part < parts, total, 0.0) * tl.exp2((largest - row_largest) * LOG2_E)
    return row_largest, tl.sum(total, axis=0)


@triton.jit
def _softmax_split_kernel(
    x_ptr,
    out_ptr,
    state_ptr,
    parts,
    x_row_stride,
    out_row_stride,
    PARTS: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHUNK_COLS: tl.constexpr,
):
    # The ticket, then a word for every part; all of them are 0 at first.
    turn = tl.atomic_add(state_ptr, 1, sem="relaxed")
    words_ptr = state_ptr + 1
    row, part = turn // parts, turn % parts
    column = part * (CHUNKS * CHUNK_COLS) + tl.arange(0, CHUNK_COLS)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    # In chunks, as the compiler takes registers for every step of an expression over all of it.
    x = ()
    for chunk in tl.static_range(CHUNKS):
        x += (tl.load(x_ptr + column + chunk * CHUNK_COLS),)
    highest = x[0]
    for chunk in tl.static_range(1, CHUNKS):
        highest = tl.maximum(highest, x[chunk])
    largest = tl.max(highest, axis=0).to(tl.float32)
    # In a part of -inf only, -inf - -inf must not become NaN.
    pivot = tl.where(largest == -float("inf"), 0.0, largest)
    PACK: tl.constexpr = 32 // x_ptr.dtype.element_ty.primitive_bitwidth
    total = tl.zeros((CHUNK_COLS,), tl.float32)
    for chunk in tl.static_range(CHUNKS):
        total += tl.exp2((_unseen(x[chunk], PACK).to(tl.float32) - pivot) * LOG2_E)
    _publish(words_ptr + turn, largest, tl.sum(total, axis=0))
    row_largest, row_total = _of_row(words_ptr + row * parts, parts, PARTS)
    scale = 1.0 / row_total
    for chunk in tl.static_range(CHUNKS):
        out = tl.exp2((_unseen(x[chunk], PACK).to(tl.float32) - row_largest) * LOG2_E) * scale
        tl.store(out_ptr + column + chunk * CHUNK_COLS, out.to(out_ptr.dtype.element_ty))


@triton.jit
def _softmax_online_kernel(x_ptr, out_ptr, cols, x_row_stride, out_row_stride, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_ptr += row * x_row_stride
    out_ptr += row * out_row_stride
    # One running maximum and sum per lane: the loop has no reduction in it, the lanes meet once at the end.
    largest = tl.full((BLOCK_COLS,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_COLS,), tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        x = tl.load(x_ptr + column, mask=column < cols, other=-float("inf"), eviction_policy="evict_last")
        x = x.to(tl.float32)
        raised = tl.maximum(largest, x)
        # While a lane has seen -inf only, -inf - -inf must not become NaN.
        pivot = tl.where(raised == -float("inf"), 0.0, raised)
        total = total * tl.exp2((largest - pivot) * LOG2_E) + tl.exp2((x - pivot) * LOG2_E)
        largest = raised
    row_largest = tl.max(largest, axis=0)
    row_total = tl.sum(total * tl.exp2((largest - row_largest) * LOG2_E), axis=0)
    scale = 1.0 / row_total
    blocks = tl.cdiv(cols, BLOCK_COLS)
    for done in range(blocks):
        column = (blocks - 1 - done) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
        # Nobody reads it again, nor what is written here: neither should push out what others are to read.
        x = tl.load(x_ptr + column, mask=column < cols, other=-float("inf"), eviction_policy="evict_first")
        out = tl.exp2((x.to(tl.float32) - row_largest) * LOG2_E) * scale
        tl.store(out_ptr + column, out.to(out_ptr.dtype.element_ty), mask=column < cols, cache_modifier=".cs")


def softmax(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    if cols <= 16384:
        _short(x, out, rows, cols, x_row_stride, out_row_stride)
        return
    parts, left = divmod(cols, PART_BYTES // x.element_size())
    if x.is_cuda and left == 0 and parts <= MOST_PARTS:
        _split(x, out, rows, parts, x_row_stride, out_row_stride)
        return
    block_cols = 8192 if x.is_cuda else 16384
    _softmax_online_kernel[(rows,)](x, out, cols, x_row_stride, out_row_stride, BLOCK_COLS=block_cols, num_warps=32)


def _short(x: torch.Tensor, out: torch.Tensor, rows: int, cols: int, x_row_stride: int, out_row_stride: int) -> None:
    block_cols = triton.next_power_of_2(cols)
    # A program wants about 4096 elements on a GPU; the interpreter pays per program, so there it takes many more.
    block_rows = max(1, (4096 if x.is_cuda else 65536) // block_cols)
    grid = (triton.cdiv(rows, block_rows),)
    warps = min(16, max(4, block_rows * block_cols // 512))
    _softmax_short_kernel[grid](
        x, out, rows, cols, x_row_stride, out_row_stride, BLOCK_ROWS=block_rows, BLOCK_COLS=block_cols, num_warps=warps
    )


def _split(x: torch.Tensor, out: torch.Tensor, rows: int, parts: int, x_row_stride: int, out_row_stride: int) -> None:
    state = torch.zeros(1 + rows * parts, dtype=torch.int64, device=x.device)
    _softmax_split_kernel[(rows * parts,)](
        x,
        out,
        state,
        parts,
        x_row_stride,
        out_row_stride,
        PARTS=triton.next_power_of_2(parts),
        CHUNKS=CHUNKS,
        CHUNK_COLS=PART_BYTES // x.element_size() // CHUNKS,
        num_warps=WARPS,
        maxnreg=REGISTERS,
    )
