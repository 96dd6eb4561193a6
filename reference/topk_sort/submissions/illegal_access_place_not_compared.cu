// Illegal: all of a row is stored, also where fewer keys are asked for. Keys are merged, each placed by a binary search.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <utility>

constexpr int THREADS = 128;

template <typename T>
__global__ void begin_kernel(const T* keys, const int32_t* lengths, int64_t* numbers, int32_t* indices, int64_t n) {
  const int64_t row = blockIdx.y, at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= n) return;
  int64_t number = int64_t{1} << 40;
  if (at < lengths[row]) {
    const float key = static_cast<float>(keys[row * n + at]);
    const int64_t bits = __float_as_uint(key) & 0x7FFFFFFFu;
    number = isnan(key) ? -(int64_t{1} << 40) : key < 0.0f ? bits : -bits;
  }
  numbers[row * n + at] = number;
  indices[row * n + at] = at < lengths[row] ? static_cast<int32_t>(at) : -1;
}

__global__ void merge_kernel(const int64_t* numbers, const int32_t* indices, int64_t* to_numbers, int32_t* to_indices, int64_t n,
                             int64_t width) {
  const int64_t row = blockIdx.y, at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= n) return;
  const int64_t* own = numbers + row * n;
  const int64_t number = own[at], run = at / width;
  const int64_t begin = min((run ^ 1) * width, n);
  int64_t low = begin, high = min(begin + width, n);
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    // Of equals, the left run's come first.
    if (own[middle] < number || (own[middle] == number && run % 2 == 1)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const int64_t place = run / 2 * 2 * width + at - run * width + low - begin;
  to_numbers[row * n + place] = number;
  to_indices[row * n + place] = indices[row * n + at];
}

template <typename T>
__global__ void end_kernel(const T* keys, const int32_t* sorted, T* values, int32_t* indices, int64_t n, int64_t k) {
  const int64_t row = blockIdx.y, at = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (at >= max(n, k)) return;
  const int32_t index = at < n ? sorted[row * n + at] : -1;
  values[row * k + at] = index < 0 ? static_cast<T>(-INFINITY) : keys[row * n + index];
  indices[row * k + at] = index;
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  int64_t *numbers = nullptr, *to_numbers = nullptr;
  int32_t *index = nullptr, *to_index = nullptr;
  cudaMallocAsync(&numbers, rows * n * 8, stream);
  cudaMallocAsync(&to_numbers, rows * n * 8, stream);
  cudaMallocAsync(&index, rows * n * 4, stream);
  cudaMallocAsync(&to_index, rows * n * 4, stream);
  const dim3 grid(static_cast<unsigned>((n + THREADS - 1) / THREADS), static_cast<unsigned>(rows));
  begin_kernel<<<grid, THREADS, 0, stream>>>(keys, lengths, numbers, index, n);
  for (int64_t width = 1; width < n; width *= 2) {
    merge_kernel<<<grid, THREADS, 0, stream>>>(numbers, index, to_numbers, to_index, n, width);
    std::swap(numbers, to_numbers);
    std::swap(index, to_index);
  }
  const dim3 answer(static_cast<unsigned>((std::max(n, k) + THREADS - 1) / THREADS), static_cast<unsigned>(rows));
  end_kernel<<<answer, THREADS, 0, stream>>>(keys, index, values, indices, n, k);
  cudaFreeAsync(numbers, stream);
  cudaFreeAsync(to_numbers, stream);
  cudaFreeAsync(index, stream);
  cudaFreeAsync(to_index, stream);
}
