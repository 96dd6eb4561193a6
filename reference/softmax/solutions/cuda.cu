// Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / sum_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].
//
// One block per row. A row that fits the registers of a block is read once and written once, which is the least there is.
// Longer rows go through the online form: every thread carries a maximum m and a sum s over what it has seen,
//
//     m' = max(m, max of the pack),    s' = s * exp(m - m') + sum of exp(pack - m'),
//
// the threads of the block bring theirs together once, and a second pass writes the quotients. Loads and stores are of 16
// bytes wherever rows begin at multiples of 16 bytes and have whole packs; otherwise of one element. Exponentials are taken
// in base 2, exp(x) = 2^(x * log2 e), which is what the hardware has.
//
// Source of the online form: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int PACK_BYTES = 16;
constexpr int SHORT_THREADS = 256;
constexpr int SHORT_PACKS = 4;  // Packs of a row that a thread holds in registers.
constexpr int LONG_THREADS = 1024;
constexpr float LOG2_E = 1.4426950408889634f;

// What a thread loads at once, as floats; columns at or beyond `left` count as -inf.
template <typename T, int WIDTH>
__device__ void load_pack(const T* from, int64_t left, float (&into)[WIDTH]) {
  if (left <= 0) {
    for (int i = 0; i < WIDTH; ++i) into[i] = -INFINITY;
  } else if constexpr (WIDTH == 1) {
    into[0] = static_cast<float>(*from);
  } else {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) into[i] = static_cast<float>(reinterpret_cast<const T*>(&raw)[i]);
  }
}

template <typename T, int WIDTH>
__device__ void store_pack(T* to, const float (&from)[WIDTH]) {
  if constexpr (WIDTH == 1) {
    *to = static_cast<T>(from[0]);
  } else {
    uint4 raw;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&raw)[i] = static_cast<T>(from[i]);
    *reinterpret_cast<uint4*>(to) = raw;
  }
}

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Bring one value of every thread together by shuffles, and one of every warp by shared memory; all threads get the result.
template <int THREADS, typename Combine>
__device__ float over_block(float value, Combine combine, float* of_warps) {
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warps[0];
#pragma unroll
  for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, of_warps[warp]);
  __syncthreads();  // The next reduction uses the same memory.
  return value;
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(SHORT_THREADS)
    softmax_short(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  __shared__ float of_warps[SHORT_THREADS / 32];
  float values[SHORT_PACKS][WIDTH];
  float largest = -INFINITY;
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    const int64_t column = (static_cast<int64_t>(pack) * SHORT_THREADS + threadIdx.x) * WIDTH;
    load_pack(x + column, cols - column, values[pack]);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) largest = fmaxf(largest, values[pack][i]);
  }
  largest = over_block<SHORT_THREADS>(largest, Larger(), of_warps);
  float total = 0.0f;
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      values[pack][i] = exp2f((values[pack][i] - largest) * LOG2_E);
      total += values[pack][i];
    }
  }
  total = over_block<SHORT_THREADS>(total, Plus(), of_warps);
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    const int64_t column = (static_cast<int64_t>(pack) * SHORT_THREADS + threadIdx.x) * WIDTH;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) values[pack][i] /= total;
    if (column < cols) store_pack(out + column, values[pack]);
  }
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    softmax_long(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  constexpr int64_t STEP = static_cast<int64_t>(LONG_THREADS) * WIDTH;
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  __shared__ float of_warps[LONG_THREADS / 32];
  float values[WIDTH];
  float largest = -INFINITY, total = 0.0f;
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    load_pack(x + column, cols - column, values);
    float raised = largest;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) raised = fmaxf(raised, values[i]);
    // While a thread has seen -inf only, -inf - -inf must not become NaN.
    const float pivot = raised == -INFINITY ? 0.0f : raised;
    total *= exp2f((largest - pivot) * LOG2_E);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) total += exp2f((values[i] - pivot) * LOG2_E);
    largest = raised;
  }
  const float row_largest = over_block<LONG_THREADS>(largest, Larger(), of_warps);
  total = over_block<LONG_THREADS>(total * exp2f((largest - row_largest) * LOG2_E), Plus(), of_warps);
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    load_pack(x + column, cols - column, values);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) values[i] = exp2f((values[i] - row_largest) * LOG2_E) / total;
    store_pack(out + column, values);
  }
}

template <typename T, int WIDTH>
void launch(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
            cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  if (cols <= SHORT_THREADS * SHORT_PACKS * WIDTH) {
    softmax_short<T, WIDTH><<<blocks, SHORT_THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
  } else {
    softmax_long<T, WIDTH><<<blocks, LONG_THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out);
  const bool whole_packs = (cols | x_row_stride | out_row_stride) % WIDTH == 0;
  if (begins % PACK_BYTES == 0 && whole_packs) {
    launch<T, WIDTH>(x, out, rows, cols, x_row_stride, out_row_stride, stream);
  } else {
    launch<T, 1>(x, out, rows, cols, x_row_stride, out_row_stride, stream);
  }
}
