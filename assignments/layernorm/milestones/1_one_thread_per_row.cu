// LayerNorm, first milestone: a thread for each row.
//
// Nothing has to be combined, so there is no barrier and no shuffle. But the 32 threads of a warp read 32 rows at
// once: every load touches 32 lines of memory, of which it uses one element each.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 32;

template <typename T>
__global__ void norm_kernel(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols,
                            int64_t x_row_stride, int64_t out_row_stride, float eps, int64_t center) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (row >= rows) return;
  x += row * x_row_stride;
  out += row * out_row_stride;
  // Sums of neighbours first, about as many as there are of these sums: added one by one, a long row loses digits.
  int64_t run = 1;
  while (run * run < 4 * cols) run *= 2;
  float sum = 0.0f, squares = 0.0f;
  for (int64_t first = 0; first < cols; first += run) {
    float part = 0.0f;
    for (int64_t column = first; column < first + run && column < cols; ++column) part += static_cast<float>(x[column]);
    sum += part;
  }
  const float about = center ? sum / cols : 0.0f;
  for (int64_t first = 0; first < cols; first += run) {
    float part = 0.0f;
    for (int64_t column = first; column < first + run && column < cols; ++column) {
      const float rest = static_cast<float>(x[column]) - about;
      part += rest * rest;
    }
    squares += part;
  }
  const float scale = rsqrtf(squares / cols + eps);
  for (int64_t column = 0; column < cols; ++column) {
    const float normal = (static_cast<float>(x[column]) - about) * scale;
    out[column] = static_cast<T>(normal * static_cast<float>(weight[column]) + static_cast<float>(bias[column]));
  }
}

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((rows + THREADS - 1) / THREADS);
  norm_kernel<<<blocks, THREADS, 0, stream>>>(x, weight, bias, out, rows, cols, x_row_stride, out_row_stride, eps, center);
}
