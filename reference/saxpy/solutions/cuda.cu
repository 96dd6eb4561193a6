// SAXPY, the staff kernel: out[i] = a * x[i] + y[i].
//
// 3·n·e bytes for 2·n operations, so the time is the traffic divided by the bandwidth. A thread asks for several packs of 16
// bytes of both vectors before it uses the first: these are the loads that hide each other's latency. The grid walks over the
// vectors in strides of its own length, so it is right for any number of blocks; how many are started is a matter of the
// machine (notes.md). The product is fused with the sum and rounds once. Where a vector does not begin at a multiple of 16
// bytes, no wide load may be used, and a thread takes one element at a time.
//
// Source of the grid-stride loop: Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", NVIDIA 2013.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PACK_BYTES = 16;
constexpr int PACKS = 2;  // Of each vector that a thread has on the way at the same time.
constexpr int BLOCKS_PER_MULTIPROCESSOR = 32;

template <typename T>
__device__ T scaled_sum(float a, T x, T y) {
  return static_cast<T>(fmaf(a, static_cast<float>(x), static_cast<float>(y)));
}

template <typename T>
__global__ void __launch_bounds__(THREADS) saxpy_packs(float a, const T* x, const T* y, T* out, int64_t n) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const int64_t packs = n / WIDTH;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * (THREADS * PACKS);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (THREADS * PACKS); first < packs; first += stride) {
    uint4 xs[PACKS], ys[PACKS];
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
      const int64_t pack = first + k * THREADS + threadIdx.x;
      if (pack < packs) {
        xs[k] = reinterpret_cast<const uint4*>(x)[pack];
        ys[k] = reinterpret_cast<const uint4*>(y)[pack];
      }
    }
#pragma unroll
    for (int k = 0; k < PACKS; ++k) {
      const int64_t pack = first + k * THREADS + threadIdx.x;
      uint4 sums;
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) {
        reinterpret_cast<T*>(&sums)[i] =
            scaled_sum(a, reinterpret_cast<const T*>(&xs[k])[i], reinterpret_cast<const T*>(&ys[k])[i]);
      }
      if (pack < packs) reinterpret_cast<uint4*>(out)[pack] = sums;
    }
  }
  // What fills no pack: fewer elements than one block has threads.
  const int64_t i = packs * WIDTH + threadIdx.x;
  if (blockIdx.x == 0 && i < n) out[i] = scaled_sum(a, x[i], y[i]);
}

template <typename T>
__global__ void __launch_bounds__(THREADS) saxpy_elements(float a, const T* x, const T* y, T* out, int64_t n) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * THREADS;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < n; i += stride) {
    out[i] = scaled_sum(a, x[i], y[i]);
  }
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % PACK_BYTES == 0; }

// Enough blocks for `work`, and no more than the device has places for in a few rounds.
unsigned blocks_for(int64_t work, int64_t per_block) {
  int device = 0, multiprocessors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  const int64_t most = static_cast<int64_t>(multiprocessors) * BLOCKS_PER_MULTIPROCESSOR;
  const int64_t wanted = (work + per_block - 1) / per_block;
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

template <typename T>
void saxpy(float a, const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  if (is_aligned(x) && is_aligned(y) && is_aligned(out)) {
    saxpy_packs<<<blocks_for(n / WIDTH, THREADS * PACKS), THREADS, 0, stream>>>(a, x, y, out, n);
  } else {
    saxpy_elements<<<blocks_for(n, THREADS), THREADS, 0, stream>>>(a, x, y, out, n);
  }
}
