// Four warps in a block, and a warp for each row: packs per lane, a butterfly of shuffles, no shared memory at all.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

template <typename T, int N>
struct alignas(N * sizeof(T)) Chunk {
  T at[N];
};

template <typename T, int N, int WARPS_PER_BLOCK>
__global__ void __launch_bounds__(32 * WARPS_PER_BLOCK)
    add_rms_warp(const T* __restrict__ x, const T* __restrict__ r, const T* __restrict__ weight, T* __restrict__ s,
                 T* __restrict__ out, int64_t rows, int64_t cols, int64_t ldx, int64_t ldr, int64_t lds, int64_t ldo,
                 float eps) {
  using C = Chunk<T, N>;
  const int lane = threadIdx.x;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * WARPS_PER_BLOCK + threadIdx.y;
  if (row >= rows) return;  // The whole warp leaves together.

  const C* xc = reinterpret_cast<const C*>(x + row * ldx);
  const C* rc = reinterpret_cast<const C*>(r + row * ldr);
  const C* wc = reinterpret_cast<const C*>(weight);
  C* sc = reinterpret_cast<C*>(s + row * lds);
  C* oc = reinterpret_cast<C*>(out + row * ldo);
  const int64_t chunks = cols / N;

  float squares[2] = {0.0f, 0.0f};
#pragma unroll 4
  for (int64_t c = lane; c < chunks; c += 32) {
    const C a = xc[c], b = rc[c];
    C sum;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      sum.at[k] = static_cast<T>(static_cast<float>(a.at[k]) + static_cast<float>(b.at[k]));
      const float rounded = static_cast<float>(sum.at[k]);
      squares[k % 2] = fmaf(rounded, rounded, squares[k % 2]);
    }
    sc[c] = sum;
  }
  float square = squares[0] + squares[1];
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) square += __shfl_xor_sync(0xffffffffu, square, mask);
  const float scale = rsqrtf(square / static_cast<float>(cols) + eps);

  // A lane reads again what it wrote itself.
#pragma unroll 4
  for (int64_t c = lane; c < chunks; c += 32) {
    const C sum = sc[c], w = wc[c];
    C res;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      res.at[k] = static_cast<T>(static_cast<float>(sum.at[k]) * scale * static_cast<float>(w.at[k]));
    }
    oc[c] = res;
  }
}

template <typename T>
void residual_norm(const T* x, const T* r, const T* weight, T* s, T* out, int64_t rows, int64_t cols,
                   int64_t x_row_stride, int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps,
                   cudaStream_t stream) {
  constexpr int W = 4, N = 16 / sizeof(T);
  const uintptr_t pointers = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(r) |
                             reinterpret_cast<uintptr_t>(weight) | reinterpret_cast<uintptr_t>(s) |
                             reinterpret_cast<uintptr_t>(out);
  const int64_t lengths = cols | x_row_stride | r_row_stride | s_row_stride | out_row_stride;
  const dim3 block(32, W), grid(static_cast<unsigned>((rows + W - 1) / W));
  if (pointers % 16 == 0 && lengths % N == 0) {
    add_rms_warp<T, N, W><<<grid, block, 0, stream>>>(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride,
                                                      s_row_stride, out_row_stride, eps);
  } else {
    add_rms_warp<T, 1, W><<<grid, block, 0, stream>>>(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride,
                                                      s_row_stride, out_row_stride, eps);
  }
}
