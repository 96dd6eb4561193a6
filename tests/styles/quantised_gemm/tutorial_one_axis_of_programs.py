import torch
import triton
import triton.language as tl


@triton.jit
def int8_matmul(
    a, b, sa, sb, c, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr
):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    width = G * num_n
    group = pid // width
    size = min(num_m - group * G, G)
    pm = group * G + (pid % width) % size
    pn = (pid % width) // size
    # wrap around instead of masking the rows of both factors
    om = (pm * BM + tl.arange(0, BM)) % M
    on = (pn * BN + tl.arange(0, BN)) % N
    ok = tl.arange(0, BK)
    A = a + om[:, None] * lda + ok[None, :]
    B = b + on[None, :] * ldb + ok[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(A, mask=ok[None, :] < K - i * BK, other=0)
        y = tl.load(B, mask=ok[:, None] < K - i * BK, other=0)
        acc += tl.dot(x, y, out_dtype=tl.int32)
        A += BK
        B += BK
    scale = tl.load(sa + om)[:, None] * tl.load(sb + on)[None, :]
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    tl.store(c + rm[:, None] * ldc + rn[None, :], acc * scale, mask=(rm[:, None] < M) & (rn[None, :] < N))


def quantised_gemm(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride):
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)
    int8_matmul[grid](
        a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride, out_row_stride,
        BM=32, BN=64, BK=128, G=8, num_warps=4,
    )  # fmt: skip
    assert out.dtype is torch.float32
