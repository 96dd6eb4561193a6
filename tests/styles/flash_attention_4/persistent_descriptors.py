# A persistent grid over tiles and heads; host-made tensor descriptors bring keys and values where rows allow it.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _keys(source, stride, first, count, dim, start, rn, rd, DESCRIPTORS: tl.constexpr):
    """Rows `start` and on of the head that begins at row `first`; what lies beyond its end may be anything finite."""
    if DESCRIPTORS:
        return source.load([first + start, 0])
    else:
        row = start + rn
        at = source + (first + row[:, None]).to(tl.int64) * stride + rd[None, :]
        return tl.load(at, mask=(row[:, None] < count) & (rd[None, :] < dim), other=0.0)


@triton.jit(do_not_specialize=["q_len", "kv_len", "dim", "heads", "causal"])
def attention_kernel(
    q_ptr,
    k,
    v,
    out_ptr,
    lse_ptr,
    row_max_ptr,
    heads,
    q_heads,
    kv_heads,
    q_len,
    kv_len,
    dim,
    causal,
    scale,
    stride_q,
    stride_k,
    stride_v,
    stride_o,
    DESCRIPTORS: tl.constexpr,
    NUM_PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    rn = tl.arange(0, BLOCK_N)
    rd = tl.arange(0, BLOCK_D)
    tiles_m = tl.cdiv(q_len, BLOCK_M)
    for tile in tl.range(tl.program_id(0), tiles_m * heads, NUM_PROGRAMS):
        head = tile % heads
        # The last rows first: with a causal mask they take longest.
        first = (tiles_m - 1 - tile // heads) * BLOCK_M
        kv_first = (head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)) * kv_len
        rm = first + tl.arange(0, BLOCK_M)
        q_row = head.to(tl.int64) * q_len + rm
        q_mask = (rm[:, None] < q_len) & (rd[None, :] < dim)
        q = tl.load(q_ptr + q_row[:, None] * stride_q + rd[None, :], mask=q_mask, other=0.0)
        beyond = tl.where(causal != 0, kv_len - q_len, kv_len)
        last = tl.minimum(rm + beyond, kv_len - 1)
        end = tl.minimum(tl.maximum(first + BLOCK_M + beyond, 0), kv_len)
        acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
        total = tl.zeros((BLOCK_M,), dtype=tl.float32)
        peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
        for start in range(0, end, BLOCK_N):
            k_tile = _keys(k, stride_k, kv_first, kv_len, dim, start, rn, rd, DESCRIPTORS)
            s = tl.dot(q, k_tile.T) * scale
            s = tl.where((start + rn)[None, :] <= last[:, None], s, float("-inf"))
            new = tl.max(s, axis=1)
            new = tl.where(new > peak + 8.0, new, peak)
            pivot = tl.where(new == float("-inf"), 0.0, new)
            p = tl.exp2(s - pivot[:, None])
            shrink = tl.exp2(peak - pivot)
            total = total * shrink + tl.sum(p, axis=1)
            v_tile = _keys(v, stride_v, kv_first, kv_len, dim, start, rn, rd, DESCRIPTORS)
            acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * shrink[:, None])
            peak = new
        some = total > 0.0
        safe = tl.where(some, total, 1.0)
        lse = tl.where(some, (peak + tl.log2(safe)) * 0.6931471805599453, float("-inf"))
        tl.store(lse_ptr + q_row, lse, mask=rm < q_len)
        tl.store(row_max_ptr + q_row, peak, mask=rm < q_len)
        out = (acc / safe[:, None]).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + q_row[:, None] * stride_o + rd[None, :], out, mask=q_mask)


def _has_whole_packs(t: torch.Tensor, row_stride: int) -> bool:
    return t.data_ptr() % 16 == 0 and row_stride * t.element_size() % 16 == 0


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
    block_d = max(16, triton.next_power_of_2(dim))
    block_m, block_n = 128, 64
    descriptors = _has_whole_packs(k, k_row_stride) and _has_whole_packs(v, v_row_stride)
    keys, values = k, v
    if descriptors:
        rows = batch * kv_heads * kv_len
        keys = TensorDescriptor(k, [rows, dim], [k_row_stride, 1], [block_n, block_d])
        values = TensorDescriptor(v, [rows, dim], [v_row_stride, 1], [block_n, block_d])
    heads = batch * q_heads
    sms = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 2
    programs = min(sms, triton.cdiv(q_len, block_m) * heads)
    attention_kernel[(programs,)](
        q,
        keys,
        values,
        out,
        lse,
        row_max,
        heads,
        q_heads,
        kv_heads,
        q_len,
        kv_len,
        dim,
        causal,
        scale * 1.4426950408889634,
        q_row_stride,
        k_row_stride,
        v_row_stride,
        out_row_stride,
        DESCRIPTORS=descriptors,
        NUM_PROGRAMS=programs,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_D=block_d,
        num_warps=8,
        num_stages=2,
    )
