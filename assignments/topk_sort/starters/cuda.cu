// Top-k and radix sort: of every row the first k keys, in falling order, and where in the row they stood.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// Eight bits of a key; a digit that comes first is smaller.
template <typename T>
__device__ int digit_of(T key, int shift) {
  const uint32_t bits = __float_as_uint(static_cast<float>(key));
  // Your part: larger keys come first, but the bits of a float grow with its magnitude, whatever its sign. And where do
  // NaN and -0 belong?
  return ~bits >> shift & 255;
}

// One warp for each row.
template <typename T>
__global__ void sort_kernel(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t n, int64_t k) {
  __shared__ int following[256];
  const int64_t row = blockIdx.x;
  const int lane = threadIdx.x, length = lengths[row];
  for (int i = lane; i < 256; i += 32) following[i] = 0;
  __syncwarp();
  // Your part: this sorts by the highest digit only. Begin with the lowest one, and sort again and again.
  for (int i = lane; i < length; i += 32) atomicAdd(&following[digit_of(keys[row * n + i], 24)], 1);
  __syncwarp();
  // Where the next key of each digit goes: behind all keys of smaller digits.
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
    const int digit = i < length ? digit_of(key, 24) : 256;
    // The lanes with the same digit: the first of them goes to `following`, the second behind it.
    const unsigned same = __match_any_sync(~0u, digit);
    const int earlier = __popc(same & ((1u << lane) - 1));
    const int64_t place = i < length ? following[digit] + earlier : k;
    __syncwarp();
    if (i < length && earlier == 0) following[digit] += __popc(same);
    __syncwarp();
    if (place < k) {
      values[row * k + place] = key;
      indices[row * k + place] = i;
    }
  }
}

// The judge calls this function, on the host, with pointers to memory of the GPU. T is the type of the case's keys.
template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  // Your part: one warp for a row. And what is to stand in a row of the answer that is longer than the row of keys?
  sort_kernel<<<static_cast<unsigned>(rows), 32, 0, stream>>>(keys, lengths, values, indices, n, k);
}
