// Vector add, the staff kernel: out[i] = x[i] + y[i].
//
// One pass over memory: n·e bytes read twice, n·e written. Nothing is reused, so the time is the traffic divided by the
// bandwidth, and all that a kernel can do is to keep enough wide loads in flight. A thread adds one pack of 16 bytes, the
// widest load there is: four floats or eight 16-bit numbers with two loads and one store instead of four or eight each.
// Where a pointer does not begin at a multiple of 16 bytes, no wide load may be used, and a thread adds one element.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int PACK_BYTES = 16;

template <typename T>
__global__ void add_packs(const T* x, const T* y, T* out, int64_t n) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  // 64 bits: the vectors may have more than 2^31 elements.
  const int64_t pack = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  const int64_t first = pack * WIDTH;
  if (first + WIDTH <= n) {
    const uint4 xs = reinterpret_cast<const uint4*>(x)[pack];
    const uint4 ys = reinterpret_cast<const uint4*>(y)[pack];
    uint4 sums;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      reinterpret_cast<T*>(&sums)[i] = reinterpret_cast<const T*>(&xs)[i] + reinterpret_cast<const T*>(&ys)[i];
    }
    reinterpret_cast<uint4*>(out)[pack] = sums;
  } else {
    for (int64_t i = first; i < n; ++i) out[i] = x[i] + y[i];
  }
}

template <typename T>
__global__ void add_elements(const T* x, const T* y, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % PACK_BYTES == 0; }

unsigned blocks_for(int64_t threads) { return static_cast<unsigned>((threads + THREADS - 1) / THREADS); }

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  if (is_aligned(x) && is_aligned(y) && is_aligned(out)) {
    add_packs<<<blocks_for((n + WIDTH - 1) / WIDTH), THREADS, 0, stream>>>(x, y, out, n);
  } else {
    add_elements<<<blocks_for(n), THREADS, 0, stream>>>(x, y, out, n);
  }
}
