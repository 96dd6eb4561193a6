// Softmax over rows, the staff kernel: out[i, j] = exp(x[i, j] - m[i]) / sum_k exp(x[i, k] - m[i]), m[i] = max_k x[i, k].
//
// A row that fits the registers of one block is read once and written once, which is the least there is. A longer one, up to
// 256 KiB, is held by one block that has a multiprocessor for itself, most of it in shared memory: read once and written once
// too. Such a block takes a row after the other, and loads the next one into the places that the last one leaves, so that
// memory has to do at any time. What is longer still, or has no whole packs of 16 bytes, is read twice. Long rows go through
// the online form: every thread carries a maximum m and a sum s over what it has seen,
//
//     m' = max(m, max of the pack),    s' = s * exp(m - m') + sum of exp(pack - m'),
//
// and the parts of a warp and of a block are brought together by the same rule. Loads and stores are of 16 bytes wherever rows
// begin at multiples of 16 bytes and have whole packs; otherwise of one element.
//
// Source of the online form: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int PACK_BYTES = 16;
constexpr int SHORT_THREADS = 512;
constexpr int SHORT_BLOCKS = 4;  // Of one multiprocessor, at once.
constexpr int SHORT_PACKS = 2;  // Packs of a row that a thread holds in registers.
constexpr int LONG_THREADS = 1024;
constexpr int SHARED_PACKS = 14;  // Of a thread's packs of a long row; the others are in registers.
constexpr int KEPT_PACKS = 2;
constexpr int LONG_PACKS = SHARED_PACKS + KEPT_PACKS;
constexpr int GROUP = 2;  // Packs whose loads are on the way while as many are worked on.

// What a thread loads and stores at once.
template <typename T, int WIDTH>
struct Pack {
  uint4 raw;
};
template <typename T>
struct Pack<T, 1> {
  T raw;
};

// Columns at or beyond the row's end count as -inf.
template <typename T, int WIDTH>
__device__ Pack<T, WIDTH> load_pack(const T* from, bool inside) {
  Pack<T, WIDTH> pack;
  if (inside) {
    pack.raw = *reinterpret_cast<const decltype(pack.raw)*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&pack)[i] = static_cast<T>(-INFINITY);
  }
  return pack;
}

template <typename T, int WIDTH>
__device__ void widen(const Pack<T, WIDTH>& pack, float (&into)[WIDTH]) {
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) into[i] = static_cast<float>(reinterpret_cast<const T*>(&pack)[i]);
}

template <typename T, int WIDTH>
__device__ void store_pack(T* to, const float (&from)[WIDTH]) {
  Pack<T, WIDTH> pack;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) reinterpret_cast<T*>(&pack)[i] = static_cast<T>(from[i]);
  *reinterpret_cast<decltype(pack.raw)*>(to) = pack.raw;
}

// --- short rows ---------------------------------------------------------------------------------------------------------

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

// Bring one value of every thread together by shuffles, and one of every warp by shared memory, which nobody else may use;
// all threads get the result.
template <int THREADS, typename Combine>
__device__ float over_block(float value, Combine combine, float* of_warps) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value = combine(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = of_warps[0];
#pragma unroll
  for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, of_warps[warp]);
  return value;
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(SHORT_THREADS, SHORT_BLOCKS)
    softmax_short(const T* x, T* out, int cols, int64_t x_row_stride, int64_t out_row_stride) {
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  // Each reduction has its own: a warp that is ahead must not write what one that is behind still reads.
  __shared__ float maxima[SHORT_THREADS / 32], sums[SHORT_THREADS / 32];
  Pack<T, WIDTH> packs[SHORT_PACKS];
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    const int column = (pack * SHORT_THREADS + threadIdx.x) * WIDTH;
    packs[pack] = load_pack<T, WIDTH>(x + column, column < cols);
  }
  float values[SHORT_PACKS][WIDTH];
  float largest = -INFINITY, total = 0.0f;
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    widen(packs[pack], values[pack]);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) largest = fmaxf(largest, values[pack][i]);
  }
  largest = over_block<SHORT_THREADS>(largest, Larger(), maxima);
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      values[pack][i] = __expf(values[pack][i] - largest);
      total += values[pack][i];
    }
  }
  const float scale = 1.0f / over_block<SHORT_THREADS>(total, Plus(), sums);
#pragma unroll
  for (int pack = 0; pack < SHORT_PACKS; ++pack) {
    const int column = (pack * SHORT_THREADS + threadIdx.x) * WIDTH;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) values[pack][i] *= scale;
    if (column < cols) store_pack<T, WIDTH>(out + column, values[pack]);
  }
}

// --- long rows ----------------------------------------------------------------------------------------------------------

// A maximum, and the sum of exponentials against it.
struct Part {
  float largest, total;
};

// While only -inf was seen, -inf - -inf must not become NaN.
__device__ float pivot_of(float largest) { return largest == -INFINITY ? 0.0f : largest; }

template <int WIDTH>
__device__ void take(Part& part, const float (&values)[WIDTH]) {
  float raised = part.largest;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) raised = fmaxf(raised, values[i]);
  const float pivot = pivot_of(raised);
  part.total *= __expf(part.largest - pivot);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) part.total += __expf(values[i] - pivot);
  part.largest = raised;
}

__device__ Part over_warp(Part part) {
  float largest = part.largest;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
  float total = part.total * __expf(part.largest - pivot_of(largest));
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
  return {largest, total};
}

// The part of all threads, for all of them.
template <int THREADS>
__device__ Part over_block(Part part, Part* of_warps) {
  part = over_warp(part);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = part;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  return over_warp(lane < THREADS / 32 ? of_warps[lane] : Part{-INFINITY, 0.0f});
}

// A pack of the row's quotients.
template <typename T, int WIDTH>
__device__ void write_pack(T* to, const Pack<T, WIDTH>& pack, float largest, float scale) {
  float values[WIDTH];
  widen(pack, values);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) values[i] = __expf(values[i] - largest) * scale;
  store_pack<T, WIDTH>(to, values);
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    softmax_twice(const T* x, T* out, int64_t cols, int64_t x_row_stride, int64_t out_row_stride) {
  constexpr int64_t STEP = static_cast<int64_t>(LONG_THREADS) * WIDTH;
  x += blockIdx.x * x_row_stride;
  out += blockIdx.x * out_row_stride;
  __shared__ Part of_warps[LONG_THREADS / 32];
  float values[WIDTH];
  Part part = {-INFINITY, 0.0f};
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    widen(load_pack<T, WIDTH>(x + column, true), values);
    take(part, values);
  }
  const Part row = over_block<LONG_THREADS>(part, of_warps);
  const float scale = 1.0f / row.total;
  for (int64_t column = threadIdx.x * WIDTH; column < cols; column += STEP) {
    write_pack<T, WIDTH>(out + column, load_pack<T, WIDTH>(x + column, true), row.largest, scale);
  }
}

// One block to a multiprocessor, a row after the other.
template <typename T, int WIDTH>
__global__ void __launch_bounds__(LONG_THREADS)
    softmax_on_chip(const T* x, T* out, int rows, int cols, int64_t x_row_stride, int64_t out_row_stride) {
  constexpr int STEP = LONG_THREADS * WIDTH;
  extern __shared__ uint4 room[];
  auto* held = reinterpret_cast<Pack<T, WIDTH>*>(room) + threadIdx.x;
  // Rows take turns: the next one's parts must not be written where some threads still read this one's.
  __shared__ Part of_warps[2][LONG_THREADS / 32];
  const int first = threadIdx.x * WIDTH;
  Pack<T, WIDTH> kept[KEPT_PACKS], next[GROUP];
  float values[WIDTH];
  Part part = {-INFINITY, 0.0f};
  const auto place_of = [&](int pack) -> Pack<T, WIDTH>& {
    return pack < SHARED_PACKS ? held[pack * LONG_THREADS] : kept[pack < SHARED_PACKS ? 0 : pack - SHARED_PACKS];
  };
  // `from` is the row that comes, `to` the row that goes; the first time none goes, the last time none comes.
  const auto pass = [&](const T* from, T* to, float largest, float scale) {
#pragma unroll
    for (int start = 0; start < LONG_PACKS; start += GROUP) {
      if (start * STEP >= cols) break;
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        const int column = first + (start + i) * STEP;
        next[i] = load_pack<T, WIDTH>(from + column, from && column < cols);
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        const int column = first + (start + i) * STEP;
        if (to && column < cols) write_pack<T, WIDTH>(to + column, place_of(start + i), largest, scale);
      }
#pragma unroll
      for (int i = 0; i < GROUP; ++i) {
        place_of(start + i) = next[i];
        widen(next[i], values);
        take(part, values);
      }
    }
  };
  pass(x + blockIdx.x * x_row_stride, nullptr, 0.0f, 0.0f);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x, turn ^= 1) {
    const Part whole = over_block<LONG_THREADS>(part, of_warps[turn]);
    const int64_t after = row + gridDim.x;
    part = {-INFINITY, 0.0f};
    pass(after < rows ? x + after * x_row_stride : nullptr, out + row * out_row_stride, whole.largest, 1.0f / whole.total);
  }
}

// --- launcher -----------------------------------------------------------------------------------------------------------

template <typename T, int WIDTH>
void launch(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
            cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows);
  if (cols <= SHORT_THREADS * SHORT_PACKS * WIDTH) {
    softmax_short<T, WIDTH><<<blocks, SHORT_THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
    return;
  }
  if constexpr (WIDTH > 1) {
    if (cols <= LONG_PACKS * LONG_THREADS * WIDTH) {
      constexpr int BYTES = SHARED_PACKS * LONG_THREADS * PACK_BYTES;
      int device = 0, multiprocessors = 1;
      cudaGetDevice(&device);
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
      cudaFuncSetAttribute(softmax_on_chip<T, WIDTH>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
      const unsigned grid = rows < multiprocessors ? blocks : static_cast<unsigned>(multiprocessors);
      softmax_on_chip<T, WIDTH>
          <<<grid, LONG_THREADS, BYTES, stream>>>(x, out, rows, cols, x_row_stride, out_row_stride);
      return;
    }
  }
  softmax_twice<T, WIDTH><<<blocks, LONG_THREADS, 0, stream>>>(x, out, cols, x_row_stride, out_row_stride);
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
