// LayerNorm and RMSNorm over rows, the staff kernel:
//
//     out[i, j] = (x[i, j] - m[i]) / sqrt(v[i] + eps) * weight[j] + bias[j],    v[i] = mean of (x[i, :] - m[i])^2
//
// where m[i] is the mean of the row if `center` is 1, and 0 if it is 0. One block per row. A row that fits the registers of a
// block is read once and written once; it stays there as it was loaded, in packs of 16 bytes, and is widened to float each
// time it is used, which costs less than the registers would. Longer rows are read twice: every thread carries Welford's
// mean and sum of squares about it, the k-th value x adding
//
//     d = x - m,    m' = m + d / k,    q' = q + d * (x - m'),
//
// and two threads that saw n and k values join theirs with d = m2 - m1 as
//
//     m = m1 + d * k / (n + k),    q = q1 + q2 + d^2 * n * k / (n + k).
//
// Sources: Welford, "Note on a method for calculating corrected sums of squares and products", 1962; Chan, Golub and LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

constexpr int PACK_BYTES = 16;
constexpr int PACKS = 4;  // Packs of a row that a thread holds in registers.
constexpr int SHORT_THREADS = 512;  // At most; a row that needs fewer gets fewer.
constexpr int LONG_THREADS = 512;

// What a thread loads at once: 16 bytes where rows allow it, one element where they do not.
template <typename T, int WIDTH>
using Pack = std::conditional_t<WIDTH == 1, T, uint4>;

template <typename T, typename P>
__device__ float nth(const P& pack, int i) {
  return static_cast<float>(reinterpret_cast<const T*>(&pack)[i]);
}

__device__ float over_warp(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Add one value of every thread: in each warp by shuffles, and then one of every warp. Each call has its own `of_warps`, so
// that no barrier has to stand behind it.
__device__ float over_block(float value, float* of_warps) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  value = over_warp(value);
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return over_warp(lane < blockDim.x / 32 ? of_warps[lane] : 0.0f);
}

// Write one pack of a row: what is left of x, scaled and shifted by column.
template <typename T, int WIDTH>
__device__ void store_pack(const Pack<T, WIDTH>& x, const T* weight, const T* bias, T* out, float mean, float scale) {
  const auto weights = *reinterpret_cast<const Pack<T, WIDTH>*>(weight);
  const auto biases = *reinterpret_cast<const Pack<T, WIDTH>*>(bias);
  Pack<T, WIDTH> result;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) {
    const float normal = (nth<T>(x, i) - mean) * scale;
    reinterpret_cast<T*>(&result)[i] = static_cast<T>(normal * nth<T>(weights, i) + nth<T>(biases, i));
  }
  *reinterpret_cast<Pack<T, WIDTH>*>(out) = result;
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(SHORT_THREADS)
    norm_short(const T* x, const T* weight, const T* bias, T* out, int cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, bool center) {
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  __shared__ float of_warps[2][32];
  Pack<T, WIDTH> row[PACKS];
  float sum = 0.0f;
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
    if (column < cols) row[pack] = *reinterpret_cast<const Pack<T, WIDTH>*>(x + column);
  }
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) sum += column < cols ? nth<T>(row[pack], i) : 0.0f;
  }
  const float mean = center ? over_block(sum, of_warps[0]) / cols : 0.0f;
  float squares = 0.0f;
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      const float rest = column < cols ? nth<T>(row[pack], i) - mean : 0.0f;
      squares += rest * rest;
    }
  }
  const float scale = rsqrtf(over_block(squares, of_warps[1]) / cols + eps);
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
    if (column < cols) store_pack<T, WIDTH>(row[pack], weight + column, bias + column, out + column, mean, scale);
  }
}

struct Moments {
  float count, mean, squares;
};

__device__ Moments joined(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float share = b.count / count, apart = b.mean - a.mean;
  return {count, a.mean + apart * share, a.squares + b.squares + apart * apart * a.count * share};
}

__device__ Moments over_warp(Moments mine) {
  for (int step = 1; step < 32; step *= 2) {
    const Moments other = {__shfl_down_sync(0xffffffffu, mine.count, step),
                           __shfl_down_sync(0xffffffffu, mine.mean, step),
                           __shfl_down_sync(0xffffffffu, mine.squares, step)};
    mine = joined(mine, other);
  }
  return mine;  // The first lane's is that of the warp.
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    norm_long(const T* x, const T* weight, const T* bias, T* out, int64_t cols, int64_t x_row_stride,
              int64_t out_row_stride, float eps, bool center) {
  constexpr int64_t STEP = static_cast<int64_t>(LONG_THREADS) * WIDTH;
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  __shared__ Moments of_warps[LONG_THREADS / 32];
  Moments mine = {0.0f, 0.0f, 0.0f};
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    const auto pack = *reinterpret_cast<const Pack<T, WIDTH>*>(x + column);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      const float value = nth<T>(pack, i), apart = value - mine.mean;
      mine.count += 1.0f;
      mine.mean += apart / mine.count;
      mine.squares += apart * (value - mine.mean);
    }
  }
  mine = over_warp(mine);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  Moments all = of_warps[0];
  for (int warp = 1; warp < LONG_THREADS / 32; ++warp) all = joined(all, of_warps[warp]);
  // About zero instead of the mean, the mean of the squares is larger by mean^2.
  const float variance = all.squares / cols + (center ? 0.0f : all.mean * all.mean);
  const float mean = center ? all.mean : 0.0f, scale = rsqrtf(variance + eps);
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    const auto pack = *reinterpret_cast<const Pack<T, WIDTH>*>(x + column);
    store_pack<T, WIDTH>(pack, weight + column, bias + column, out + column, mean, scale);
  }
}

template <typename T, int WIDTH>
void launch(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
            int64_t out_row_stride, float eps, bool center, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  const int64_t threads = (cols + PACKS * WIDTH - 1) / (PACKS * WIDTH);
  if (threads <= SHORT_THREADS) {
    const unsigned whole_warps = static_cast<unsigned>(threads + 31) / 32 * 32;
    norm_short<T, WIDTH><<<blocks, whole_warps, 0, stream>>>(x, weight, bias, out, static_cast<int>(cols), x_row_stride,
                                                             out_row_stride, eps, center);
  } else {
    norm_long<T, WIDTH><<<blocks, LONG_THREADS, 0, stream>>>(x, weight, bias, out, cols, x_row_stride, out_row_stride,
                                                             eps, center);
  }
}

template <typename T>
void layernorm(const T* x, const T* weight, const T* bias, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
               int64_t out_row_stride, float eps, int64_t center, cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight) |
                      reinterpret_cast<uintptr_t>(bias) | reinterpret_cast<uintptr_t>(out);
  const bool whole_packs = (cols | x_row_stride | out_row_stride) % WIDTH == 0;
  if (begins % PACK_BYTES == 0 && whole_packs) {
    launch<T, WIDTH>(x, weight, bias, out, rows, cols, x_row_stride, out_row_stride, eps, center != 0, stream);
  } else {
    launch<T, 1>(x, weight, bias, out, rows, cols, x_row_stride, out_row_stride, eps, center != 0, stream);
  }
}
