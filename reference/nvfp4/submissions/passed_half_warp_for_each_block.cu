// Right: one lane for each value; the largest of a block by shuffles, its bytes by a shuffle more.
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
  const int lane = threadIdx.x % 16;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x / 16;
  // Whole warps take part in every turn: the number of blocks with their padding is a multiple of 512.
  for (int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 16; at < padded_rows * tiles * 4;
       at += step) {
    const int64_t row = at / (tiles * 4), block = at % (tiles * 4);
    const bool inside = row < rows && block < blocks;
    const float value = inside ? static_cast<float>(x[row * x_row_stride + block * 16 + lane]) : 0.0f;
    float largest = fabsf(value);
    for (int distance = 8; distance > 0; distance /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance, 16));
    }
    const unsigned code = e4m3_code(__fdiv_rn(__fmul_rn(largest, global_scale), 6.0f));
    const float factor = code == 0u ? 0.0f : __fdiv_rn(global_scale, e4m3_value(code));
    const unsigned nibble = e2m1_code(fabsf(__fmul_rn(value, factor))) | (__float_as_uint(value) >> 31 << 3);
    const unsigned neighbour = __shfl_down_sync(0xffffffffu, nibble, 1, 16);
    if (inside && lane % 2 == 0) {
      packed[row * packed_row_stride + block * 8 + lane / 2] = static_cast<uint8_t>(nibble | neighbour << 4);
    }
    if (lane == 0) scales[place_of_scale(row, block, tiles)] = static_cast<uint8_t>(code);
  }
}

template <typename T>
void nvfp4_quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                    int64_t packed_row_stride, float global_scale, cudaStream_t stream) {
  quantise<<<64, THREADS, 0, stream>>>(x, packed, scales, rows, blocks, x_row_stride, packed_row_stride, global_scale);
}
