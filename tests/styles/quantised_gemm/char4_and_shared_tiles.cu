#include <cuda_runtime.h>
#include <cstdint>

#define BS 32
#define CEIL(a, b) (((a) + (b) - 1) / (b))

struct Args {
  const int8_t *A, *B;
  const float *sa, *sb;
  float* C;
  int M, N, K;
  long lda, ldb, ldc;
};

static __device__ __forceinline__ int8_t at(const int8_t* p, int r, int rows, int c, int cols, long ld) {
  return (r < rows && c < cols) ? p[r * ld + c] : (int8_t)0;
}

__global__ void igemm(Args g) {
  __shared__ char4 As[BS][BS / 4 + 1];
  __shared__ char4 Bs[BS][BS / 4 + 1];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * BS + ty, col = blockIdx.x * BS + tx;
  int acc = 0;
  for (int t = 0; t < CEIL(g.K, BS); t++) {
    if (tx < BS / 4) {
      const int c = t * BS + tx * 4, r = blockIdx.x * BS + ty;
      As[ty][tx] = make_char4(at(g.A, row, g.M, c, g.K, g.lda), at(g.A, row, g.M, c + 1, g.K, g.lda),
                              at(g.A, row, g.M, c + 2, g.K, g.lda), at(g.A, row, g.M, c + 3, g.K, g.lda));
      Bs[ty][tx] = make_char4(at(g.B, r, g.N, c, g.K, g.ldb), at(g.B, r, g.N, c + 1, g.K, g.ldb),
                              at(g.B, r, g.N, c + 2, g.K, g.ldb), at(g.B, r, g.N, c + 3, g.K, g.ldb));
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BS / 4; k++) acc = __dp4a(As[ty][k], Bs[tx][k], acc);
    __syncthreads();
  }
  if (row < g.M && col < g.N) g.C[row * g.ldc + col] = __int2float_rn(acc) * (g.sa[row] * g.sb[col]);
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  Args g{a, b, a_scale, b_scale, out, (int)m, (int)n, (int)k, (long)a_row_stride, (long)b_row_stride, (long)out_row_stride};
  dim3 block(BS, BS), grid(CEIL(g.N, BS), CEIL(g.M, BS));
  igemm<<<grid, block, 0, stream>>>(g);
}
