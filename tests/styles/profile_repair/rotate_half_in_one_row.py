# fused_qk_norm_rope for inference, single tensor version
import torch
import triton
import triton.language as tl

HEAD_DIM = 128


@triton.jit
def rotate(lo, hi, c, s):
    return lo * c - hi * s, hi * c + lo * s


@triton.autotune(
    configs=[triton.Config({"ROWS": r}, num_warps=w) for r, w in ((4, 1), (16, 4), (32, 8))],
    key=["n_rows"],
)
@triton.jit
def qk_norm_rope_fwd(Q, W, COS, SIN, O, n_rows, H, stride_qt, eps, ROWS: tl.constexpr, HALF: tl.constexpr):
    pid = tl.program_id(0)
    r = pid * ROWS + tl.arange(0, ROWS)
    ok = (r < n_rows)[:, None]
    t = (r // H).to(tl.int64)
    h = r - t * H
    j = tl.arange(0, HALF)
    src = Q + (t * stride_qt + h * (2 * HALF))[:, None] + j[None, :]
    lo = tl.load(src, mask=ok, other=0).to(tl.float32)
    hi = tl.load(src + HALF, mask=ok, other=0).to(tl.float32)
    var = (tl.sum(lo * lo, 1) + tl.sum(hi * hi, 1)) / (2 * HALF)
    rstd = 1 / tl.sqrt(var + eps)
    lo = lo * rstd[:, None] * tl.load(W + j).to(tl.float32)[None, :]
    hi = hi * rstd[:, None] * tl.load(W + HALF + j).to(tl.float32)[None, :]
    tab = (t * HALF)[:, None] + j[None, :]
    c = tl.load(COS + tab, mask=ok, other=0, eviction_policy="evict_last")
    s = tl.load(SIN + tab, mask=ok, other=0, eviction_policy="evict_last")
    a, b = rotate(lo, hi, c, s)
    dst = O + (r.to(tl.int64) * (2 * HALF))[:, None] + j[None, :]
    tl.store(dst, a.to(O.dtype.element_ty), mask=ok)
    tl.store(dst + HALF, b.to(O.dtype.element_ty), mask=ok)


def norm_rope(q, weight, cos, sin, out, tokens, heads, q_token_stride, eps):
    assert out.shape == (tokens, heads * HEAD_DIM)
    n_rows = tokens * heads
    grid = lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)  # noqa: E731
    qk_norm_rope_fwd[grid](q, weight, cos, sin, out, n_rows, heads, q_token_stride, eps, HALF=HEAD_DIM // 2)
