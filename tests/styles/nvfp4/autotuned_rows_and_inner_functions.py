import torch
import triton
import triton.language as tl

CONFIGS = [
    triton.Config({"ROWS": rows, "SF_BLOCKS": width}, num_warps=warps)
    for rows, width, warps in ((16, 8, 4), (32, 16, 8))
]


@triton.jit
def fp32_bits(v):
    return v.to(tl.uint32, bitcast=True)


@triton.jit
def to_e4m3(v):
    v = tl.minimum(v, 448.0)
    b = fp32_bits(v)
    normal = ((b + 0x7FFFF + ((b >> 20) & 1)) >> 20).to(tl.int32) - 960
    # denormals: count multiples of 2^-9 by hand
    q = (v * 512.0).to(tl.int32)
    rest = v * 512.0 - q.to(tl.float32)
    denormal = q + ((rest > 0.5) | ((rest == 0.5) & (q % 2 == 1))).to(tl.int32)
    return tl.where(v < 0.015625, denormal, normal)


@triton.jit
def from_e4m3(c):
    e = c >> 3
    m = (c & 7).to(tl.float32)
    pow2 = ((e + 120) << 23).to(tl.float32, bitcast=True)
    return tl.where(e == 0, m * 0.001953125, (1.0 + m * 0.125) * pow2)


@triton.jit
def to_e2m1(v):
    s = (fp32_bits(v) >> 31).to(tl.int32)
    a = tl.abs(v)
    c = tl.where(a <= 0.25, 0, 1)
    c = tl.where(a >= 0.75, 2, c)
    c = tl.where(a > 1.25, 3, c)
    c = tl.where(a >= 1.75, 4, c)
    c = tl.where(a > 2.5, 5, c)
    c = tl.where(a >= 3.5, 6, c)
    c = tl.where(a > 5.0, 7, c)
    return c + 8 * s


@triton.autotune(configs=CONFIGS, key=["blocks"])
@triton.jit
def nvfp4_fwd(X, Q, SF, M, blocks, stride_x, stride_q, g, ROWS: tl.constexpr, SF_BLOCKS: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * ROWS + tl.arange(0, ROWS)
    offs_k = pid_n * SF_BLOCKS + tl.arange(0, SF_BLOCKS)
    m64 = offs_m.to(tl.int64)
    live = (offs_m < M)[:, None] & (offs_k < blocks)[None, :]
    lane = tl.arange(0, 8)[None, None, :]
    base = X + (m64 * stride_x)[:, None, None] + (offs_k * 16)[None, :, None]
    even = tl.load(base + 2 * lane, mask=live[:, :, None], other=0.0).to(tl.float32)
    odd = tl.load(base + 2 * lane + 1, mask=live[:, :, None], other=0.0).to(tl.float32)
    amax = tl.max(tl.maximum(tl.abs(even), tl.abs(odd)), axis=2)
    sf = to_e4m3(tl.div_rn(amax * g, 6.0))
    inv = tl.where(sf > 0, tl.div_rn(g + tl.zeros_like(amax), tl.where(sf > 0, from_e4m3(sf), 1.0)), 0.0)
    lo = to_e2m1(even * inv[:, :, None])
    hi = to_e2m1(odd * inv[:, :, None])
    out = Q + (m64 * stride_q)[:, None, None] + (offs_k * 8)[None, :, None] + lane
    tl.store(out, (lo + hi * 16).to(tl.uint8), mask=live[:, :, None])
    k_tiles = (blocks + 3) // 4
    inner = ((offs_m % 32) * 16 + (offs_m % 128) // 32 * 4)[:, None] + (offs_k % 4)[None, :]
    tile = (m64 // 128 * k_tiles)[:, None] + (offs_k // 4)[None, :]
    tl.store(SF + tile * 512 + inner, sf.to(tl.uint8), mask=(offs_k < k_tiles * 4)[None, :] & (offs_m >= 0)[:, None])


def nvfp4_quantise(x, packed, scales, rows, blocks, x_row_stride, packed_row_stride, global_scale):
    padded_rows = (rows + 127) // 128 * 128
    padded_blocks = (blocks + 3) // 4 * 4
    grid = lambda meta: (padded_rows // meta["ROWS"], triton.cdiv(padded_blocks, meta["SF_BLOCKS"]))
    nvfp4_fwd[grid](x, packed, scales, rows, blocks, x_row_stride, packed_row_stride, global_scale)
