import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _exp2_poly(x):
    # 2**x by a cubic on FMA units (Cody-Waite): for x <= 8
    x = tl.maximum(x, -127.0)
    magic = 12582912.0
    t = x + magic
    fl = t - magic
    f = x - fl
    p = 0.0555041086 * f + 0.2402264923
    p = p * f + 0.6931471825
    p = p * f + 1.0
    e = t.to(tl.int32, bitcast=True) << 23
    return (p.to(tl.int32, bitcast=True) + e).to(tl.float32, bitcast=True)


@triton.jit
def _p(x, POLY: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    if POLY == 0:
        return tl.exp2(x)
    elif POLY == 1:
        a, b = tl.split(tl.permute(tl.reshape(x, (BM, 2, BN // 2)), (0, 2, 1)))
        return tl.reshape(tl.permute(tl.join(tl.exp2(a), _exp2_poly(b)), (0, 2, 1)), (BM, BN))
    else:
        a, b = tl.split(tl.permute(tl.reshape(x, (BM, 2, BN // 2)), (0, 2, 1)))
        c, d = tl.split(tl.permute(tl.reshape(b, (BM, 2, BN // 4)), (0, 2, 1)))
        b = tl.reshape(tl.permute(tl.join(tl.exp2(c), _exp2_poly(d)), (0, 2, 1)), (BM, BN // 2))
        return tl.reshape(tl.permute(tl.join(tl.exp2(a), b), (0, 2, 1)), (BM, BN))


@triton.jit
def _inner(acc, l, m, q, k_t, v_t, row0, lo, hi, last, kv_len, c, stride,
           MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, WS: tl.constexpr, DEFER: tl.constexpr,
           POLY: tl.constexpr, TMA: tl.constexpr, LATE: tl.constexpr):
    cols = tl.arange(0, BN)
    d = tl.arange(0, D)
    for n0 in tl.range(lo, hi, BN, warp_specialize=WS):
        if TMA:
            k = k_t.load([row0 + n0, 0])
        else:
            k = tl.load(k_t + (row0 + n0 + cols)[:, None] * stride + d[None, :])
        s = tl.dot(q, k.T)
        if MASK:
            s = tl.where((n0 + cols)[None, :] <= last[:, None], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1) * c)
        if DEFER == 1:
            new = tl.where(new - m > 8.0, new, m)
        if MASK:
            safe = tl.where(new == float("-inf"), 0.0, new)
        else:
            safe = new
        p = _p(s * c - safe[:, None], POLY, BM, BN)
        alpha = tl.exp2(m - safe)
        if TMA:
            v = v_t.load([row0 + n0, 0])
        else:
            v = tl.load(v_t + (row0 + n0 + cols)[:, None] * stride + d[None, :])
        if DEFER == 2:
            if tl.max(new - m, 0) > 8.0:
                acc = acc * alpha[:, None]
        else:
            acc = acc * alpha[:, None]
        if not LATE:
            l = l * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc)
        if LATE:
            l = l * alpha + tl.sum(p, 1)
        m = new
    return acc, l, m


@triton.jit
def attention(q_ptr, k_t, v_t, o_ptr, lse_ptr, q_t, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m, tiles,
              CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr, WS: tl.constexpr,
              DEFER: tl.constexpr, POLY: tl.constexpr, TMA: tl.constexpr, PERSIST: tl.constexpr, LATE: tl.constexpr):
    if PERSIST:
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
            _tile(tile, q_ptr, k_t, v_t, o_ptr, lse_ptr, q_t, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m,
                  CAUSAL, BM, BN, D, GROUP, WS, DEFER, POLY, TMA, LATE)
    else:
        _tile(tl.program_id(0), q_ptr, k_t, v_t, o_ptr, lse_ptr, q_t, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m,
              CAUSAL, BM, BN, D, GROUP, WS, DEFER, POLY, TMA, LATE)


@triton.jit
def _tile(tile, q_ptr, k_t, v_t, o_ptr, lse_ptr, q_t, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m,
          CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, GROUP: tl.constexpr, WS: tl.constexpr,
          DEFER: tl.constexpr, POLY: tl.constexpr, TMA: tl.constexpr, LATE: tl.constexpr):
    # groups of GROUP heads; inside a group longest first
    per = tiles_m * GROUP
    group = tile // per
    within = tile % per
    head = group * GROUP + within % GROUP
    mt = within // GROUP
    if CAUSAL:
        mt = tiles_m - 1 - mt
    m0 = mt * BM
    batch = head // q_heads
    kv_head = batch * kv_heads + (head % q_heads) // (q_heads // kv_heads)
    rows = m0 + tl.arange(0, BM)
    d = tl.arange(0, D)
    row_ok = rows < q_len
    if TMA:
        q = q_t.load([head * q_len + m0, 0])
    else:
        q = tl.load(q_ptr + (head * q_len + rows)[:, None] * stride + d[None, :], mask=row_ok[:, None], other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    if CAUSAL:
        off = kv_len - q_len
        last = tl.minimum(rows + off, kv_len - 1)
        hi = tl.minimum(tl.maximum(m0 + BM + off, 0), kv_len)
        mid = tl.minimum(tl.maximum(m0 + off + 1, 0), kv_len) // BN * BN
    else:
        last = tl.zeros((BM,), tl.int32) + kv_len - 1
        hi = kv_len
        mid = kv_len // BN * BN
    row0 = kv_head * kv_len
    acc, l, m = _inner(acc, l, m, q, k_t, v_t, row0, 0, mid, last, kv_len, c, stride, False, BM, BN, D, WS, DEFER, POLY, TMA, LATE)
    acc, l, m = _inner(acc, l, m, q, k_t, v_t, row0, mid, hi, last, kv_len, c, stride, True, BM, BN, D, WS, DEFER, POLY, TMA, LATE)
    inv = tl.where(l > 0, 1.0 / l, 0.0)
    acc = acc * inv[:, None]
    lse = tl.where(l > 0, (m + tl.log2(l)) * 0.6931471805599453, float("-inf"))
    tl.store(lse_ptr + head * q_len + rows, lse, mask=row_ok)
    tl.store(o_ptr + (head * q_len + rows)[:, None] * stride + d[None, :], acc.to(o_ptr.dtype.element_ty), mask=row_ok[:, None])


def run(q, k, v, o, lse, causal, BM=128, BN=128, warps=8, stages=2, GROUP=8, WS=False, DEFER=0, POLY=0, TMA=True, PERSIST=0, LATE=0, maxnreg=None):
    B, H, S, D = q.shape
    HK, T = k.shape[1:3]
    def desc(t, n):
        return TensorDescriptor(t, [t.shape[0] * t.shape[1] * t.shape[2], D], [D, 1], [n, D])
    tiles_m = triton.cdiv(S, BM)
    tiles = tiles_m * B * H
    if TMA:
        kt, vt, qt = desc(k, BN), desc(v, BN), desc(q, BM)
    else:
        kt, vt, qt = k, v, q
    grid = (min(tiles, PERSIST * 132) if PERSIST else tiles,)
    extra = {"maxnreg": maxnreg} if maxnreg else {}
    attention[grid](q, kt, vt, o, lse, qt, H, HK, S, T, 1.4426950408889634 / D**0.5, D, tiles_m, tiles,
                    CAUSAL=causal, BM=BM, BN=BN, D=D, GROUP=GROUP, WS=WS, DEFER=DEFER, POLY=POLY, TMA=TMA, PERSIST=bool(PERSIST), LATE=LATE,
                    num_warps=warps, num_stages=stages, **extra)
