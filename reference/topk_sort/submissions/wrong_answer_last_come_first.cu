// Wrong: the place of a key comes from a counter that all threads of a block want, so that equal digits change their order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <utility>

constexpr int THREADS = 256;

template <typename T>
__device__ int digit_of(T key, int shift) {
  const float wide = static_cast<float>(key);
  if (wide != wide) return 0;
  const uint32_t bits = __float_as_uint(wide == 0.0f ? 0.0f : wide);
  return (bits >> 31 ? bits : bits ^ 0x7FFFFFFFu) >> shift & 255;
}

template <typename T>
__global__ void pass_kernel(const T* keys, const int32_t* from, const int32_t* lengths, int32_t* to, int64_t n, int shift) {
  __shared__ int following[257];
  const int64_t row = blockIdx.x;
  const int length = lengths[row];
  following[threadIdx.x] = 0;
  if (threadIdx.x == 0) following[256] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < length; i += THREADS) atomicAdd(&following[digit_of(keys[row * n + from[row * n + i]], shift) + 1], 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 256; ++i) following[i] += following[i - 1];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < length; i += THREADS) {
    const int32_t index = from[row * n + i];
    to[row * n + atomicAdd(&following[digit_of(keys[row * n + index], shift)], 1)] = index;
  }
}

__global__ void begin_kernel(int32_t* indices, int64_t n) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at < n) indices[blockIdx.y * n + at] = static_cast<int32_t>(at);
}

template <typename T>
__global__ void end_kernel(const T* keys, const int32_t* sorted, const int32_t* lengths, T* values, int32_t* indices, int64_t n,
                           int64_t k) {
  const int64_t row = blockIdx.y, at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= k) return;
  const int32_t index = at < lengths[row] ? sorted[row * n + at] : -1;
  values[row * k + at] = index < 0 ? static_cast<T>(-INFINITY) : keys[row * n + index];
  indices[row * k + at] = index;
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  int32_t *index = nullptr, *to_index = nullptr;
  cudaMallocAsync(&index, rows * n * 4, stream);
  cudaMallocAsync(&to_index, rows * n * 4, stream);
  const auto blocks = [](int64_t threads) { return static_cast<unsigned>((threads + THREADS - 1) / THREADS); };
  begin_kernel<<<dim3(blocks(n), static_cast<unsigned>(rows)), THREADS, 0, stream>>>(index, n);
  for (int shift = 0; shift < 32; shift += 8) {
    pass_kernel<<<static_cast<unsigned>(rows), THREADS, 0, stream>>>(keys, index, lengths, to_index, n, shift);
    std::swap(index, to_index);
  }
  end_kernel<<<dim3(blocks(k), static_cast<unsigned>(rows)), THREADS, 0, stream>>>(keys, index, lengths, values, indices, n, k);
  cudaFreeAsync(index, stream);
  cudaFreeAsync(to_index, stream);
}
