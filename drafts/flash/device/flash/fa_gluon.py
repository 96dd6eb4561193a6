import torch, triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import tma, mbarrier, warpgroup_mma, warpgroup_mma_wait, warpgroup_mma_init
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

_tma_load = tma.async_load if hasattr(tma, 'async_load') else tma.async_copy_global_to_shared


@gluon.jit
def _decode(tile, q_heads, kv_heads, q_len, kv_len, tiles_m, CAUSAL: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, GROUP: gl.constexpr):
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
    hi = kv_len
    full = kv_len // BN
    if CAUSAL:
        hi = gl.minimum(gl.maximum(m0 + BM + kv_len - q_len, 0), kv_len)
        full = gl.minimum(gl.maximum(m0 + kv_len - q_len + 1, 0), kv_len) // BN
    return head, kv_head, m0, (hi + BN - 1) // BN, full


@gluon.jit
def _producer(q_t, k_t, v_t, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, q_heads, kv_heads, q_len, kv_len, tiles_m, tiles,
              CAUSAL: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, GROUP: gl.constexpr, STAGES: gl.constexpr):
    it = 0
    n = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        head, kv_head, m0, blocks, full = _decode(tile, q_heads, kv_heads, q_len, kv_len, tiles_m, CAUSAL, BM, BN, GROUP)
        for w in gl.static_range(2):
            mbarrier.wait(q_free.index(w), (n & 1) ^ 1)
            mbarrier.expect(q_ready.index(w), q_t.block_type.nbytes)
            _tma_load(q_t, [head * q_len + m0 + w * (BM // 2), 0], q_ready.index(w), q_s.index(w))
        n += 1
        for j in range(blocks):
            row = kv_head * kv_len + (blocks - 1 - j) * BN
            slot = it % STAGES
            phase = (it // STAGES) & 1
            mbarrier.wait(k_free.index(slot), phase ^ 1)
            mbarrier.expect(k_ready.index(slot), k_t.block_type.nbytes)
            _tma_load(k_t, [row, 0], k_ready.index(slot), k_s.index(slot))
            mbarrier.wait(v_free.index(slot), phase ^ 1)
            mbarrier.expect(v_ready.index(slot), v_t.block_type.nbytes)
            _tma_load(v_t, [row, 0], v_ready.index(slot), v_s.index(slot))
            it += 1


@gluon.jit
def _part(p, HM: gl.constexpr, BN: gl.constexpr, LATE: gl.constexpr):
    if LATE:
        return gl.sum(gl.reshape(p, (HM, BN // 8, 8)), 1)
    else:
        return gl.sum(p, 1)


@gluon.jit
def _scaled(l, alpha, LATE: gl.constexpr):
    if LATE:
        return l * gl.convert_layout(alpha, gl.SliceLayout(1, l.type.layout))[:, None]
    else:
        return l * alpha


@gluon.jit
def _scores(s, m, c, last, first, MASK: gl.constexpr, ML: gl.constexpr, HM: gl.constexpr, BN: gl.constexpr):
    if MASK:
        cols = first + gl.arange(0, BN, gl.SliceLayout(0, ML))
        s = gl.where(cols[None, :] <= last[:, None], s, float("-inf"))
    new = gl.maximum(m, gl.max(s, 1) * c)
    safe = new
    if MASK:
        safe = gl.where(new == float("-inf"), 0.0, new)
    p = gl.exp2(s * c - safe[:, None])
    return p, new, gl.exp2(m - safe)


@gluon.jit
def _consumer(w, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turn, o_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m, tiles,
              CAUSAL: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, D: gl.constexpr, GROUP: gl.constexpr, STAGES: gl.constexpr, PING: gl.constexpr, HOLD: gl.constexpr, LATE: gl.constexpr):
    HM: gl.constexpr = BM // 2
    SL: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BN, 16])
    OL: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16])
    PL: gl.constexpr = gl.DotOperandLayout(0, OL, 2)
    RS: gl.constexpr = gl.SliceLayout(1, SL)
    RO: gl.constexpr = gl.SliceLayout(1, OL)
    dtype: gl.constexpr = q_s.dtype
    zero = gl.zeros((HM, BN), gl.float32, SL)
    it = 0
    n = 0
    t = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        head, kv_head, m0, blocks, full = _decode(tile, q_heads, kv_heads, q_len, kv_len, tiles_m, CAUSAL, BM, BN, GROUP)
        rows = m0 + w * HM + gl.arange(0, HM, RS)
        last = gl.zeros((HM,), gl.int32, RS) + (kv_len - 1)
        if CAUSAL:
            last = gl.minimum(rows + (kv_len - q_len), kv_len - 1)
        m = gl.full((HM,), float("-inf"), gl.float32, RS)
        l = _part(zero, HM, BN, LATE)
        acc = gl.zeros((HM, D), gl.float32, OL)
        mbarrier.wait(q_ready.index(w), n & 1)
        q = q_s.index(w)
        if blocks > 0:
            # first block: always masked
            if PING:
                mbarrier.wait(turn.index(w), t & 1)
            mbarrier.wait(k_ready.index(it % STAGES), (it // STAGES) & 1)
            s = warpgroup_mma(q, k_s.index(it % STAGES).permute((1, 0)), zero, use_acc=False, is_async=True)
            if PING:
                mbarrier.arrive(turn.index(1 - w), count=1)
                t += 1
            s = warpgroup_mma_wait(0, [s])
            mbarrier.arrive(k_free.index(it % STAGES), count=1)
            p, m, alpha = _scores(s, m, c, last, (blocks - 1) * BN, True, SL, HM, BN)
            l = _part(p, HM, BN, LATE)
            pb = gl.convert_layout(p.to(dtype), PL)
            masked = gl.maximum(blocks - full - 1, 0)
            for j in range(1, 1 + masked):
                it, t, acc, l, m, pb = _step(w, it, t, acc, l, m, pb, zero, q, k_s, v_s, k_ready, k_free, v_ready, v_free, turn, c, last, (blocks - 1 - j) * BN, True, SL, OL, PL, RO, HM, BN, STAGES, PING, HOLD, LATE)
            for j in range(1 + masked, blocks):
                it, t, acc, l, m, pb = _step(w, it, t, acc, l, m, pb, zero, q, k_s, v_s, k_ready, k_free, v_ready, v_free, turn, c, last, (blocks - 1 - j) * BN, False, SL, OL, PL, RO, HM, BN, STAGES, PING, HOLD, LATE)
            mbarrier.arrive(q_free.index(w), count=1)
            mbarrier.wait(v_ready.index(it % STAGES), (it // STAGES) & 1)
            o = warpgroup_mma(pb, v_s.index(it % STAGES), acc, is_async=True)
            acc = warpgroup_mma_wait(0, [o])
            mbarrier.arrive(v_free.index(it % STAGES), count=1)
            it += 1
        else:
            mbarrier.arrive(q_free.index(w), count=1)
        n += 1
        if LATE:
            l = gl.convert_layout(gl.sum(l, 1), RS)
        inv = gl.where(l > 0, 1.0 / l, 0.0)
        lse = gl.where(l > 0, (m + gl.log2(l)) * 0.6931471805599453, float("-inf"))
        gl.store(lse_ptr + head * q_len + rows, lse, mask=rows < q_len)
        acc = acc * gl.convert_layout(inv, RO)[:, None]
        orows = m0 + w * HM + gl.arange(0, HM, RO)
        cols = gl.arange(0, D, gl.SliceLayout(0, OL))
        gl.store(o_ptr + (head * q_len + orows)[:, None] * stride + cols[None, :], acc.to(dtype), mask=(orows < q_len)[:, None] & (cols < D)[None, :])


@gluon.jit
def _step(w, it, t, acc, l, m, pb, zero, q, k_s, v_s, k_ready, k_free, v_ready, v_free, turn, c, last, first, MASK: gl.constexpr, SL: gl.constexpr, OL: gl.constexpr, PL: gl.constexpr, RO: gl.constexpr,
          HM: gl.constexpr, BN: gl.constexpr, STAGES: gl.constexpr, PING: gl.constexpr, HOLD: gl.constexpr, LATE: gl.constexpr):
    nxt = it + 1
    mbarrier.wait(k_ready.index(nxt % STAGES), (nxt // STAGES) & 1)
    if PING:
        mbarrier.wait(turn.index(w), t & 1)
    s = warpgroup_mma(q, k_s.index(nxt % STAGES).permute((1, 0)), zero, use_acc=False, is_async=True)
    mbarrier.wait(v_ready.index(it % STAGES), (it // STAGES) & 1)
    o = warpgroup_mma(pb, v_s.index(it % STAGES), acc, is_async=True)
    if PING:
        mbarrier.arrive(turn.index(1 - w), count=1)
    s = warpgroup_mma_wait(1, [s])
    mbarrier.arrive(k_free.index(nxt % STAGES), count=1)
    p, new, alpha = _scores(s, m, c, last, first, MASK, SL, HM, BN)
    l = _scaled(l, alpha, LATE) + _part(p, HM, BN, LATE)
    nb = gl.convert_layout(p.to(pb.dtype), PL)
    if HOLD:
        # A wait that never waits: a branch, which keeps the exponentials before the wait for the tensor cores.
        mbarrier.wait(v_ready.index(it % STAGES), (it // STAGES) & 1)
    acc = warpgroup_mma_wait(0, [o])
    mbarrier.arrive(v_free.index(it % STAGES), count=1)
    acc = acc * gl.convert_layout(alpha, RO)[:, None]
    return nxt, t + 1, acc, l, new, nb


@gluon.jit
def attention(q_t, k_t, v_t, o_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m, tiles,
              CAUSAL: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, D: gl.constexpr, GROUP: gl.constexpr, STAGES: gl.constexpr, PING: gl.constexpr, HOLD: gl.constexpr, LATE: gl.constexpr,
              num_warps: gl.constexpr):
    q_s = gl.allocate_shared_memory(q_t.dtype, [2, BM // 2, D], q_t.layout)
    k_s = gl.allocate_shared_memory(k_t.dtype, [STAGES, BN, D], k_t.layout)
    v_s = gl.allocate_shared_memory(v_t.dtype, [STAGES, BN, D], v_t.layout)
    q_ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_free = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    turn = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_free = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(q_ready.index(i), count=1)
        mbarrier.init(q_free.index(i), count=1)
        mbarrier.init(turn.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_ready.index(i), count=1)
        mbarrier.init(k_free.index(i), count=2)
        mbarrier.init(v_ready.index(i), count=1)
        mbarrier.init(v_free.index(i), count=2)
    if PING:
        mbarrier.arrive(turn.index(0), count=1)
    gl.warp_specialize([
        (_consumer, (0, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turn, o_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m, tiles, CAUSAL, BM, BN, D, GROUP, STAGES, PING, HOLD, LATE)),
        (_consumer, (1, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, turn, o_ptr, lse_ptr, q_heads, kv_heads, q_len, kv_len, c, stride, tiles_m, tiles, CAUSAL, BM, BN, D, GROUP, STAGES, PING, HOLD, LATE)),
        (_producer, (q_t, k_t, v_t, q_s, k_s, v_s, q_ready, q_free, k_ready, k_free, v_ready, v_free, q_heads, kv_heads, q_len, kv_len, tiles_m, tiles, CAUSAL, BM, BN, GROUP, STAGES)),
    ], [4, 1], [240, 24])


def layout(n, D):
    return gl.NVMMASharedLayout.get_default_for([n, D], gl.bfloat16)


def run(q, k, v, o, lse, causal, BM=128, BN=128, STAGES=2, GROUP=8, PING=True, HOLD=True, LATE=True, programs=132, maxnreg=None):
    B, H, S, D = q.shape
    HK, T = k.shape[1:3]
    def desc(t, n):
        return TensorDescriptor(t, [t.shape[0] * t.shape[1] * t.shape[2], D], [D, 1], [n, D], layout(n, D))
    tiles_m = triton.cdiv(S, BM)
    tiles = tiles_m * B * H
    extra = {"maxnreg": maxnreg} if maxnreg else {}
    attention[(min(tiles, programs),)](desc(q, BM // 2), desc(k, BN), desc(v, BN), o, lse, H, HK, S, T, 1.4426950408889634 / D**0.5, D, tiles_m, tiles,
        CAUSAL=causal, BM=BM, BN=BN, D=D, GROUP=GROUP, STAGES=STAGES, PING=PING, HOLD=HOLD, LATE=LATE, num_warps=4, **extra)
