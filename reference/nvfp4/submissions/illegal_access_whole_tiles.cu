// Wrong: reads and writes rows and blocks of whole tiles, which the matrix does not have.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;

// The code of a number that is not negative: to nearest, ties to even, at most 448.
__device__ unsigned e4m3_code(float u) {
  u = fminf(u, 448.0f);
  if (u < 0.015625f) return static_cast<unsigned>(rintf(u * 512.0f));
  const unsigned bits = __float_as_uint(u);
  return ((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - 960u;
}

__device__ float e4m3_value(unsigned code) {
  return code < 8u ? code / 512.0f : __uint_as_float((code + 960u) << 20);
}

// How many half-way points lie below: those where the tie goes down count from the next number on.
__device__ unsigned e2m1_code(float a) {
  return (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
}

__device__ int64_t place_of_scale(int64_t row, int64_t block, int64_t tiles) {
  return (row / 128 * tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

template <typename T>
__global__ void quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                         int64_t packed_row_stride, float global_scale) {
  const int64_t tiles = (blocks + 3) / 4, padded_rows = (rows + 127) / 128 * 128;
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= padded_rows * tiles * 4) return;
  const int64_t row = thread / (tiles * 4), block = thread % (tiles * 4);
  uint8_t* scale = scales + place_of_scale(row, block, tiles);
  const T* from = x + row * x_row_stride + block * 16;
  float largest = 0.0f;
  for (int i = 0; i < 16; ++i) largest = fmaxf(largest, fabsf(static_cast<float>(from[i])));
  const unsigned code = e4m3_code(largest * global_scale / 6.0f);
  const float factor = code == 0u ? 0.0f : global_scale / e4m3_value(code);
  *scale = static_cast<uint8_t>(code);
  uint8_t* to = packed + row * packed_row_stride + block * 8;
  for (int i = 0; i < 8; ++i) {
    unsigned byte = 0;
    for (int half = 0; half < 2; ++half) {
      const float value = static_cast<float>(from[2 * i + half]);
      const unsigned nibble = e2m1_code(fabsf(value * factor)) | (signbit(value) ? 8u : 0u);
      byte |= nibble << (4 * half);
    }
    to[i] = static_cast<uint8_t>(byte);
  }
}

template <typename T>
void nvfp4_quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                    int64_t packed_row_stride, float global_scale, cudaStream_t stream) {
  const int64_t threads = (rows + 127) / 128 * 128 * ((blocks + 3) / 4 * 4);
  quantise<<<static_cast<unsigned>((threads + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
      x, packed, scales, rows, blocks, x_row_stride, packed_row_stride, global_scale);
}
