// Scores, probabilities and sums never leave the registers: mma.sync by PTX, cp.async, and maxima that may lag behind
// by 8.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int WARPS = 4, THREADS = 32 * WARPS;
constexpr int ROWS = 16 * WARPS;  // of q in a block
constexpr int KEYS = 64;          // in a tile
constexpr float SLACK = 8.0f;     // in base 2

// ---- instructions ----
__device__ __forceinline__ uint32_t smem_u32(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Copies `bytes` of 16 and fills the rest with zeros.
__device__ __forceinline__ void cp_async_16(void* dst, const void* src, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(smem_u32(dst)), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_u32(p))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(smem_u32(p))
               : "memory");
}
__device__ __forceinline__ void mma_16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, __half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                                          __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
      "%2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// ---- end of instructions ----

// Two neighbours in one register, the first in the lower half.
template <typename T>
__device__ __forceinline__ uint32_t pack_two(float first, float second) {
  union {
    T item[2];
    uint32_t bits;
  } two;
  two.item[0] = static_cast<T>(first);
  two.item[1] = static_cast<T>(second);
  return two.bits;
}

// COUNT rows of DIM numbers from row `first` on; zeros for rows and columns that there are not.
template <int COUNT, int DIM, bool ALIGNED, typename T>
__device__ __forceinline__ void fetch(T* tile, const T* __restrict__ from, int64_t first, int64_t rows, int dim,
                                      int64_t ld) {
  constexpr int PER_ROW = DIM / 8, PITCH = DIM + 8;
#pragma unroll
  for (int t = 0; t < COUNT * PER_ROW / THREADS; ++t) {
    const int i = t * THREADS + threadIdx.x;
    const int r = i / PER_ROW, c = i % PER_ROW * 8;
    const int64_t row = first + r;
    const int left = dim - c;
    T* dst = tile + r * PITCH + c;
    if (ALIGNED) {
      const int bytes = row < rows && left > 0 ? (left >= 8 ? 16 : 2 * left) : 0;
      cp_async_16(dst, bytes > 0 ? from + row * ld + c : from, bytes);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e) dst[e] = row < rows && e < left ? from[row * ld + c + e] : static_cast<T>(0.0f);
    }
  }
}

template <typename T, int DIM, bool ALIGNED>
__global__ void __launch_bounds__(THREADS)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out,
           float* __restrict__ lse, float* __restrict__ row_max, int q_heads, int kv_heads, int64_t q_len,
           int64_t kv_len, int dim, bool causal, float scale_log2, int64_t ldq, int64_t ldk, int64_t ldv, int64_t ldo) {
  constexpr int PITCH = DIM + 8;
  extern __shared__ __align__(16) unsigned char raw[];
  T* const q_tile = reinterpret_cast<T*>(raw);
  T* const k_tiles = q_tile + ROWS * PITCH;       // two
  T* const v_tiles = k_tiles + 2 * KEYS * PITCH;  // two

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  // Late tiles of a causal case have the most work and come first.
  const int64_t row0 = static_cast<int64_t>(gridDim.x - 1 - blockIdx.x) * ROWS;
  const int64_t head = blockIdx.y;
  const int64_t kv_head = head / q_heads * kv_heads + head % q_heads / (q_heads / kv_heads);
  q += head * q_len * ldq;
  k += kv_head * kv_len * ldk;
  v += kv_head * kv_len * ldv;

  int64_t end = kv_len;
  if (causal) end = min(kv_len, row0 + ROWS + kv_len - q_len);
  const int tiles = end > 0 ? static_cast<int>((end + KEYS - 1) / KEYS) : 0;

  const auto fetch_tile = [&](int tile) {
    if (tile < tiles) {
      fetch<KEYS, DIM, ALIGNED>(k_tiles + tile % 2 * KEYS * PITCH, k, static_cast<int64_t>(tile) * KEYS, kv_len, dim,
                                ldk);
      fetch<KEYS, DIM, ALIGNED>(v_tiles + tile % 2 * KEYS * PITCH, v, static_cast<int64_t>(tile) * KEYS, kv_len, dim,
                                ldv);
    }
    cp_async_commit();
  };
  fetch<ROWS, DIM, ALIGNED>(q_tile, q, row0, q_len, dim, ldq);
  fetch_tile(0);
  cp_async_wait<0>();
  __syncthreads();

  uint32_t q_frag[DIM / 16][4];
#pragma unroll
  for (int d = 0; d < DIM / 16; ++d) {
    ldmatrix_x4(q_frag[d], q_tile + (16 * warp + lane % 16) * PITCH + 16 * d + lane / 16 * 8);
  }

  // A thread has two rows of its warp: lane / 4, and eight below. Four threads share a row.
  const int64_t my_row[2] = {row0 + 16 * warp + lane / 4, row0 + 16 * warp + lane / 4 + 8};
  int64_t limit[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) limit[h] = causal ? min(kv_len, my_row[h] + 1 + kv_len - q_len) : kv_len;
  float ref[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f};
  float acc[DIM / 8][4];
#pragma unroll
  for (int j = 0; j < DIM / 8; ++j)
#pragma unroll
    for (int e = 0; e < 4; ++e) acc[j][e] = 0.0f;

  for (int tile = 0; tile < tiles; ++tile) {
    fetch_tile(tile + 1);
    const T* const ks = k_tiles + tile % 2 * KEYS * PITCH;
    const T* const vs = v_tiles + tile % 2 * KEYS * PITCH;
    const int64_t key0 = static_cast<int64_t>(tile) * KEYS;

    float s[KEYS / 8][4];
#pragma unroll
    for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[j][e] = 0.0f;
#pragma unroll
    for (int d = 0; d < DIM / 16; ++d) {
#pragma unroll
      for (int j = 0; j < KEYS / 16; ++j) {
        uint32_t b[4];
        ldmatrix_x4(b, ks + (16 * j + lane / 16 * 8 + lane % 8) * PITCH + 16 * d + lane / 8 % 2 * 8);
        mma_16816(s[2 * j], q_frag[d], b[0], b[1], T());
        mma_16816(s[2 * j + 1], q_frag[d], b[2], b[3], T());
      }
    }

    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int64_t key = key0 + 8 * j + lane % 4 * 2 + e % 2;
        s[j][e] = key < limit[e / 2] ? s[j][e] * scale_log2 : -INFINITY;
        top[e / 2] = fmaxf(top[e / 2], s[j][e]);
      }
    bool moves = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 1));
      top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 2));
      moves = moves || top[h] > ref[h] + SLACK;
    }
    if (__any_sync(0xffffffffu, moves)) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float shrink = 1.0f;
        if (top[h] > ref[h] + SLACK) {
          shrink = exp2f(ref[h] - top[h]);
          ref[h] = top[h];
        }
        total[h] *= shrink;
#pragma unroll
        for (int j = 0; j < DIM / 8; ++j) {
          acc[j][2 * h] *= shrink;
          acc[j][2 * h + 1] *= shrink;
        }
      }
    }

    const float away[2] = {ref[0] == -INFINITY ? 0.0f : ref[0], ref[1] == -INFINITY ? 0.0f : ref[1]};
#pragma unroll
    for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[j][e] = exp2f(s[j][e] - away[e / 2]);
        total[e / 2] += s[j][e];
      }

    // The sums of one product lie as the left factor of the next one wants them.
#pragma unroll
    for (int kk = 0; kk < KEYS / 16; ++kk) {
      const uint32_t p[4] = {pack_two<T>(s[2 * kk][0], s[2 * kk][1]), pack_two<T>(s[2 * kk][2], s[2 * kk][3]),
                             pack_two<T>(s[2 * kk + 1][0], s[2 * kk + 1][1]),
                             pack_two<T>(s[2 * kk + 1][2], s[2 * kk + 1][3])};
#pragma unroll
      for (int d = 0; d < DIM / 16; ++d) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, vs + (16 * kk + lane % 16) * PITCH + 16 * d + lane / 16 * 8);
        mma_16816(acc[2 * d], p, b[0], b[1], T());
        mma_16816(acc[2 * d + 1], p, b[2], b[3], T());
      }
    }
    cp_async_wait<0>();
    __syncthreads();
  }

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 1);
    total[h] += __shfl_xor_sync(0xffffffffu, total[h], 2);
    const int64_t row = my_row[h];
    if (row < q_len) {
      const float norm = total[h] > 0.0f ? 1.0f / total[h] : 0.0f;
      T* const out_row = out + (head * q_len + row) * ldo;
#pragma unroll
      for (int j = 0; j < DIM / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = 8 * j + lane % 4 * 2 + e;
          if (column < dim) out_row[column] = static_cast<T>(acc[j][2 * h + e] * norm);
        }
      if (lane % 4 == 0) {
        lse[head * q_len + row] = total[h] > 0.0f ? (ref[h] + log2f(total[h])) * 0.6931471805599453f : -INFINITY;
        row_max[head * q_len + row] = ref[h];
      }
    }
  }
}

template <typename T>
void attention(const T* q, const T* k, const T* v, T* out, float* lse, float* row_max, int64_t batch, int64_t q_heads,
               int64_t kv_heads, int64_t q_len, int64_t kv_len, int64_t dim, int64_t causal, float scale,
               int64_t q_row_stride, int64_t k_row_stride, int64_t v_row_stride, int64_t out_row_stride,
               cudaStream_t stream) {
  const bool aligned =
      (reinterpret_cast<uintptr_t>(q) | reinterpret_cast<uintptr_t>(k) | reinterpret_cast<uintptr_t>(v)) % 16 == 0 &&
      (q_row_stride | k_row_stride | v_row_stride) % 8 == 0;
  const dim3 grid(static_cast<unsigned>((q_len + ROWS - 1) / ROWS), static_cast<unsigned>(batch * q_heads));
  auto kernel = dim > 64 ? (aligned ? attend<T, 128, true> : attend<T, 128, false>)
                         : (aligned ? attend<T, 64, true> : attend<T, 64, false>);
  const int pitch = (dim > 64 ? 128 : 64) + 8;
  const int bytes = (ROWS + 4 * KEYS) * pitch * static_cast<int>(sizeof(T));
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  kernel<<<grid, THREADS, bytes, stream>>>(
      q, k, v, out, lse, row_max, static_cast<int>(q_heads), static_cast<int>(kv_heads), q_len, kv_len, static_cast<int>(dim),
      causal != 0, scale * 1.4426950408889634f, q_row_stride, k_row_stride, v_row_stride, out_row_stride);
}
