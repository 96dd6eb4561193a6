// Right, and not the exercise: copies the rows to the host, works there, and copies the answers back.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

static unsigned bits_of(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The code of a number that is not negative: to nearest, ties to even, at most 448.
static unsigned e4m3_code(float u) {
  u = std::fmin(u, 448.0f);
  if (u < 0.015625f) return static_cast<unsigned>(std::rint(u * 512.0f));
  const unsigned bits = bits_of(u);
  return ((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - 960u;
}

static float e4m3_value(unsigned code) {
  return code < 8u ? code / 512.0f : float_of((code + 960u) << 20);
}

// How many half-way points lie below: those where the tie goes down count from the next number on.
static unsigned e2m1_code(float a) {
  return (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f);
}

static int64_t place_of_scale(int64_t row, int64_t block, int64_t tiles) {
  return (row / 128 * tiles + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

template <typename T>
void nvfp4_quantise(const T* x, uint8_t* packed, uint8_t* scales, int64_t rows, int64_t blocks, int64_t x_row_stride,
                    int64_t packed_row_stride, float global_scale, cudaStream_t stream) {
  const int64_t tiles = (blocks + 3) / 4;
  std::vector<T> of_x(blocks * 16);
  std::vector<uint8_t> of_packed(blocks * 8), of_scales((rows + 127) / 128 * tiles * 512);
  cudaStreamSynchronize(stream);
  for (int64_t row = 0; row < rows; ++row) {
    cudaMemcpy(of_x.data(), x + row * x_row_stride, of_x.size() * sizeof(T), cudaMemcpyDeviceToHost);
    for (int64_t block = 0; block < blocks; ++block) {
      float values[16], largest = 0.0f;
      for (int i = 0; i < 16; ++i) {
        values[i] = static_cast<float>(of_x[block * 16 + i]);
        largest = std::fmax(largest, std::fabs(values[i]));
      }
      const unsigned code = e4m3_code(largest * global_scale / 6.0f);
      const float factor = code == 0u ? 0.0f : global_scale / e4m3_value(code);
      of_scales[place_of_scale(row, block, tiles)] = static_cast<uint8_t>(code);
      for (int i = 0; i < 8; ++i) {
        unsigned nibbles[2];
        for (int half = 0; half < 2; ++half) {
          const float value = values[2 * i + half];
          nibbles[half] = e2m1_code(std::fabs(value * factor)) | (std::signbit(value) ? 8u : 0u);
        }
        of_packed[block * 8 + i] = static_cast<uint8_t>(nibbles[0] | nibbles[1] << 4);
      }
    }
    cudaMemcpy(packed + row * packed_row_stride, of_packed.data(), of_packed.size(), cudaMemcpyHostToDevice);
  }
  cudaMemcpy(scales, of_scales.data(), of_scales.size(), cudaMemcpyHostToDevice);
}
