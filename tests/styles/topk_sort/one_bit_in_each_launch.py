# Key and index in one word of 64 bits, split by one bit in each launch, the lowest of the key first.
import torch
import triton
import triton.language as tl


@triton.jit
def pack(keys, lengths, words, n, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < tl.load(lengths + row)
    x = tl.load(keys + row * n + i, mask=inside, other=0.0).to(tl.float32)
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    rank = tl.where(bits < 0, bits, bits ^ 0x7FFFFFFF)
    rank = tl.where(x != x, 0, rank)
    # -inf has 0xff800000, so that this is behind every key.
    rank = tl.where(inside, rank, -1)
    tl.store(words + row * n + i, (rank.to(tl.int64) << 32) | i.to(tl.int64), mask=i < n)


@triton.jit
def split(words, to, n, bit, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    zeros = 0
    for start in range(0, n, BLOCK):
        w = tl.load(words + row * n + start + lane, mask=start + lane < n, other=-1)
        zeros += tl.sum(1 - ((w >> bit) & 1).to(tl.int32))
    zero, one = 0, zeros
    for start in range(0, n, BLOCK):
        inside = start + lane < n
        w = tl.load(words + row * n + start + lane, mask=inside, other=-1)
        b = ((w >> bit) & 1).to(tl.int32)
        place = tl.where(b == 0, zero + tl.cumsum(1 - b), one + tl.cumsum(b)) - 1
        tl.store(to + row * n + place, w, mask=inside)
        zero += tl.sum(1 - b)
        one += tl.sum(b)


@triton.jit
def unpack(keys, lengths, words, values, indices, n, k, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = i < tl.minimum(tl.load(lengths + row), k)
    at = (tl.load(words + row * n + i, mask=found, other=0) & 0x7FFFFFFF).to(tl.int32)
    x = tl.load(keys + row * n + at, mask=found, other=float("-inf"))
    tl.store(values + row * k + i, x, mask=i < k)
    tl.store(indices + row * k + i, tl.where(found, at, -1), mask=i < k)


def topk_sort(keys, lengths, values, indices, rows, n, k):
    block = min(triton.next_power_of_2(n), 2048 if keys.is_cuda else 32768)
    words, to = torch.empty((2, rows, n), dtype=torch.int64, device=keys.device)
    pack[(triton.cdiv(n, block), rows)](keys, lengths, words, n, BLOCK=block)
    for bit in range(32, 64):
        split[(rows,)](words, to, n, bit, BLOCK=block)
        words, to = to, words
    unpack[(triton.cdiv(k, block), rows)](keys, lengths, words, values, indices, n, k, BLOCK=block)
