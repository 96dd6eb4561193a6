// Right, in another way: number and index in one word of 64 bits, so that no two are equal, and a bitonic network.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr uint64_t NOTHING = ~uint64_t{0};

template <typename T>
__device__ uint64_t pair_of(T key, int64_t index) {
  const float wide = static_cast<float>(key);
  const uint32_t magnitude = __float_as_uint(fabsf(wide));
  uint32_t number = wide < 0.0f ? 0x80000000u + magnitude : 0x80000000u - magnitude;
  if (isnan(wide)) number = 0;
  return static_cast<uint64_t>(number) << 32 | static_cast<uint32_t>(index);
}

template <typename T>
__global__ void begin_kernel(const T* keys, const int32_t* lengths, uint64_t* pairs, int64_t n, int64_t padded) {
  const int64_t row = blockIdx.y, at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at < padded) pairs[row * padded + at] = at < lengths[row] ? pair_of(keys[row * n + at], at) : NOTHING;
}

__global__ void swap_kernel(uint64_t* pairs, int64_t padded, int64_t size, int64_t stride) {
  const int64_t row = blockIdx.y, i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i >= padded / 2) return;
  const int64_t low = i / stride * 2 * stride + i % stride;
  uint64_t *one = pairs + row * padded + low, *other = one + stride;
  const uint64_t a = *one, b = *other;
  if ((a > b) == ((low & size) == 0)) {
    *one = b;
    *other = a;
  }
}

template <typename T>
__global__ void end_kernel(const T* keys, const uint64_t* pairs, T* values, int32_t* indices, int64_t n, int64_t padded,
                           int64_t k) {
  const int64_t row = blockIdx.y, at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= k) return;
  const uint64_t pair = at < padded ? pairs[row * padded + at] : NOTHING;
  const int32_t index = pair == NOTHING ? -1 : static_cast<int32_t>(pair & 0xFFFFFFFFu);
  values[row * k + at] = index < 0 ? static_cast<T>(-INFINITY) : keys[row * n + index];
  indices[row * k + at] = index;
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  int64_t padded = 2;
  while (padded < n) padded *= 2;
  uint64_t* pairs = nullptr;
  if (cudaMallocAsync(&pairs, rows * padded * 8, stream) != cudaSuccess) return;
  const unsigned many = static_cast<unsigned>(rows);
  const auto blocks = [](int64_t threads) { return static_cast<unsigned>((threads + THREADS - 1) / THREADS); };
  begin_kernel<<<dim3(blocks(padded), many), THREADS, 0, stream>>>(keys, lengths, pairs, n, padded);
  for (int64_t size = 2; size <= padded; size *= 2) {
    for (int64_t stride = size / 2; stride > 0; stride /= 2) {
      swap_kernel<<<dim3(blocks(padded / 2), many), THREADS, 0, stream>>>(pairs, padded, size, stride);
    }
  }
  end_kernel<<<dim3(blocks(k), many), THREADS, 0, stream>>>(keys, pairs, values, indices, n, padded, k);
  cudaFreeAsync(pairs, stream);
}
