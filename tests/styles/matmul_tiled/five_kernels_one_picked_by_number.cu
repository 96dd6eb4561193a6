// Five kernels in one file, from the simplest to the best so far, and a number that picks one; the fifth is picked.
//
// kernel 1: a thread for each sum, rows along x       kernel 2: the same, columns along x
// kernel 3: tiles in shared memory                    kernel 4: eight sums of a column for each thread
// kernel 5: eight by eight sums for each thread, out of registers
#include <assert.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline unsigned ceil_div(int64_t a, int64_t b) { return (unsigned)((a + b - 1) / b); }

// ----------------------------------------------------------------------------
// kernel 1
template <typename T>
__global__ void matmul_kernel1(T* C, const T* A, const T* B, int64_t M, int64_t N, int64_t K, int64_t lda, int64_t ldb,
                               int64_t ldc) {
  int64_t row = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  int64_t col = blockIdx.y * (int64_t)blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int64_t l = 0; l < K; l++) sum += (float)A[row * lda + l] * (float)B[l * ldb + col];
    C[row * ldc + col] = (T)sum;
  }
}

// kernel 2
template <typename T>
__global__ void matmul_kernel2(T* C, const T* A, const T* B, int64_t M, int64_t N, int64_t K, int64_t lda, int64_t ldb,
                               int64_t ldc) {
  int64_t col = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  int64_t row = blockIdx.y * (int64_t)blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    float sum = 0.0f;
    for (int64_t l = 0; l < K; l++) sum += (float)A[row * lda + l] * (float)B[l * ldb + col];
    C[row * ldc + col] = (T)sum;
  }
}

// kernel 3
template <typename T, int TILE>
__global__ void matmul_kernel3(T* C, const T* A, const T* B, int64_t M, int64_t N, int64_t K, int64_t lda, int64_t ldb,
                               int64_t ldc) {
  __shared__ float As[TILE][TILE], Bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int64_t row = blockIdx.y * (int64_t)TILE + ty, col = blockIdx.x * (int64_t)TILE + tx;
  float sum = 0.0f;
  for (int64_t k0 = 0; k0 < K; k0 += TILE) {
    As[ty][tx] = (row < M && k0 + tx < K) ? (float)A[row * lda + k0 + tx] : 0.0f;
    Bs[ty][tx] = (k0 + ty < K && col < N) ? (float)B[(k0 + ty) * ldb + col] : 0.0f;
    __syncthreads();
    for (int l = 0; l < TILE; l++) sum += As[ty][l] * Bs[l][tx];
    __syncthreads();
  }
  if (row < M && col < N) C[row * ldc + col] = (T)sum;
}

// kernel 4: 64 x 64 of C for a block of 512 threads
template <typename T>
__global__ void matmul_kernel4(T* C, const T* A, const T* B, int64_t M, int64_t N, int64_t K, int64_t lda, int64_t ldb,
                               int64_t ldc) {
  const int BM = 64, BN = 64, BK = 8, TM = 8;
  __shared__ float As[BM * BK], Bs[BK * BN];
  int64_t row0 = blockIdx.y * (int64_t)BM, col0 = blockIdx.x * (int64_t)BN;
  int thread_col = threadIdx.x % BN, thread_row = threadIdx.x / BN;
  int a_col = threadIdx.x % BK, a_row = threadIdx.x / BK;
  int b_col = threadIdx.x % BN, b_row = threadIdx.x / BN;
  float sums[TM] = {0.0f};
  for (int64_t k0 = 0; k0 < K; k0 += BK) {
    As[a_row * BK + a_col] = (row0 + a_row < M && k0 + a_col < K) ? (float)A[(row0 + a_row) * lda + k0 + a_col] : 0.0f;
    Bs[b_row * BN + b_col] = (k0 + b_row < K && col0 + b_col < N) ? (float)B[(k0 + b_row) * ldb + col0 + b_col] : 0.0f;
    __syncthreads();
    for (int l = 0; l < BK; l++) {
      float b = Bs[l * BN + thread_col];
      for (int i = 0; i < TM; i++) sums[i] += As[(thread_row * TM + i) * BK + l] * b;
    }
    __syncthreads();
  }
  for (int i = 0; i < TM; i++) {
    int64_t row = row0 + thread_row * TM + i, col = col0 + thread_col;
    if (row < M && col < N) C[row * ldc + col] = (T)sums[i];
  }
}

// kernel 5: 128 x 128 of C for a block of 256 threads
template <typename T>
__global__ void __launch_bounds__(256, 2) matmul_kernel5(T* C, const T* A, const T* B, int64_t M, int64_t N,
                                                         int64_t K, int64_t lda, int64_t ldb, int64_t ldc) {
  constexpr int BM = 128, BN = 128, BK = 16, TM = 8, TN = 8, NT = 256;
  // A lies transposed, so that a thread's eight rows are neighbours; four more floats keep the writes apart.
  __shared__ __align__(16) float As[BK][BM + 4];
  __shared__ __align__(16) float Bs[BK][BN];
  const int64_t row0 = blockIdx.y * (int64_t)BM, col0 = blockIdx.x * (int64_t)BN;
  const int tr = threadIdx.x / (BN / TN), tc = threadIdx.x % (BN / TN);

  float sums[TM][TN];
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) sums[i][j] = 0.0f;

  for (int64_t k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
    for (int t = 0; t < BM * BK / NT; t++) {
      int i = t * NT + threadIdx.x, r = i / BK, l = i % BK;
      As[l][r] = (row0 + r < M && k0 + l < K) ? (float)A[(row0 + r) * lda + k0 + l] : 0.0f;
    }
#pragma unroll
    for (int t = 0; t < BK * BN / NT; t++) {
      int i = t * NT + threadIdx.x, l = i / BN, c = i % BN;
      Bs[l][c] = (k0 + l < K && col0 + c < N) ? (float)B[(k0 + l) * ldb + col0 + c] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int l = 0; l < BK; l++) {
      float ra[TM], rb[TN];
      *(float4*)&ra[0] = *(const float4*)&As[l][tr * TM];
      *(float4*)&ra[4] = *(const float4*)&As[l][tr * TM + 4];
      // The columns of a thread are two groups of four, half a tile apart.
      *(float4*)&rb[0] = *(const float4*)&Bs[l][tc * 4];
      *(float4*)&rb[4] = *(const float4*)&Bs[l][BN / 2 + tc * 4];
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) sums[i][j] += ra[i] * rb[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < TM; i++)
#pragma unroll
    for (int j = 0; j < TN; j++) {
      int64_t row = row0 + tr * TM + i;
      int64_t col = col0 + (j < 4 ? tc * 4 + j : BN / 2 + tc * 4 + j - 4);
      if (row < M && col < N) C[row * ldc + col] = (T)sums[i][j];
    }
}

// ----------------------------------------------------------------------------
// dispatch
template <typename T>
void matmul_forward(int kernel_num, T* C, const T* A, const T* B, int64_t M, int64_t N, int64_t K, int64_t lda,
                    int64_t ldb, int64_t ldc, cudaStream_t stream) {
  switch (kernel_num) {
    case 1:
      matmul_kernel1<T>
          <<<dim3(ceil_div(M, 16), ceil_div(N, 16)), dim3(16, 16), 0, stream>>>(C, A, B, M, N, K, lda, ldb, ldc);
      break;
    case 2:
      matmul_kernel2<T>
          <<<dim3(ceil_div(N, 32), ceil_div(M, 8)), dim3(32, 8), 0, stream>>>(C, A, B, M, N, K, lda, ldb, ldc);
      break;
    case 3:
      matmul_kernel3<T, 32>
          <<<dim3(ceil_div(N, 32), ceil_div(M, 32)), dim3(32, 32), 0, stream>>>(C, A, B, M, N, K, lda, ldb, ldc);
      break;
    case 4:
      matmul_kernel4<T><<<dim3(ceil_div(N, 64), ceil_div(M, 64)), 512, 0, stream>>>(C, A, B, M, N, K, lda, ldb, ldc);
      break;
    case 5:
      matmul_kernel5<T><<<dim3(ceil_div(N, 128), ceil_div(M, 128)), 256, 0, stream>>>(C, A, B, M, N, K, lda, ldb, ldc);
      break;
    default:
      printf("Invalid kernel number\n");
      exit(1);
  }
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const int kernel_num = 5;
  matmul_forward<T>(kernel_num, c, a, b, m, n, k, a_row_stride, b_row_stride, c_row_stride, stream);
}
