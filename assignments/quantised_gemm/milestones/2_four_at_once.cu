// Quantised GEMM, second milestone: tiles in shared memory, and __dp4a, which adds four products of bytes to a sum in one instruction.
//
// A block of 16 x 16 threads computes 64 x 64 sums, a thread 4 x 4 of them, sixteen rows and columns apart. A slice of 64 of K is sixteen
// words of four bytes for each row; a word more pads a row, so that the words of sixteen rows lie in different banks.
#include <cstdint>

constexpr int SIDE = 16;                 // Threads of a block in each direction.
constexpr int EACH = 4;                  // Sums of a thread in each direction.
constexpr int TILE = SIDE * EACH;
constexpr int SLICE = 64, WORDS = SLICE / 4;

// Four neighbours of a row, byte by byte: rows may begin anywhere.
__device__ int word_of(const int8_t* from, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t stride) {
  int word = 0;
  for (int i = 0; i < 4; ++i) {
    if (row < rows && column + i < columns) reinterpret_cast<int8_t*>(&word)[i] = from[row * stride + column + i];
  }
  return word;
}

__global__ void gemm_kernel(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m,
                            int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride) {
  __shared__ int left[TILE][WORDS + 1], right[TILE][WORDS + 1];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  int sums[EACH][EACH] = {};
  for (int64_t start = 0; start < k; start += SLICE) {
    for (int at = threadIdx.y * SIDE + threadIdx.x; at < TILE * WORDS; at += SIDE * SIDE) {
      const int r = at / WORDS, word = at % WORDS;
      left[r][word] = word_of(a, first_row + r, m, start + 4 * word, k, a_row_stride);
      right[r][word] = word_of(b, first_column + r, n, start + 4 * word, k, b_row_stride);
    }
    __syncthreads();
    for (int word = 0; word < WORDS; ++word) {
      int rows[EACH], columns[EACH];
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
        rows[i] = left[threadIdx.y + i * SIDE][word];
        columns[i] = right[threadIdx.x + i * SIDE][word];
      }
#pragma unroll
      for (int i = 0; i < EACH; ++i) {
#pragma unroll
        for (int j = 0; j < EACH; ++j) sums[i][j] = __dp4a(rows[i], columns[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < EACH; ++i) {
    for (int j = 0; j < EACH; ++j) {
      const int64_t row = first_row + threadIdx.y + i * SIDE, column = first_column + threadIdx.x + j * SIDE;
      if (row < m && column < n) {
        out[row * out_row_stride + column] = static_cast<float>(sums[i][j]) * a_scale[row] * b_scale[column];
      }
    }
  }
}

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((n + TILE - 1) / TILE), static_cast<unsigned>((m + TILE - 1) / TILE));
  gemm_kernel<<<grid, dim3(SIDE, SIDE), 0, stream>>>(a, b, a_scale, b_scale, out, m, n, k, a_row_stride, b_row_stride,
                                                     out_row_stride);
}
