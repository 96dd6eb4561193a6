// Ampere-style by inline PTX: cp.async into a ring of three stages, ldmatrix out of padded rows, mma.sync m16n8k16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int STAGES = 3;
constexpr int THREADS = 256;      // 8 warps: 2 down, 4 across
constexpr int WM = 64, WN = 32;   // of one warp
constexpr int LD = BK + 8;        // 80 bytes: eight rows of an ldmatrix fall into different banks
constexpr int STAGE_ITEMS = (BM + BN) * LD;

// ---- instructions ----
__device__ __forceinline__ uint32_t smem_u32(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Copies `bytes` of 16 and fills the rest with zeros.
__device__ __forceinline__ void cp_async_16(void* dst, const void* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(smem_u32(dst)), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_u32(p))
               : "memory");
}

__device__ __forceinline__ void mma_16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                          __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
      "%2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// ---- end of instructions ----

// ROWS rows of BK numbers, 16 bytes at a time; zeros outside of the matrix.
template <int ROWS, bool ALIGNED, typename T>
__device__ __forceinline__ void fetch(T* stage, const T* __restrict__ from, int64_t first_row, int64_t rows, int64_t k0,
                                      int64_t k, int64_t ld) {
  constexpr int PER_ROW = BK / 8;
#pragma unroll
  for (int t = 0; t < ROWS * PER_ROW / THREADS; ++t) {
    const int i = t * THREADS + threadIdx.x;
    const int r = i / PER_ROW, c = i % PER_ROW * 8;
    const int64_t row = first_row + r, left = k - (k0 + c);
    T* dst = stage + r * LD + c;
    if (ALIGNED) {
      const int bytes = row < rows && left > 0 ? (left >= 8 ? 16 : static_cast<int>(left) * 2) : 0;
      cp_async_16(dst, bytes > 0 ? from + row * ld + k0 + c : from, bytes);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e) dst[e] = row < rows && e < left ? from[row * ld + k0 + c + e] : static_cast<T>(0.0f);
    }
  }
}

template <typename T, bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2)
    gemm_mma(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int64_t m, int64_t n, int64_t k,
             int64_t lda, int64_t ldb, int64_t ldc) {
  extern __shared__ __align__(16) unsigned char raw[];
  T* const ring = reinterpret_cast<T*>(raw);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int wr = warp / 4 * WM, wc = warp % 4 * WN;

  // Eight rows of tiles are walked through together.
  const int tiles_m = static_cast<int>((m + BM - 1) / BM), tiles_n = static_cast<int>((n + BN - 1) / BN);
  const int band = blockIdx.x / (8 * tiles_n), in_band = blockIdx.x % (8 * tiles_n);
  const int height = min(8, tiles_m - 8 * band);
  const int64_t row0 = static_cast<int64_t>(8 * band + in_band % height) * BM;
  const int64_t col0 = static_cast<int64_t>(in_band / height) * BN;

  float acc[WM / 16][WN / 8][4];
#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.0f;

  const int slices = static_cast<int>((k + BK - 1) / BK);
  auto fetch_slice = [&](int slice) {
    if (slice < slices) {
      T* const stage = ring + slice % STAGES * STAGE_ITEMS;
      fetch<BM, ALIGNED>(stage, a, row0, m, static_cast<int64_t>(slice) * BK, k, lda);
      fetch<BN, ALIGNED>(stage + BM * LD, b, col0, n, static_cast<int64_t>(slice) * BK, k, ldb);
    }
    cp_async_commit();  // Also when there is nothing left: groups are counted.
  };

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) fetch_slice(s);

  for (int slice = 0; slice < slices; ++slice) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    // The stage that was multiplied in the last round is free now.
    fetch_slice(slice + STAGES - 1);

    const T* const as = ring + slice % STAGES * STAGE_ITEMS;
    const T* const bs = as + BM * LD;
#pragma unroll
    for (int kk = 0; kk < BK; kk += 16) {
      uint32_t fa[WM / 16][4], fb[WN / 16][4];
#pragma unroll
      for (int i = 0; i < WM / 16; ++i) ldmatrix_x4(fa[i], as + (wr + 16 * i + lane % 16) * LD + kk + lane / 16 * 8);
#pragma unroll
      for (int j = 0; j < WN / 16; ++j) {
        ldmatrix_x4(fb[j], bs + (wc + 16 * j + lane / 16 * 8 + lane % 8) * LD + kk + lane / 8 % 2 * 8);
      }
#pragma unroll
      for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) {
          mma_16816(acc[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1], T());
        }
    }
  }

#pragma unroll
  for (int i = 0; i < WM / 16; ++i)
#pragma unroll
    for (int j = 0; j < WN / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t row = row0 + wr + 16 * i + lane / 4 + e / 2 * 8;
        const int64_t col = col0 + wc + 8 * j + lane % 4 * 2 + e % 2;
        if (row < m && col < n) c[row * ldc + col] = static_cast<T>(acc[i][j][e]);
      }
}

template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(((m + BM - 1) / BM) * ((n + BN - 1) / BN));
  const int bytes = STAGES * STAGE_ITEMS * static_cast<int>(sizeof(T));
  const bool aligned = (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % 16 == 0 &&
                       (a_row_stride | b_row_stride) % 8 == 0;
  if (aligned) {
    cudaFuncSetAttribute(gemm_mma<T, true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    gemm_mma<T, true><<<blocks, THREADS, bytes, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
  } else {
    cudaFuncSetAttribute(gemm_mma<T, false>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    gemm_mma<T, false><<<blocks, THREADS, bytes, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
  }
}
