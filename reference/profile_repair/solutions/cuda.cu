// RMSNorm of each head and rotary embedding in one kernel, the staff kernel.
//
// A few lanes of a warp share a head: each holds packs of 16 bytes of its first half, and the packs of the second half that
// they are rotated with. All loads are issued before the first is used; a token's tables are loaded for each of its heads, and
// come from the caches but once. Where addresses are no multiples of 16 bytes, a pack is one element.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int DIM = 128, HALF = DIM / 2;
constexpr int THREADS = 128;

// How many lanes share a head.
template <int WIDTH>
__host__ __device__ constexpr int lanes() {
  return HALF / WIDTH < 32 ? HALF / WIDTH : 32;
}

template <typename T, int WIDTH>
struct alignas(WIDTH * sizeof(T)) Pack {
  T values[WIDTH];
};

template <typename T, int WIDTH>
__device__ Pack<T, WIDTH> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, WIDTH>*>(from);
}

// WIDTH floats of a table or of the weight, in the widest loads that 16 bytes allow.
template <typename T, int WIDTH>
__device__ void load_floats(const T* from, float* to) {
  constexpr int STEP = WIDTH * sizeof(T) > 16 ? 16 / sizeof(T) : WIDTH;
#pragma unroll
  for (int i = 0; i < WIDTH; i += STEP) {
    const Pack<T, STEP> pack = load_pack<T, STEP>(from + i);
#pragma unroll
    for (int j = 0; j < STEP; ++j) to[i + j] = static_cast<float>(pack.values[j]);
  }
}

template <typename T, int WIDTH>
__global__ void __launch_bounds__(THREADS)
    norm_rope_kernel(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t rows,
                     unsigned heads, int64_t q_token_stride, float eps) {
  constexpr int LANES = lanes<WIDTH>(), PACKS = HALF / (LANES * WIDTH);
  const int lane = threadIdx.x % LANES;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
  const bool inside = row < rows;  // Lanes of a warp differ in it, and all of them meet in the shuffles.
  const int64_t token = inside ? row / heads : 0;
  q += token * q_token_stride + (inside ? row % heads : 0) * DIM;

  Pack<T, WIDTH> low[PACKS], high[PACKS];
  float c[PACKS][WIDTH], s[PACKS][WIDTH];
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int place = (pack * LANES + lane) * WIDTH;
    low[pack] = load_pack<T, WIDTH>(q + place);
    high[pack] = load_pack<T, WIDTH>(q + place + HALF);
    load_floats<float, WIDTH>(cos + token * HALF + place, c[pack]);
    load_floats<float, WIDTH>(sin + token * HALF + place, s[pack]);
  }

  float squares = 0.0f;
#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      const float a = static_cast<float>(low[pack].values[i]), b = static_cast<float>(high[pack].values[i]);
      squares += a * a + b * b;
    }
  }
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, step);
  const float scale = rsqrtf(squares / DIM + eps);
  if (row >= rows) return;

#pragma unroll
  for (int pack = 0; pack < PACKS; ++pack) {
    const int place = (pack * LANES + lane) * WIDTH;
    const Pack<T, WIDTH> low_weight = load_pack<T, WIDTH>(weight + place);
    const Pack<T, WIDTH> high_weight = load_pack<T, WIDTH>(weight + place + HALF);
    Pack<T, WIDTH> turned_low, turned_high;
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      const float a = static_cast<float>(low[pack].values[i]) * scale * static_cast<float>(low_weight.values[i]);
      const float b = static_cast<float>(high[pack].values[i]) * scale * static_cast<float>(high_weight.values[i]);
      turned_low.values[i] = static_cast<T>(a * c[pack][i] - b * s[pack][i]);
      turned_high.values[i] = static_cast<T>(b * c[pack][i] + a * s[pack][i]);
    }
    T* to = out + row * DIM + place;
    *reinterpret_cast<Pack<T, WIDTH>*>(to) = turned_low;
    *reinterpret_cast<Pack<T, WIDTH>*>(to + HALF) = turned_high;
  }
}

template <typename T, int WIDTH>
void launch(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
            int64_t q_token_stride, float eps, cudaStream_t stream) {
  constexpr int64_t GROUPS = THREADS / lanes<WIDTH>();
  const int64_t rows = tokens * heads;
  norm_rope_kernel<T, WIDTH><<<static_cast<unsigned>((rows + GROUPS - 1) / GROUPS), THREADS, 0, stream>>>(
      q, weight, cos, sin, out, rows, static_cast<unsigned>(heads), q_token_stride, eps);
}

template <typename T>
void norm_rope(const T* q, const T* weight, const float* cos, const float* sin, T* out, int64_t tokens, int64_t heads,
               int64_t q_token_stride, float eps, cudaStream_t stream) {
  constexpr int WIDTH = 16 / sizeof(T);
  const auto begins = reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(weight) |
                      reinterpret_cast<uintptr_t>(cos) | reinterpret_cast<uintptr_t>(sin) |
                      reinterpret_cast<uintptr_t>(out);
  if (begins % 16 != 0 || q_token_stride % WIDTH != 0) {
    launch<T, 1>(q, weight, cos, sin, out, tokens, heads, q_token_stride, eps, stream);
  } else {
    launch<T, WIDTH>(q, weight, cos, sin, out, tokens, heads, q_token_stride, eps, stream);
  }
}
