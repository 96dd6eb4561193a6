// A pipeline of three stages: cp.async by inline PTX fills one pair of shared tiles while another one is multiplied.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int BM = 64, BN = 64, BK = 16, STAGES = 3, THREADS = 256;

__device__ __forceinline__ void cp_async_16(void* shared, const void* global) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(global) : "memory");
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

// A tile of ROWS x COLS: packs that lie inside and are aligned go asynchronously, all others element by element.
template <int ROWS, int COLS, typename T>
__device__ __forceinline__ void fetch(T (*tile)[COLS], const T* from, int64_t row0, int64_t col0, int64_t rows,
                                      int64_t cols, int64_t stride) {
  constexpr int PACK = 16 / sizeof(T), PACKS = COLS / PACK;
  for (int p = threadIdx.x; p < ROWS * PACKS; p += THREADS) {
    const int r = p / PACKS, c = p % PACKS * PACK;
    const int64_t row = row0 + r, col = col0 + c;
    T* to = &tile[r][c];
    const T* at = from + row * stride + col;
    if (row < rows && col + PACK <= cols && reinterpret_cast<uintptr_t>(at) % 16 == 0) {
      cp_async_16(to, at);
    } else {
      for (int i = 0; i < PACK; ++i) to[i] = row < rows && col + i < cols ? at[i] : static_cast<T>(0.0f);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    pipelined(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc) {
  __shared__ alignas(16) T as[STAGES][BM][BK];
  __shared__ alignas(16) T bs[STAGES][BK][BN];
  const int64_t row0 = static_cast<int64_t>(blockIdx.y) * BM, col0 = static_cast<int64_t>(blockIdx.x) * BN;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int64_t steps = (k + BK - 1) / BK;
  float acc[4][4] = {};

  for (int s = 0; s < STAGES - 1; ++s) {
    if (s < steps) {
      fetch<BM, BK>(as[s], a, row0, static_cast<int64_t>(s) * BK, m, k, lda);
      fetch<BK, BN>(bs[s], b, static_cast<int64_t>(s) * BK, col0, k, n, ldb);
    }
    cp_async_commit();
  }
  for (int64_t step = 0; step < steps; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    const int64_t next = step + STAGES - 1;
    if (next < steps) {
      const int into = static_cast<int>(next % STAGES);
      fetch<BM, BK>(as[into], a, row0, next * BK, m, k, lda);
      fetch<BK, BN>(bs[into], b, next * BK, col0, k, n, ldb);
    }
    cp_async_commit();
    const int now = static_cast<int>(step % STAGES);
#pragma unroll
    for (int l = 0; l < BK; ++l) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = static_cast<float>(as[now][ty * 4 + i][l]);
#pragma unroll
      for (int j = 0; j < 4; ++j) right[j] = static_cast<float>(bs[now][l][tx * 4 + j]);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(left[i], right[j], acc[i][j]);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int64_t row = row0 + ty * 4 + i, col = col0 + tx * 4 + j;
      if (row < m && col < n) c[row * ldc + col] = static_cast<T>(acc[i][j]);
    }
  }
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + BN - 1) / BN), static_cast<unsigned>((m + BM - 1) / BM));
  pipelined<T><<<grid, THREADS, 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
