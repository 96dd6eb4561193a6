// Naive matmul, the staff kernel: c[i, j] = sum_l a[i, l] * b[l, j], straight from memory, without shared memory.
//
// A thread has ROWS x COLUMNS sums in registers. For each l it loads ROWS elements of a and COLUMNS of b, and multiplies each
// with each: (ROWS + COLUMNS) / (ROWS * COLUMNS) loads for a multiplication, where a single sum needs two.
//
// Neighbouring lanes have neighbouring columns: what they load of b and store to c is a line of memory, and what they load of a
// is one element, which a warp gets in one piece. A thread's own columns are a warp's width apart for the same reason.
//
// Rows and columns beyond the edge are replaced by the last ones, so that the loop needs no masks; only stores are guarded.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int WARP = 32;
constexpr int WARPS = 4;
constexpr int ROWS = 4;     // Of sums of a thread; neighbours.
constexpr int COLUMNS = 4;  // Of sums of a thread; WARP apart.

__device__ int64_t at_most(int64_t index, int64_t last) { return index < last ? index : last; }

template <typename T>
__global__ void __launch_bounds__(WARP* WARPS)
    matmul_kernel(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
                  int64_t c_row_stride) {
  const int64_t row = (static_cast<int64_t>(blockIdx.y) * WARPS + threadIdx.y) * ROWS;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * WARP * COLUMNS + threadIdx.x;
  const T *a_rows[ROWS], *b_columns[COLUMNS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) a_rows[i] = a + at_most(row + i, m - 1) * a_row_stride;
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) b_columns[j] = b + at_most(column + j * WARP, n - 1);

  float sums[ROWS][COLUMNS] = {};
#pragma unroll 4
  for (int64_t l = 0; l < k; ++l) {
    float left[ROWS], right[COLUMNS];
#pragma unroll
    for (int i = 0; i < ROWS; ++i) left[i] = static_cast<float>(a_rows[i][l]);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) right[j] = static_cast<float>(b_columns[j][l * b_row_stride]);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) sums[i][j] += left[i] * right[j];
    }
  }

#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      const bool inside = row + i < m && column + j * WARP < n;
      if (inside) c[(row + i) * c_row_stride + column + j * WARP] = static_cast<T>(sums[i][j]);
    }
  }
}

template <typename T>
void matmul(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
            int64_t c_row_stride, cudaStream_t stream) {
  const int64_t block_rows = WARPS * ROWS, block_columns = WARP * COLUMNS;
  const dim3 blocks(static_cast<unsigned>((n + block_columns - 1) / block_columns),
                    static_cast<unsigned>((m + block_rows - 1) / block_rows));
  matmul_kernel<<<blocks, dim3(WARP, WARPS), 0, stream>>>(a, b, c, m, n, k, a_row_stride, b_row_stride, c_row_stride);
}
