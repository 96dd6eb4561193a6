// Wrong: counters in shared memory are counted in before all threads have cleared theirs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr int TILE = 1024;  // keys of a warp

template <typename T>
__device__ int digit_of(T key, int shift) {
  const float wide = static_cast<float>(key);
  if (wide != wide) return 0;
  const uint32_t bits = __float_as_uint(wide == 0.0f ? 0.0f : wide);
  return (bits >> 31 ? bits : bits ^ 0x7FFFFFFFu) >> shift & 255;
}

template <typename T>
__global__ void fill_kernel(const int32_t* lengths, T* values, int32_t* indices, int64_t k) {
  const int64_t row = blockIdx.y, place = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (place < lengths[row] || place >= k) return;
  values[row * k + place] = static_cast<T>(-INFINITY);
  indices[row * k + place] = -1;
}

template <typename T>
__global__ void count_kernel(const T* keys, const int32_t* lengths, int32_t* counts, int64_t n, int64_t tiles, int shift) {
  __shared__ int of_tile[256];
  const int64_t row = blockIdx.y, tile = blockIdx.x;
  of_tile[threadIdx.x] = 0;
  for (int64_t i = tile * TILE + threadIdx.x; i < min((tile + 1) * TILE, static_cast<int64_t>(lengths[row])); i += THREADS) {
    atomicAdd(&of_tile[digit_of(keys[row * n + i], shift)], 1);
  }
  __syncthreads();
  counts[(row * 256 + threadIdx.x) * tiles + tile] = of_tile[threadIdx.x];
}

// A row's counts, all tiles of digit 0, then all of digit 1, and so on: what comes before each of them.
__global__ void scan_kernel(int32_t* counts, int64_t tiles) {
  __shared__ int sums[THREADS];
  counts += blockIdx.x * 256 * tiles;
  int before = 0;
  for (int64_t start = 0; start < 256 * tiles; start += THREADS) {
    const int own = counts[start + threadIdx.x];
    sums[threadIdx.x] = own;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
      const int left = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
      __syncthreads();
      sums[threadIdx.x] += left;
      __syncthreads();
    }
    counts[start + threadIdx.x] = before + sums[threadIdx.x] - own;
    before += sums[THREADS - 1];
    __syncthreads();
  }
}

template <typename T>
__global__ void move_kernel(const T* keys, const int32_t* indices, const int32_t* lengths, const int32_t* counts, T* to_keys,
                            int32_t* to_indices, int64_t n, int64_t to_n, int64_t tiles, int shift) {
  __shared__ int of_warps[WARPS][256];
  const int64_t row = blockIdx.y, tile = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32, length = lengths[row];
  int* following = of_warps[threadIdx.x / 32];
  if (tile >= tiles) return;
  for (int i = lane; i < 256; i += 32) following[i] = counts[(row * 256 + i) * tiles + tile];
  __syncwarp();
  for (int64_t start = tile * TILE; start < (tile + 1) * TILE && start < length; start += 32) {
    const int64_t i = start + lane;
    const T key = i < length ? keys[row * n + i] : static_cast<T>(0.0f);
    const int digit = i < length ? digit_of(key, shift) : 256;
    const unsigned same = __match_any_sync(~0u, digit);
    const int earlier = __popc(same & ((1u << lane) - 1));
    const int64_t place = i < length ? following[digit] + earlier : to_n;
    __syncwarp();
    if (i < length && earlier == 0) following[digit] += __popc(same);
    __syncwarp();
    if (place < to_n) {
      to_keys[row * to_n + place] = key;
      to_indices[row * to_n + place] = indices == nullptr ? static_cast<int32_t>(i) : indices[row * n + i];
    }
  }
}

template <typename T>
void topk_sort(const T* keys, const int32_t* lengths, T* values, int32_t* indices, int64_t rows, int64_t n, int64_t k,
               cudaStream_t stream) {
  const unsigned many = static_cast<unsigned>(rows);
  fill_kernel<<<dim3(static_cast<unsigned>((k + THREADS - 1) / THREADS), many), THREADS, 0, stream>>>(lengths, values, indices, k);
  const int64_t tiles = (n + TILE - 1) / TILE;
  T* of_keys = nullptr;
  int32_t *of_indices = nullptr, *counts = nullptr;
  if (cudaMallocAsync(&of_keys, 2 * rows * n * sizeof(T), stream) != cudaSuccess) return;
  if (cudaMallocAsync(&of_indices, 2 * rows * n * sizeof(int32_t), stream) != cudaSuccess) return;
  if (cudaMallocAsync(&counts, rows * 256 * tiles * sizeof(int32_t), stream) != cudaSuccess) return;
  const T* from = keys;
  const int32_t* from_indices = nullptr;
  const unsigned blocks = static_cast<unsigned>((tiles + WARPS - 1) / WARPS);
  for (int pass = 0; pass < 4; ++pass) {
    T* to = pass == 3 ? values : of_keys + pass % 2 * rows * n;
    int32_t* to_indices = pass == 3 ? indices : of_indices + pass % 2 * rows * n;
    count_kernel<<<dim3(static_cast<unsigned>(tiles), many), THREADS, 0, stream>>>(from, lengths, counts, n, tiles, 8 * pass);
    scan_kernel<<<many, THREADS, 0, stream>>>(counts, tiles);
    move_kernel<<<dim3(blocks, many), THREADS, 0, stream>>>(from, from_indices, lengths, counts, to, to_indices, n,
                                                            pass == 3 ? k : n, tiles, 8 * pass);
    from = to;
    from_indices = to_indices;
  }
  cudaFreeAsync(of_keys, stream);
  cudaFreeAsync(of_indices, stream);
  cudaFreeAsync(counts, stream);
}
