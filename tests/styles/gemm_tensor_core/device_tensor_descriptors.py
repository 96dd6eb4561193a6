# Tensor descriptors made on the device, which need an allocator for their scratch, in a persistent loop over tiles.
import torch
import triton
import triton.language as tl


def _allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    return torch.empty(size, device="cuda", dtype=torch.int8)


@triton.jit
def descriptor_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bn,
    stride_cm,
    NUM_SMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[stride_bn, 1], block_shape=[BLOCK_N, BLOCK_K])
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, NUM_SMS):
        row = (tile // tiles_n) * BLOCK_M
        col = (tile % tiles_n) * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for ki in range(tl.cdiv(K, BLOCK_K)):
            a = a_desc.load([row, ki * BLOCK_K])
            b = b_desc.load([col, ki * BLOCK_K])
            acc = tl.dot(a, b.T, acc)
        rm = row + tl.arange(0, BLOCK_M)
        rn = col + tl.arange(0, BLOCK_N)
        at = c_ptr + rm[:, None].to(tl.int64) * stride_cm + rn[None, :]
        tl.store(at, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def pointer_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_bn,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    a_rows = a_ptr + rm[:, None].to(tl.int64) * stride_am
    b_rows = b_ptr + rn[None, :].to(tl.int64) * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        kk = start + rk
        a = tl.load(a_rows + kk[None, :], mask=(rm[:, None] < M) & (kk[None, :] < K), other=0.0)
        b = tl.load(b_rows + kk[:, None], mask=(kk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    at = c_ptr + rm[:, None].to(tl.int64) * stride_cm + rn[None, :]
    tl.store(at, acc.to(c_ptr.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


def _descriptors_can(t: torch.Tensor, row_stride: int) -> bool:
    return t.data_ptr() % 16 == 0 and row_stride * t.element_size() % 16 == 0


def gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    m: int,
    n: int,
    k: int,
    a_row_stride: int,
    b_row_stride: int,
    c_row_stride: int,
) -> None:
    if _descriptors_can(a, a_row_stride) and _descriptors_can(b, b_row_stride):
        if a.is_cuda:
            triton.set_allocator(_allocate)
        num_sms = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 2
        descriptor_kernel[(num_sms,)](
            a,
            b,
            c,
            m,
            n,
            k,
            a_row_stride,
            b_row_stride,
            c_row_stride,
            NUM_SMS=num_sms,
            BLOCK_M=128,
            BLOCK_N=128,
            BLOCK_K=64,
            num_warps=8,
            num_stages=3,
        )
    else:
        grid = (triton.cdiv(m, 64), triton.cdiv(n, 64))
        pointer_kernel[grid](
            a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4
        )
