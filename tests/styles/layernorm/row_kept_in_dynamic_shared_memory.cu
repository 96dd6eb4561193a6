// The row is kept as floats in dynamic shared memory, opted in with cudaFuncSetAttribute, so that it is read only once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int64_t kMostBytes = 160 * 1024;

#define MUST(call)                                                                    \
  do {                                                                                \
    if (cudaError_t bad = (call)) {                                                   \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(bad));       \
      std::abort();                                                                   \
    }                                                                                 \
  } while (0)

// The same number in every thread of the block. The array may be used again after the next call's first barrier.
__device__ float sum_of_block(float value, float* scratch) {
  for (int step = 16; step > 0; step >>= 1) value += __shfl_down_sync(0xffffffffu, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  float total = 0.0f;
  for (int w = 0; w < kWarps; ++w) total += scratch[w];
  return total;
}

// Where the row's values come from the second and third time.
template <typename T, bool kCached>
struct Row {
  const T* global;
  float* shared;

  __device__ float first(int64_t c) const {
    const float v = static_cast<float>(global[c]);
    if (kCached) shared[c] = v;
    return v;
  }
  __device__ float again(int64_t c) const { return kCached ? shared[c] : static_cast<float>(global[c]); }
};

template <typename T, bool kCached>
__global__ void __launch_bounds__(kThreads)
    norm_rows(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out,
              int64_t cols, int64_t x_stride, int64_t out_stride, float eps, bool center) {
  extern __shared__ float cache[];
  __shared__ float scratch[kWarps];
  const Row<T, kCached> row{x + blockIdx.x * x_stride, cache};
  out += blockIdx.x * out_stride;

  // Each thread only ever reads what it wrote itself: the cache needs no barrier.
  float sum = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += row.first(c);
  float mean = sum_of_block(sum, scratch) / static_cast<float>(cols);
  if (!center) mean = 0.0f;

  float squares = 0.0f;
  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float d = row.again(c) - mean;
    squares = fmaf(d, d, squares);
  }
  const float variance = sum_of_block(squares, scratch) / static_cast<float>(cols);
  const float scale = rsqrtf(variance + eps);

  for (int64_t c = threadIdx.x; c < cols; c += kThreads) {
    const float normed = (row.again(c) - mean) * scale;
    out[c] = static_cast<T>(fmaf(normed, static_cast<float>(weight[c]), static_cast<float>(bias[c])));
  }
}

}  // namespace

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  const int64_t bytes = cols * static_cast<int64_t>(sizeof(float));
  const unsigned blocks = static_cast<unsigned>(rows);
  if (bytes <= kMostBytes) {
    if (bytes > 32 * 1024) {
      MUST(cudaFuncSetAttribute(norm_rows<T, true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(bytes)));
    }
    norm_rows<T, true><<<blocks, kThreads, static_cast<size_t>(bytes), stream>>>(
        x, weight, bias, out, cols, x_row_stride, out_row_stride, eps, center != 0);
  } else {
    norm_rows<T, false><<<blocks, kThreads, 0, stream>>>(x, weight, bias, out, cols, x_row_stride, out_row_stride, eps,
                                                         center != 0);
  }
  MUST(cudaGetLastError());
}
