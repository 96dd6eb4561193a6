// Wrong: uses a name that nobody declared.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

template <typename T>
__global__ void softmax_rows(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  out[blockIdx.x * out_row_stride] = static_cast<T>(largest_of_row);
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  softmax_rows<<<static_cast<unsigned>(rows), 32, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
}
