// ldmatrix and mma.sync m16n8k16 by inline PTX; two buffers of shared memory are filled by cp.async.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int BM = 128, BN = 128, BK = 32, PITCH = BK + 8, THREADS = 256;

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(p))
               : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, const __half*) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                    const __nv_bfloat16*) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 128 rows of 32 elements; a pack of eight that is not whole or not aligned is copied by hand.
template <typename T>
__device__ __forceinline__ void fetch(T (*tile)[PITCH], const T* from, int64_t row0, int64_t col0, int64_t rows,
                                      int64_t cols, int64_t stride) {
#pragma unroll
  for (int i = 0; i < BM * BK / 8 / THREADS; ++i) {
    const int pack = threadIdx.x + i * THREADS, r = pack / (BK / 8), c = pack % (BK / 8) * 8;
    const int64_t row = row0 + r, col = col0 + c;
    const T* at = from + row * stride + col;
    T* to = &tile[r][c];
    if (row < rows && col + 8 <= cols && reinterpret_cast<uintptr_t>(at) % 16 == 0) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(to)), "l"(at) : "memory");
    } else {
      for (int e = 0; e < 8; ++e) to[e] = row < rows && col + e < cols ? at[e] : static_cast<T>(0.0f);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    gemm_mma(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc) {
  __shared__ alignas(16) T as[2][BM][PITCH];
  __shared__ alignas(16) T bs[2][BN][PITCH];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * BM, col0 = static_cast<int64_t>(blockIdx.x) * BN;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
  const int64_t steps = (k + BK - 1) / BK;
  float acc[4][4][4] = {};

  fetch<T>(as[0], a, row0, 0, m, k, lda);
  fetch<T>(bs[0], b, col0, 0, n, k, ldb);
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  for (int64_t step = 0; step < steps; ++step) {
    const int now = static_cast<int>(step & 1);
    if (step + 1 < steps) {
      fetch<T>(as[now ^ 1], a, row0, (step + 1) * BK, m, k, lda);
      fetch<T>(bs[now ^ 1], b, col0, (step + 1) * BK, n, k, ldb);
    }
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    asm volatile("cp.async.wait_group 1;\n" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      uint32_t left[4][4], right[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) ldmatrix_x4(left[i], &as[now][warp_m + i * 16 + lane % 16][kk + lane / 16 * 8]);
      // Two column fragments at once: lanes 0 to 15 address the first, 16 to 31 the second.
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        ldmatrix_x4(right[j], &bs[now][warp_n + j * 16 + lane / 16 * 8 + lane % 8][kk + lane / 8 % 2 * 8]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          mma(acc[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1], static_cast<const T*>(nullptr));
        }
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t row = row0 + warp_m + i * 16 + lane / 4 + e / 2 * 8;
        const int64_t col = col0 + warp_n + j * 8 + lane % 4 * 2 + e % 2;
        if (row < m && col < n) c[row * ldc + col] = static_cast<T>(acc[i][j][e]);
      }
    }
  }
}

template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + BN - 1) / BN), static_cast<unsigned>((m + BM - 1) / BM));
  gemm_mma<T><<<grid, THREADS, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
