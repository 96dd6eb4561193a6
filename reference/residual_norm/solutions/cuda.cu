// Residual addition and RMSNorm in one kernel, the staff kernel:
//
//     s[i, j] = x[i, j] + r[i, j],    out[i, j] = s[i, j] / sqrt(mean of s[i, :]^2 + eps) * weight[j]
//
// `s` is rounded to its type once, and the norm takes what was stored. One block per row. A row that fits the registers of a
// block is read once from each input and written once to each output: 4 rows cols e bytes, where two kernels move 5. The sums
// stay in registers as they were stored, in packs of 16 bytes. Longer rows go twice over their columns: the second pass
// reads back the sum, of which every thread reads what it wrote itself, so that no barrier is needed for it.
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

template <typename T, int WIDTH>
__device__ Pack<T, WIDTH> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, WIDTH>*>(from);
}

template <typename T, int WIDTH>
__device__ void store_pack(T* to, const Pack<T, WIDTH>& pack) {
  *reinterpret_cast<Pack<T, WIDTH>*>(to) = pack;
}

template <typename T, int WIDTH>
__device__ Pack<T, WIDTH> added(const Pack<T, WIDTH>& x, const Pack<T, WIDTH>& r) {
  Pack<T, WIDTH> s;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&s)[i] = static_cast<T>(nth<T>(x, i) + nth<T>(r, i));
  return s;
}

template <typename T, int WIDTH>
__device__ float sum_of_squares(const Pack<T, WIDTH>& s) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) sum += nth<T>(s, i) * nth<T>(s, i);
  return sum;
}

template <typename T, int WIDTH>
__device__ Pack<T, WIDTH> scaled(const Pack<T, WIDTH>& s, float scale, const Pack<T, WIDTH>& weight) {
  Pack<T, WIDTH> out;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&out)[i] = static_cast<T>(nth<T>(s, i) * scale * nth<T>(weight, i));
  return out;
}

__device__ float over_warp(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

// Add one value of every thread: in each warp by shuffles, and then one of every warp.
__device__ float over_block(float value) {
  __shared__ float of_warps[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  value = over_warp(value);
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  return over_warp(lane < blockDim.x / 32 ? of_warps[lane] : 0.0f);
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(SHORT_THREADS)
    norm_short(const T* x, const T* r, const T* weight, T* s, T* out, int cols, int64_t x_row_stride,
               int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps) {
  x += blockIdx.x * x_row_stride;
  r += blockIdx.x * r_row_stride;
  s += blockIdx.x * s_row_stride;
  out += blockIdx.x * out_row_stride;
  Pack<T, WIDTH> row[PACKS], of_r[PACKS];
  // All loads first: none of them has to wait for another one.
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
    if (column < cols) {
      row[pack] = load_pack<T, WIDTH>(x + column);
      of_r[pack] = load_pack<T, WIDTH>(r + column);
    }
  }
  float squares = 0.0f;
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
    if (column < cols) {
      row[pack] = added<T, WIDTH>(row[pack], of_r[pack]);
      store_pack<T, WIDTH>(s + column, row[pack]);
      squares += sum_of_squares<T, WIDTH>(row[pack]);
    }
  }
  const float scale = rsqrtf(over_block(squares) / cols + eps);
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int column = (pack * blockDim.x + threadIdx.x) * WIDTH;
    if (column < cols) {
      store_pack<T, WIDTH>(out + column, scaled<T, WIDTH>(row[pack], scale, load_pack<T, WIDTH>(weight + column)));
    }
  }
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    norm_long(const T* x, const T* r, const T* weight, T* s, T* out, int64_t cols, int64_t x_row_stride,
              int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps) {
  constexpr int64_t STEP = static_cast<int64_t>(LONG_THREADS) * WIDTH;
  x += blockIdx.x * x_row_stride;
  r += blockIdx.x * r_row_stride;
  s += blockIdx.x * s_row_stride;
  out += blockIdx.x * out_row_stride;
  float squares = 0.0f;
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    const auto sum = added<T, WIDTH>(load_pack<T, WIDTH>(x + column), load_pack<T, WIDTH>(r + column));
    store_pack<T, WIDTH>(s + column, sum);
    squares += sum_of_squares<T, WIDTH>(sum);
  }
  const float scale = rsqrtf(over_block(squares) / cols + eps);
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    const auto sum = load_pack<T, WIDTH>(s + column);
    store_pack<T, WIDTH>(out + column, scaled<T, WIDTH>(sum, scale, load_pack<T, WIDTH>(weight + column)));
  }
}

template <typename T, int WIDTH>
void launch(const T* x, const T* r, const T* weight, T* s, T* out, int64_t rows, int64_t cols, int64_t x_row_stride,
            int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  const int64_t threads = (cols + PACKS * WIDTH - 1) / (PACKS * WIDTH);
  if (threads <= SHORT_THREADS) {
    const unsigned whole_warps = static_cast<unsigned>(threads + 31) / 32 * 32;
    norm_short<T, WIDTH><<<blocks, whole_warps, 0, stream>>>(x, r, weight, s, out, static_cast<int>(cols), x_row_stride,
                                                             r_row_stride, s_row_stride, out_row_stride, eps);
  } else {
    norm_long<T, WIDTH><<<blocks, LONG_THREADS, 0, stream>>>(x, r, weight, s, out, cols, x_row_stride, r_row_stride,
                                                             s_row_stride, out_row_stride, eps);
  }
}

template <typename T>
void residual_norm(const T* x, const T* r, const T* weight, T* s, T* out, int64_t rows, int64_t cols,
                   int64_t x_row_stride, int64_t r_row_stride, int64_t s_row_stride, int64_t out_row_stride, float eps,
                   cudaStream_t stream) {
  constexpr int WIDTH = PACK_BYTES / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(r) |
                      reinterpret_cast<uintptr_t>(weight) | reinterpret_cast<uintptr_t>(s) |
                      reinterpret_cast<uintptr_t>(out);
  const bool whole_packs = (cols | x_row_stride | r_row_stride | s_row_stride | out_row_stride) % WIDTH == 0;
  if (begins % PACK_BYTES == 0 && whole_packs) {
    launch<T, WIDTH>(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride, s_row_stride, out_row_stride, eps,
                     stream);
  } else {
    launch<T, 1>(x, r, weight, s, out, rows, cols, x_row_stride, r_row_stride, s_row_stride, out_row_stride, eps, stream);
  }
}
