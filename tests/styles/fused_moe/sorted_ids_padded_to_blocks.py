# sorted ids padded to whole blocks, an expert id per block, one kernel called twice: how serving engines began
import torch
import triton
import triton.language as tl


@triton.jit
def route(S, IDX, W, E, K, EP: tl.constexpr, KP: tl.constexpr):
    t = tl.program_id(0)
    e = tl.arange(0, EP)
    k = tl.arange(0, KP)
    s = tl.load(S + t * E + e, mask=e < E, other=-float("inf"))
    top = tl.full([KP], -float("inf"), tl.float32)
    for i in range(K):
        v, j = tl.max(s, axis=0, return_indices=True)
        tl.store(IDX + t * K + i, j)
        top = tl.where(k == i, v, top)
        s = tl.where(e == j, -float("inf"), s)
    p = tl.exp(top - tl.max(top, axis=0))
    tl.store(W + t * K + k, p / tl.sum(p, axis=0), mask=k < K)


@triton.jit
def align(IDX, SORTED, OWNER, n, E, capacity, EP: tl.constexpr, B: tl.constexpr, BLK: tl.constexpr):
    # a single program: counts, offsets that are multiples of BLK, then every pair to its place
    e = tl.arange(0, EP)
    lane = tl.arange(0, B)
    counts = tl.zeros([EP], tl.int32)
    for s in range(0, n, B):
        v = tl.load(IDX + s + lane, mask=s + lane < n, other=EP)
        counts += tl.sum((v[:, None] == e[None, :]).to(tl.int32), axis=0)
    padded = (counts + BLK - 1) // BLK * BLK
    nxt = tl.cumsum(padded, axis=0) - padded
    for s in range(0, capacity, B):
        tl.store(SORTED + s + lane, n, mask=s + lane < capacity)
    tl.debug_barrier()
    first = nxt // BLK
    for b in range(capacity // BLK):
        owner = tl.max(tl.where((first <= b) & (b < first + padded // BLK), e, -1), axis=0)
        tl.store(OWNER + b, owner)
    for s in range(0, n, B):
        v = tl.load(IDX + s + lane, mask=s + lane < n, other=EP)
        hit = (v[:, None] == e[None, :]).to(tl.int32)
        pos = tl.sum(hit * (nxt[None, :] + tl.cumsum(hit, axis=0) - 1), axis=1)
        tl.store(SORTED + pos, s + lane, mask=s + lane < n)
        nxt += tl.sum(hit, axis=0)


@triton.jit
def moe_gemm(
    A, Bm, C, W, SORTED, OWNER, n, N, KK, div, MUL: tl.constexpr, BLK: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    b = tl.program_id(0)
    e = tl.load(OWNER + b)
    if e >= 0:
        ids = tl.load(SORTED + b * BLK + tl.arange(0, BLK))
        ok = ids < n
        cols = tl.program_id(1) * BN + tl.arange(0, BN)
        kk = tl.arange(0, BK)
        acc = tl.zeros([BLK, BN], tl.float32)
        for k0 in range(0, KK, BK):
            a = tl.load(
                A + (ids // div)[:, None].to(tl.int64) * KK + k0 + kk[None, :],
                mask=ok[:, None] & (k0 + kk < KK)[None, :],
                other=0.0,
            )
            w = tl.load(
                Bm + (e.to(tl.int64) * N + cols)[None, :] * KK + k0 + kk[:, None],
                mask=(cols < N)[None, :] & (k0 + kk < KK)[:, None],
                other=0.0,
            )
            acc += tl.dot(a, w)
        if MUL:
            acc = acc * tl.load(W + ids, mask=ok, other=0.0)[:, None]
        tl.store(C + ids[:, None].to(tl.int64) * N + cols[None, :], acc, mask=ok[:, None] & (cols < N)[None, :])


@triton.jit
def silu_and_mul(H, Y, I, BI: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BI + tl.arange(0, BI)
    g = tl.load(H + r * 2 * I + c, mask=c < I, other=0.0)
    u = tl.load(H + r * 2 * I + I + c, mask=c < I, other=0.0)
    tl.store(Y + r * I + c, g * tl.sigmoid(g) * u, mask=c < I)


@triton.jit
def moe_sum(P, O, K, H, BH: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BH + tl.arange(0, BH)
    acc = tl.zeros([BH], tl.float32)
    for i in range(K):
        acc += tl.load(P + (t * K + i) * H + c, mask=c < H, other=0.0)
    tl.store(O + t * H + c, acc, mask=c < H)


def fused_moe(x, logits, gate_up, down, chosen, out, tokens, experts, top, hidden, inner):
    w1, w2, idx = gate_up, down, chosen
    T, E, K, H, I = tokens, experts, top, hidden, inner
    n, dev = T * K, x.device
    blk = 16 if n < 64 * E else 64
    capacity = (n + min(n, E) * (blk - 1) + blk - 1) // blk * blk
    f32 = dict(dtype=torch.float32, device=dev)
    i32 = dict(dtype=torch.int32, device=dev)
    w, h, p = torch.empty(n, **f32), torch.empty(n, 2 * I, **f32), torch.empty(n, H, **f32)
    y = torch.empty(n, I, dtype=x.dtype, device=dev)
    ids, owner = torch.empty(capacity, **i32), torch.empty(capacity // blk, **i32)
    ep = triton.next_power_of_2(E)
    route[(T,)](logits, idx, w, E, K, EP=ep, KP=triton.next_power_of_2(K))
    align[(1,)](idx, ids, owner, n, E, capacity, EP=ep, B=128, BLK=blk)
    cfg = dict(BLK=blk, BN=64, BK=32)
    moe_gemm[(capacity // blk, triton.cdiv(2 * I, 64))](x, w1, h, w, ids, owner, n, 2 * I, H, K, MUL=False, **cfg)
    silu_and_mul[(n, triton.cdiv(I, 256))](h, y, I, BI=256)
    moe_gemm[(capacity // blk, triton.cdiv(H, 64))](y, w2, p, w, ids, owner, n, H, I, 1, MUL=True, **cfg)
    moe_sum[(T, triton.cdiv(H, 256))](p, out, K, H, BH=256)
