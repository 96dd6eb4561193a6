# Keys are split among programs, as when decoding; partial answers go to torch.empty scratch, and a kernel joins them.
import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634


@triton.jit
def part_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    acc_ptr,
    max_ptr,
    sum_ptr,
    q_heads,
    kv_heads,
    q_len,
    kv_len,
    dim,
    rows,
    scale,
    stride_q,
    stride_k,
    stride_v,
    SPLITS: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    first = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    split = tl.program_id(2)
    kv_head = head // q_heads * kv_heads + head % q_heads // (q_heads // kv_heads)
    rm = first + tl.arange(0, BLOCK_M)
    rd = tl.arange(0, BLOCK_D)
    rows_at = head * q_len + rm
    q_mask = (rm[:, None] < q_len) & (rd[None, :] < dim)
    q = tl.load(q_ptr + rows_at[:, None] * stride_q + rd[None, :], mask=q_mask, other=0.0)
    k_base = k_ptr + kv_head * kv_len * stride_k
    v_base = v_ptr + kv_head * kv_len * stride_v

    blocks = tl.cdiv(kv_len, BLOCK_N)
    per_split = tl.cdiv(blocks, SPLITS)
    begin = split * per_split * BLOCK_N
    end = tl.minimum(begin + per_split * BLOCK_N, kv_len)
    last = tl.zeros((BLOCK_M,), dtype=tl.int32) + (kv_len - 1)
    if CAUSAL:
        last = tl.minimum(rm + (kv_len - q_len), kv_len - 1)
        end = tl.minimum(end, tl.maximum(first + BLOCK_M + kv_len - q_len, 0))

    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    peak = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for start in range(begin, end, BLOCK_N):
        rn = start + tl.arange(0, BLOCK_N)
        kv_mask = (rn[:, None] < kv_len) & (rd[None, :] < dim)
        k = tl.load(k_base + rn[:, None].to(tl.int64) * stride_k + rd[None, :], mask=kv_mask, other=0.0)
        v = tl.load(v_base + rn[:, None].to(tl.int64) * stride_v + rd[None, :], mask=kv_mask, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(rn[None, :] <= last[:, None], s, float("-inf"))
        new = tl.max(s, axis=1)
        new = tl.where(new > peak + 8.0, new, peak)
        pivot = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s - pivot[:, None])
        shrink = tl.exp2(peak - pivot)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        peak = new
    place = split.to(tl.int64) * rows + rows_at
    tl.store(max_ptr + place, peak, mask=rm < q_len)
    tl.store(sum_ptr + place, total, mask=rm < q_len)
    tl.store(acc_ptr + place[:, None] * dim + rd[None, :], acc, mask=q_mask)


@triton.jit
def join_kernel(
    acc_ptr,
    max_ptr,
    sum_ptr,
    out_ptr,
    lse_ptr,
    row_max_ptr,
    rows,
    dim,
    stride_o,
    SPLITS: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    rd = tl.arange(0, BLOCK_D)
    peak = tl.load(max_ptr + row)
    for split in tl.static_range(1, SPLITS):
        # A later split may be ahead by 8, as a block may, so that its factor is at most 2**8.
        other = tl.load(max_ptr + split * rows + row)
        peak = tl.where(other > peak + 8.0, other, peak)
    pivot = tl.where(peak == float("-inf"), 0.0, peak)
    total = 0.0
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for split in tl.static_range(SPLITS):
        place = split * rows + row
        factor = tl.exp2(tl.load(max_ptr + place) - pivot)
        total += factor * tl.load(sum_ptr + place)
        acc += factor * tl.load(acc_ptr + place * dim + rd, mask=rd < dim, other=0.0)
    some = total > 0.0
    safe = tl.where(some, total, 1.0)
    tl.store(out_ptr + row * stride_o + rd, (acc / safe).to(out_ptr.dtype.element_ty), mask=rd < dim)
    lse = (pivot + tl.log2(safe)) * 0.6931471805599453
    tl.store(lse_ptr + row, tl.where(some, lse, float("-inf")))
    tl.store(row_max_ptr + row, peak)


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
    splits = 2
    rows = batch * q_heads * q_len
    block_d = max(16, triton.next_power_of_2(dim))
    acc = torch.empty((splits, rows, dim), dtype=torch.float32, device=q.device)
    peaks = torch.empty((splits, rows), dtype=torch.float32, device=q.device)
    sums = torch.empty((splits, rows), dtype=torch.float32, device=q.device)
    part_kernel[(triton.cdiv(q_len, 64), batch * q_heads, splits)](
        q,
        k,
        v,
        acc,
        peaks,
        sums,
        q_heads,
        kv_heads,
        q_len,
        kv_len,
        dim,
        rows,
        scale * LOG2_E,
        q_row_stride,
        k_row_stride,
        v_row_stride,
        SPLITS=splits,
        CAUSAL=bool(causal),
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_D=block_d,
        num_warps=4,
        num_stages=2,
    )
    join_kernel[(rows,)](
        acc, peaks, sums, out, lse, row_max, rows, dim, out_row_stride, SPLITS=splits, BLOCK_D=block_d, num_warps=1
    )
