// Milestone: one kernel for the scales, which a second one reads back before it packs the values. x is read twice.
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
__global__ void scale(const T* x, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride, float global_scale) {
  const int64_t tiles = (blocks + 3) / 4;
  const int64_t block = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x, row = blockIdx.y;
  if (block >= tiles * 4) return;
  float largest = 0.0f;
  if (row < rows && block < blocks) {
    const T* from = x + row * x_row_stride + block * 16;
    for (int i = 0; i < 16; ++i) largest = fmaxf(largest, fabsf(static_cast<float>(from[i])));
  }
  const float target = __fdiv_rn(__fmul_rn(largest, global_scale), 6.0f);
  scales[place_of_scale(row, block, tiles)] = static_cast<uint8_t>(e4m3_code(target));
}

template <typename T>
__global__ void pack(const T* x, uint8_t* packed, const uint8_t* scales, int64_t blocks, int64_t x_row_stride,
                     int64_t packed_row_stride, float global_scale) {
  const int64_t byte = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x, row = blockIdx.y;
  if (byte >= blocks * 8) return;
  const unsigned code = scales[place_of_scale(row, byte / 8, (blocks + 3) / 4)];
  const float factor = code == 0u ? 0.0f : __fdiv_rn(global_scale, e4m3_value(code));
  unsigned nibbles[2];
  for (int half = 0; half < 2; ++half) {
    const float value = static_cast<float>(x[row * x_row_stride + byte * 2 + half]);
    nibbles[half] = e2m1_code(fabsf(__fmul_rn(value, factor))) | (__float_as_uint(value) >> 31 << 3);
  }
  packed[row * packed_row_stride + byte] = static_cast<uint8_t>(nibbles[0] | nibbles[1] << 4);
}

template <typename T>
void nvfp4_quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                    int64_t packed_row_stride, float global_scale, cudaStream_t stream) {
  // Rows are counted by the grid's second dimension, which ends at 65535.
  for (int64_t first = 0; first < rows; first += 32768) {
    const int64_t count = rows - first < 32768 ? rows - first : 32768, tiles = (blocks + 3) / 4;
    const T* from = x + first * x_row_stride;
    uint8_t* of_scales = scales + first / 128 * tiles * 512;
    const dim3 by_scale(static_cast<unsigned>((tiles * 4 + THREADS - 1) / THREADS),
                        static_cast<unsigned>((count + 127) / 128 * 128));
    scale<<<by_scale, THREADS, 0, stream>>>(from, of_scales, count, blocks, x_row_stride, global_scale);
    const dim3 by_byte(static_cast<unsigned>((blocks * 8 + THREADS - 1) / THREADS), static_cast<unsigned>(count));
    pack<<<by_byte, THREADS, 0, stream>>>(from, packed + first * packed_row_stride, of_scales, blocks, x_row_stride,
                                          packed_row_stride, global_scale);
  }
}
