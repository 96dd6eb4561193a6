// Top-k and radix sort, first milestone: all digits, one warp for each row, and whole rows are sorted whatever k is.
//
// A launch for each digit of eight bits, the lowest first. A warp counts its row's digits, and then moves 32 keys at a time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

template <typename T>
__device__ int digit_of(T key, int shift) {
  const float wide = static_cast<float>(key);
  if (wide != wide) return 0;
  const uint32_t bits = __float_as_uint(wide == 0.0f ? 0.0f : wide);
  // Of negative keys, those with larger bits come later; of the others, they come earlier; and these before those.
  return (bits >> 31 ? bits : bits ^ 0x7FFFFFFFu) >> shift & 255;
}

template <typename T>
__global__ void fill_kernel(const int32_t* lengths, T* values, int32_t* indices, int64_t k) {
  const int64_t row = blockIdx.y, place = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (place < lengths[row] || place >= k) return;
  values[row * k + place] = static_cast<T>(-INFINITY);
  indices[row * k + place] = -1;
}

template <typename T>
__global__ void pass_kernel(const T* keys, const int32_t* indices, const int32_t* lengths, T* to_keys, int32_t* to_indices,
                            int64_t n, int64_t to_n, int shift) {
  __shared__ int following[256];
  const int64_t row = blockIdx.x;
  const int lane = threadIdx.x, length = lengths[row];
  for (int i = lane; i < 256; i += 32) following[i] = 0;
  __syncwarp();
  for (int i = lane; i < length; i += 32) atomicAdd(&following[digit_of(keys[row * n + i], shift)], 1);
  __syncwarp();
  if (lane == 0) {
    int before = 0;
    for (int i = 0; i < 256; ++i) {
      const int count = following[i];
      following[i] = before;
      before += count;
    }
  }
  __syncwarp();
  for (int start = 0; start < length; start += 32) {
    const int i = start + lane;
    const T key = i < length ? keys[row * n + i] : static_cast<T>(0.0f);
    const int digit = i < length ? digit_of(key, shift) : 256;
    const unsigned same = __match_any_sync(~0u, digit);
    const int earlier = __popc(same & ((1u << lane) - 1));
    const int64_t place = i < length ? following[digit] + earlier : to_n;
    __syncwarp();
    if (i < length && earlier == 0) following[digit] += __popc(same);
    __syncwarp();
    if (place < to_n) {
      to_keys[row * to_n + place] = key;
      to_indices[row * to_n + place] = indices == nullptr ? i : indices[row * n + i];
    }
  }
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((k + THREADS - 1) / THREADS), static_cast<unsigned>(rows));
  fill_kernel<<<grid, THREADS, 0, stream>>>(lengths, values, indices, k);
  T* of_keys = nullptr;
  int32_t* of_indices = nullptr;
  if (cudaMallocAsync(&of_keys, 2 * rows * n * sizeof(T), stream) != cudaSuccess) return;
  if (cudaMallocAsync(&of_indices, 2 * rows * n * sizeof(int32_t), stream) != cudaSuccess) return;
  const T* from = keys;
  const int32_t* from_indices = nullptr;
  for (int pass = 0; pass < 4; ++pass) {
    T* to = pass == 3 ? values : of_keys + pass % 2 * rows * n;
    int32_t* to_indices = pass == 3 ? indices : of_indices + pass % 2 * rows * n;
    pass_kernel<<<static_cast<unsigned>(rows), 32, 0, stream>>>(from, from_indices, lengths, to, to_indices, n, pass == 3 ? k : n,
                                                                8 * pass);
    from = to;
    from_indices = to_indices;
  }
  cudaFreeAsync(of_keys, stream);
  cudaFreeAsync(of_indices, stream);
}
