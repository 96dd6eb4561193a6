// Competition style without shared memory: sixteen sums for each thread, clamped rows, restrict and unrolled loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#define BX 16
#define BY 16
#define TM 4
#define TN 4

template <typename T>
__global__ void __launch_bounds__(BX* BY)
    mm_4x4(const T* __restrict__ A, const T* __restrict__ B, T* __restrict__ C, int64_t M, int64_t N, int64_t K,
           int64_t lda, int64_t ldb, int64_t ldc) {
  // Columns of a thread lie BX apart, so that the threads of a warp read neighbours.
  const int64_t col0 = (int64_t)blockIdx.x * (BX * TN) + threadIdx.x;
  const int64_t row0 = (int64_t)blockIdx.y * (BY * TM) + threadIdx.y * TM;

  const T* a[TM];
  const T* b[TN];
#pragma unroll
  for (int i = 0; i < TM; ++i) a[i] = A + min(row0 + i, M - 1) * lda;
#pragma unroll
  for (int j = 0; j < TN; ++j) b[j] = B + min(col0 + j * BX, N - 1);

  float acc[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j) acc[i][j] = 0.f;

#pragma unroll 4
  for (int64_t k = 0; k < K; ++k) {
    float ra[TM], rb[TN];
#pragma unroll
    for (int i = 0; i < TM; ++i) ra[i] = (float)a[i][k];
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      rb[j] = (float)*b[j];
      b[j] += ldb;
    }
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN; ++j) acc[i][j] = fmaf(ra[i], rb[j], acc[i][j]);
  }

#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN; ++j)
      if (row0 + i < M && col0 + j * BX < N) C[(row0 + i) * ldc + col0 + j * BX] = (T)acc[i][j];
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  dim3 block(BX, BY);
  dim3 grid((unsigned)((n + BX * TN - 1) / (BX * TN)), (unsigned)((m + BY * TM - 1) / (BY * TM)));
  mm_4x4<T><<<grid, block, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
