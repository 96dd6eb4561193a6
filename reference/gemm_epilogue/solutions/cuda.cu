// GEMM with an epilogue, the staff kernel in CUDA C++: out = act(a * b^T + bias) + residual, in one launch.
//
// Two kernels, as in rung 14. The first, by nvcuda::wmma, takes any matrices and runs on the CPU lane: a block computes 128 x 256 sums,
// a warp 64 x 64 of them, two buffers of slices of 32 of K. With a gate these are the sums of 128 columns of both parts, and a warp
// holds 64 x 32 of each, for the same elements of out, so that nobody has to ask another warp. The sums go out sixteen rows at a time
// through the warp's own floats, where eight neighbours get their bias, activation and residual, are rounded, and are stored at once.
// Two blocks do not fit a multiprocessor: while a block finishes its tile, tensor cores stand still.
//
// The second, in `hopper`, is rung 14's for Hopper with another end: slices by TMA into a ring of four stages, two warp groups that
// multiply by wgmma and need not keep step, two blocks that share what they fetch of b. With a gate one of them fetches part 0's rows for
// both, the other part 1's, and a thread has gate and value of the same elements. A tile's biases and residual are
// fetched while its product goes on, so that nobody waits for them at its end: the residual in chunks of 64 columns, at places
// spread over the product. Else every multiprocessor would ask for 64 KiB of it at the same time, in front of the slices.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

#ifndef CUDA_EMULATOR
#include <cuda.h>

#include <algorithm>
#include <type_traits>
#endif

using namespace nvcuda;

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 32;
constexpr int THREADS = 256;
constexpr int GROUP = 16;                   // Rows of tiles that are walked through together.
constexpr int FRAGMENTS = 4;                // Of a warp, in both directions.
constexpr int WARP_TILE = 16 * FRAGMENTS;   // 64 rows and 64 columns; two warps share the columns, four the rows.
constexpr int WARPS_ACROSS = TILE_N / WARP_TILE;
constexpr int PACK = 8;                     // 16-bit numbers in 16 bytes.
constexpr int STEP = SLICE + PACK;          // Padded, so that the rows of a fragment lie in different banks.
constexpr int OUT_STEP = WARP_TILE + 4;     // The same for floats on their way out.
constexpr int PACKS_A = TILE_M * SLICE / PACK / THREADS, PACKS_B = TILE_N * SLICE / PACK / THREADS;
constexpr int BUFFER = (TILE_M + TILE_N) * STEP;  // Numbers of one slice of both factors.
constexpr int SHARED_BYTES = 2 * BUFFER * 2;

__host__ __device__ int tiles(int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); }

template <typename T>
struct Matrix {
  T* start;
  int64_t rows, columns, stride;
  bool aligned;  // Whether every row begins at a multiple of 16 bytes.

  __device__ bool has(int64_t row, int64_t column) const { return row < rows && column < columns; }
  __device__ bool has_pack(int64_t row, int64_t column) const { return aligned && has(row, column + PACK - 1); }
  __device__ T* at(int64_t row, int64_t column) const { return start + row * stride + column; }
};

// Eight neighbours of a row: in one load where they may be, and zeros for what is outside of the matrix.
template <typename T>
__device__ uint4 load_pack(const Matrix<const T>& from, int64_t row, int64_t column) {
  if (from.has_pack(row, column)) return *reinterpret_cast<const uint4*>(from.at(row, column));
  uint4 pack = {0, 0, 0, 0};
  for (int i = 0; i < PACK; ++i) {
    if (from.has(row, column + i)) reinterpret_cast<T*>(&pack)[i] = *from.at(row, column + i);
  }
  return pack;
}

// Eight neighbours of a row in one store where they may be.
template <typename T>
__device__ void store_pack(const Matrix<T>& to, int64_t row, int64_t column, uint4 pack) {
  if (to.has_pack(row, column)) {
    *reinterpret_cast<uint4*>(to.at(row, column)) = pack;
    return;
  }
  for (int i = 0; i < PACK; ++i) {
    if (to.has(row, column + i)) *to.at(row, column + i) = reinterpret_cast<T*>(&pack)[i];
  }
}

__device__ float gelu(float x) { return x / (1.0f + __expf(-1.5957691216057308f * (x + 0.044715f * x * x * x))); }
__device__ float silu(float x) { return x / (1.0f + __expf(-x)); }

// What there is besides the factors.
template <typename T>
struct Epilogue {
  const T* bias;
  Matrix<const T> residual;
  Matrix<T> out;

  // `sums` has the gate's or the only sums, and a gate's values lie half a warp's tile behind them.
  template <bool GATED>
  __device__ void finish(int64_t row, int64_t column, const float* sums) const {
    const uint4 added = load_pack(residual, row, column);
    uint4 pack;
    for (int i = 0; i < PACK; ++i) {
      const int64_t j = column + i < out.columns ? column + i : out.columns - 1;
      const float h = sums[i] + static_cast<float>(bias[j]);
      const float active = GATED ? silu(h) * (sums[WARP_TILE / 2 + i] + static_cast<float>(bias[out.columns + j])) : gelu(h);
      reinterpret_cast<T*>(&pack)[i] = static_cast<T>(active + static_cast<float>(reinterpret_cast<const T*>(&added)[i]));
    }
    store_pack(out, row, column, pack);
  }
};

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// A warp's share of one slice: both factors out of shared memory, 16 of K at a time. With a gate the second half of its fragments
// is of the other part, for the same columns.
template <bool GATED, typename T>
__device__ void multiply(Sums (&sums)[FRAGMENTS][FRAGMENTS], const T* a_rows, const T* b_rows) {
#pragma unroll
  for (int l = 0; l < SLICE; l += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[FRAGMENTS];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right[FRAGMENTS];
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) wmma::load_matrix_sync(left[i], a_rows + 16 * i * STEP + l, STEP);
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) {
      const int row = GATED ? j / 2 * (TILE_N / 2) + j % 2 * 16 : 16 * j;
      wmma::load_matrix_sync(right[j], b_rows + row * STEP + l, STEP);
    }
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
      for (int j = 0; j < FRAGMENTS; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
  }
}

// Which lane holds which sum of a fragment is not said anywhere: sixteen rows at a time go out through the warp's own floats.
template <bool GATED, typename T>
__device__ void finish(const Epilogue<T>& epilogue, const Sums (&sums)[FRAGMENTS][FRAGMENTS], int64_t row, int64_t column,
                       float* floats) {
  constexpr int PACKS = WARP_TILE / PACK / (GATED ? 2 : 1);  // Of a row.
#pragma unroll
  for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) {
      wmma::store_matrix_sync(floats + 16 * j, sums[i][j], OUT_STEP, wmma::mem_row_major);
    }
    __syncwarp();
    for (int pack = threadIdx.x % 32; pack < 16 * PACKS; pack += 32) {
      const int r = pack / PACKS, s = pack % PACKS * PACK;
      const int64_t own_row = row + 16 * i + r;
      if (epilogue.out.has(own_row, column + s)) epilogue.template finish<GATED>(own_row, column + s, floats + r * OUT_STEP + s);
    }
    __syncwarp();
  }
}

// The tile of a block: column by column inside a group of GROUP rows of tiles, so that blocks which run together share both factors.
__device__ int2 tile_of(int block, int tiles_m, int tiles_n) {
  const int first = block / (GROUP * tiles_n) * GROUP;
  const int height = min(tiles_m - first, GROUP);
  const int within = block % (GROUP * tiles_n);
  return {first + within % height, within / height};
}

template <bool GATED, typename T>
__global__ void __launch_bounds__(THREADS) gemm_kernel(Matrix<const T> a, Matrix<const T> b, Epilogue<T> epilogue) {
  constexpr int COLUMNS = GATED ? TILE_N / 2 : TILE_N;  // Of out.
  extern __shared__ uint4 shared[];
  T* const slices = reinterpret_cast<T*>(shared);
  const int64_t n = epilogue.out.columns;
  const int2 tile = tile_of(blockIdx.x, tiles(a.rows, TILE_M), tiles(n, COLUMNS));
  const int64_t first_row = static_cast<int64_t>(tile.x) * TILE_M, first_column = static_cast<int64_t>(tile.y) * COLUMNS;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARPS_ACROSS * WARP_TILE, warp_column = warp % WARPS_ACROSS * (COLUMNS / WARPS_ACROSS);
  const bool works = epilogue.out.has(first_row + warp_row, first_column + warp_column);
  uint4 a_packs[PACKS_A], b_packs[PACKS_B];
  Sums sums[FRAGMENTS][FRAGMENTS];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }

  const int r = threadIdx.x / (SLICE / PACK), l = threadIdx.x % (SLICE / PACK) * PACK;
  constexpr int ROWS = THREADS / (SLICE / PACK);  // That all threads together load at once.
  const auto fetch = [&](int64_t start) {
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) a_packs[i] = load_pack(a, first_row + r + i * ROWS, start + l);
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) {
      const int64_t part = (r + i * ROWS) / COLUMNS, column = first_column + (r + i * ROWS) % COLUMNS;
      b_packs[i] = load_pack(b, column < n ? part * n + column : b.rows, start + l);
    }
  };
  const auto put = [&](T* slice) {
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) *reinterpret_cast<uint4*>(slice + (r + i * ROWS) * STEP + l) = a_packs[i];
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) *reinterpret_cast<uint4*>(slice + (TILE_M + r + i * ROWS) * STEP + l) = b_packs[i];
  };

  fetch(0);
  put(slices);
  __syncthreads();
  int buffer = 0;
  for (int64_t start = 0; start < a.columns; start += SLICE, buffer ^= 1) {
    const bool more = start + SLICE < a.columns;
    if (more) fetch(start + SLICE);
    const T* const slice = slices + buffer * BUFFER;
    if (works) multiply<GATED>(sums, slice + warp_row * STEP, slice + (TILE_M + warp_column) * STEP);
    if (more) put(slices + (buffer ^ 1) * BUFFER);
    __syncthreads();
  }
  float* const floats = reinterpret_cast<float*>(shared) + warp * 16 * OUT_STEP;
  if (works) finish<GATED>(epilogue, sums, first_row + warp_row, first_column + warp_column, floats);
}

template <typename T>
Matrix<T> matrix(T* start, int64_t rows, int64_t columns, int64_t stride) {
  return {start, rows, columns, stride, reinterpret_cast<uintptr_t>(start) % 16 == 0 && stride % PACK == 0};
}

#ifndef CUDA_EMULATOR
namespace hopper {

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 64;
constexpr int CLUSTER = 2;                  // Blocks that share their slices of b.
constexpr int GROUP = 16;                   // Rows of tiles that are walked through together.
constexpr int SHARE = TILE_N / CLUSTER;     // Rows of b that one block fetches for all.
constexpr int STAGES = 4;
constexpr int A_BYTES = TILE_M * SLICE * 2, SHARE_BYTES = SHARE * SLICE * 2, STAGE_BYTES = A_BYTES + CLUSTER * SHARE_BYTES;
constexpr int WARP_GROUP = 128, GROUP_ROWS = 64;  // Threads of a warp group, and rows that it multiplies.
constexpr int THREADS = 3 * WARP_GROUP;           // One group fetches, two multiply.
constexpr int SUMS = GROUP_ROWS * TILE_N / WARP_GROUP;
constexpr int ALIGNMENT = 1024;             // Of what the hardware swizzles.
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + ALIGNMENT;
constexpr int CHUNK = 64;                   // Columns that go through a warp's staging memory at a time.

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// Barriers in shared memory: of a stage that is full when all its bytes are there, or empty when all warps have arrived.

__device__ void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ bool has_passed(uint32_t barrier, uint32_t parity) {
  uint32_t passed;
  asm volatile(
      "{\n.reg .pred passed;\nmbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2;\nselp.u32 %0, 1, 0, passed;\n}"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
  while (!has_passed(barrier, parity)) {
  }
}

__device__ void expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// At another block's barrier. Nothing that this thread wrote has to be seen there, and so it does not say `.release.cluster`: that
// would wait until all of its memory accesses have been performed, once for every slice.
__device__ void arrive_at(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
          barrier),
      "r"(block)
      : "memory");
}

__device__ uint32_t block_in_cluster() {
  uint32_t block;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}

__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// A box of a matrix, SLICE numbers wide, into this block's shared memory.
__device__ void fetch_own(uint32_t to, const CUtensorMap* matrix, uint32_t barrier, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(matrix), "r"(barrier), "r"(column), "r"(row)
      : "memory");
}

// The same into that of all blocks of the cluster, at the same place, where it counts for their own barriers.
__device__ void fetch_for_all(uint32_t to, const CUtensorMap* matrix, uint32_t barrier, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
      "l"(matrix), "r"(barrier), "r"(column), "r"(row), "h"(static_cast<uint16_t>((1 << CLUSTER) - 1))
      : "memory");
}

// What wgmma has to know of a factor: where it is, that its rows of 128 bytes are swizzled, and that eight rows fill 1024 bytes.
__device__ uint64_t factor(uint32_t address) {
  return (address & 0x3FFFF) >> 4 | uint64_t{1} << 16 | uint64_t{ALIGNMENT >> 4} << 32 | uint64_t{1} << 62;
}

#define EIGHT(sums, i) \
  "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]), "+f"(sums[i + 6]), \
      "+f"(sums[i + 7])
#define THIRTY_TWO(sums, i) EIGHT(sums, i), EIGHT(sums, i + 8), EIGHT(sums, i + 16), EIGHT(sums, i + 24)
#define WGMMA(TYPE)                                                                                                           \
  asm volatile(                                                                                                               \
      "{\n.reg .pred more;\nsetp.ne.b32 more, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE " {"          \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "  \
      "%26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "  \
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, "  \
      "%74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "  \
      "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, "    \
      "%118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, %128, %129, more, 1, 1, 0, 0;\n}"                            \
      : THIRTY_TWO(sums, 0), THIRTY_TWO(sums, 32), THIRTY_TWO(sums, 64), THIRTY_TWO(sums, 96)                                  \
      : "l"(a), "l"(b), "r"(static_cast<int>(more)))

// 64 rows of a times 256 of b, 16 of K: begun here, done when `multiply_wait` says so. Without `more` the sums begin anew.
template <typename T>
__device__ void multiply(float (&sums)[SUMS], uint64_t a, uint64_t b, bool more) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if constexpr (std::is_same_v<T, __half>) {
    WGMMA("f16");
  } else {
    WGMMA("bf16");
  }
#endif
}

#undef WGMMA
#undef THIRTY_TWO
#undef EIGHT

__device__ void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Behind this the compiler may read the sums.
__device__ void pin(float (&sums)[SUMS]) {
#pragma unroll
  for (int i = 0; i < SUMS; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Until no more than LEFT slices are being multiplied.
template <int LEFT>
__device__ void multiply_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// A stage and the parity of its barriers, in the order in which stages are filled.
struct Ring {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void next() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// A warp's 16 rows of CHUNK columns, 128 bytes each. Packs of 16 bytes are exchanged within a row, so that eight rows of one column
// lie in different banks: sums come as wgmma leaves them, 2 neighbours of 8 rows, and go as memory wants them, whole rows.
struct Staging {
  uint32_t start;
  int lane;

  __device__ uint32_t at(int row, int pack) const { return start + row * CHUNK * 2 + (pack ^ row % 8) * 16; }
  __device__ uint32_t squares(int pair) const { return at(lane % 16, 2 * pair + lane / 16); }
  __device__ uint32_t pack(int quarter) const { return at(4 * quarter + lane / 8, lane % 8); }
};

// Four squares of 8 x 8: sixteen columns.
__device__ void put_squares(uint32_t at, const uint32_t (&words)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(words[0]), "r"(words[1]),
               "r"(words[2]), "r"(words[3])
               : "memory");
}

__device__ void get_squares(uint32_t at, uint32_t (&words)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at)
               : "memory");
}

__device__ void put_pack(uint32_t at, const uint4& pack) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(pack.x), "r"(pack.y), "r"(pack.z), "r"(pack.w) : "memory");
}

__device__ uint4 get_pack(uint32_t at) {
  uint4 pack;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "r"(at)
               : "memory");
  return pack;
}

// A warp's own copy of its tile's biases, in words of two, so that it need not wait for the other warps. As sums lie, a lane wants
// every fourth word: these lie side by side, to be read four at a time, and padded, so that four lanes' lie in different banks.
struct Biases {
  static constexpr int STEP = TILE_N / 8 + 4, WORDS = 4 * STEP;
  uint32_t start;
  int lane;

  // Of the tile's words this lane has those at lane, lane + 32 and so on.
  __device__ void put(const uint32_t (&words)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t at = start + 4 * (lane % 4 * STEP + lane / 4 + 8 * i);
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(words[i]) : "memory");
    }
  }

  // Four of those that this lane wants.
  __device__ uint4 four(int first) const { return get_pack(start + 4 * (lane % 4 * STEP + first)); }
};

// Both without a branch, behind which the compiler would round the sums while wgmma may still add to them.

__device__ uint4 load_where(bool has, const void* from) {
  uint4 pack;
  asm volatile(
      "{\n.reg .pred has;\nsetp.ne.b32 has, %4, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
      "@has ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%5];\n}"
      : "=&r"(pack.x), "=&r"(pack.y), "=&r"(pack.z), "=&r"(pack.w)
      : "r"(static_cast<int>(has)), "l"(from));
  return pack;
}

__device__ void store_where(bool has, void* to, const uint4& pack) {
  asm volatile(
      "{\n.reg .pred has;\nsetp.ne.b32 has, %0, 0;\n@has st.global.v4.b32 [%1], {%2, %3, %4, %5};\n}" ::"r"(static_cast<int>(has)),
      "l"(to), "r"(pack.x), "r"(pack.y), "r"(pack.z), "r"(pack.w)
      : "memory");
}

template <typename T>
__device__ uint32_t rounded(float x, float y) {
  uint32_t word;
  reinterpret_cast<T*>(&word)[0] = static_cast<T>(x);
  reinterpret_cast<T*>(&word)[1] = static_cast<T>(y);
  return word;
}

template <typename T, typename Words>
__device__ float number(const Words& words, int i) {
  return static_cast<float>(reinterpret_cast<const T*>(&words)[i]);
}

template <typename T>
__device__ void store_chunk(const Matrix<T>& to, int64_t row, int64_t column, const Staging& staging) {
#pragma unroll
  for (int i = 0; i < 4; ++i) store_where(to.has(row + 4 * i, column), to.at(row + 4 * i, column), get_pack(staging.pack(i)));
}

// 1 / (1 + 2^power).
__device__ float sigmoid_of(float power) {
  float raised, sigmoid;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(raised) : "f"(power));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(sigmoid) : "f"(1.0f + raised));
  return sigmoid;
}

constexpr float LOG2_E = 1.4426950408889634f, GELU_1 = -1.5957691216057308f * LOG2_E, GELU_3 = GELU_1 * 0.044715f;

__device__ float gelu(float h) { return h * sigmoid_of(h * (GELU_1 + GELU_3 * (h * h))); }
__device__ float silu(float h) { return h * sigmoid_of(-LOG2_E * h); }

// What a thread has fetched for its tile before the product ends, so that nobody waits for it then.
template <bool GATED>
struct Kept {
  static constexpr int CHUNKS = (GATED ? SHARE : TILE_N) / CHUNK;
  uint4 residual[4 * CHUNKS];
  uint32_t biases[4];  // Words of two neighbours; a warp's lanes have those of the whole tile.
};

template <bool GATED, typename T>
__device__ void fetch_biases(Kept<GATED>& kept, const Epilogue<T>& epilogue, int64_t column) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int own = 2 * (threadIdx.x % 32 + 32 * i), part = GATED ? own / SHARE : 0;
    const int64_t j = column - column % CHUNK + own - part * SHARE, n = epilogue.out.columns;
    kept.biases[i] = 0;
    if (j < n) asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(kept.biases[i]) : "l"(epilogue.bias + part * n + j));
  }
}

template <bool GATED, typename T>
__device__ void fetch_residual(Kept<GATED>& kept, int chunk, const Epilogue<T>& epilogue, int64_t row, int64_t column) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t r = row + 4 * i, s = column + CHUNK * chunk;
    kept.residual[4 * chunk + i] = load_where(epilogue.out.has(r, s), epilogue.residual.at(r, s));
  }
}

// A chunk's residual goes into staging memory as it came and is taken out as the sums lie; the answer goes back in its place.
template <bool GATED, typename T>
__device__ void finish(const float (&sums)[SUMS], const Kept<GATED>& kept, const Epilogue<T>& epilogue, int64_t row, int64_t column,
                       const Biases& biases, const Staging& staging) {
#pragma unroll
  for (int chunk = 0; chunk < Kept<GATED>::CHUNKS; ++chunk) {
#pragma unroll
    for (int i = 0; i < 4; ++i) put_pack(staging.pack(i), kept.residual[4 * chunk + i]);
    __syncwarp();
    uint4 bias, value_bias;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      if (pair % 2 == 0) {  // Four words are enough for two pairs.
        bias = biases.four(8 * chunk + 2 * pair);
        value_bias = GATED ? biases.four(SHARE / 8 + 8 * chunk + 2 * pair) : bias;
      }
      uint32_t added[4], words[4];
      get_squares(staging.squares(pair), added);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto element = [&](int neighbour) {
          const int at = 32 * chunk + 8 * pair + 2 * i + neighbour, of = pair % 2 * 4 + i / 2 * 2 + neighbour;
          const float h = sums[at] + number<T>(bias, of);
          const float active = GATED ? silu(h) * (sums[SUMS / 2 + at] + number<T>(value_bias, of)) : gelu(h);
          return active + number<T>(added[i], neighbour);
        };
        words[i] = rounded<T>(element(0), element(1));
      }
      put_squares(staging.squares(pair), words);
    }
    __syncwarp();
    store_chunk(epilogue.out, row, column + CHUNK * chunk, staging);
    __syncwarp();
  }
}

// What the tiles are: how many of a cluster's in both directions, slices of each, and where a second part of b begins.
struct Shape {
  int tiles_m, tiles_n, slices, second;
};

__device__ int2 tile_of(int tile, const Shape& shape) {
  constexpr int HEIGHT = GROUP / CLUSTER;
  const int first = tile / (HEIGHT * shape.tiles_n) * HEIGHT;
  const int height = min(shape.tiles_m - first, HEIGHT);
  const int within = tile % (HEIGHT * shape.tiles_n);
  return {first + within % height, within / height};
}

template <bool GATED, typename T>
__global__ void __launch_bounds__(THREADS, 1)
    kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Epilogue<T> epilogue,
           const Shape shape) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int WARPS = 2 * WARP_GROUP / 32;  // That multiply.
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  __shared__ __align__(16) uint32_t bias_words[WARPS][Biases::WORDS];
  __shared__ __align__(128) uint8_t staged[WARPS][16 * CHUNK * 2];
  const uint32_t stages = (shared_address(memory) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const uint32_t first_full = shared_address(full), first_empty = shared_address(empty);
  const uint32_t block = block_in_cluster();
  const int clusters = gridDim.x / CLUSTER, first = blockIdx.x / CLUSTER, all = shape.tiles_m * shape.tiles_n;
  constexpr int COLUMNS = GATED ? SHARE : TILE_N;  // Of out.

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      barrier_init(first_full + 8 * i, 1);
      barrier_init(first_empty + 8 * i, WARPS * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();

  if (threadIdx.x < WARP_GROUP) {
    // One thread fetches, its group gives its registers away.
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) {
      Ring ring;
      for (int tile = first; tile < all; tile += clusters) {
        const int2 where = tile_of(tile, shape);
        const int row = (where.x * CLUSTER + static_cast<int>(block)) * TILE_M;
        const int b_row = where.y * COLUMNS + static_cast<int>(block) * (GATED ? shape.second : SHARE);
        for (int slice = 0; slice < shape.slices; ++slice, ring.next()) {
          const uint32_t to = stages + ring.stage * STAGE_BYTES, barrier = first_full + 8 * ring.stage;
          wait(first_empty + 8 * ring.stage, ring.parity ^ 1);
          expect(barrier, STAGE_BYTES);
          fetch_own(to, &a_map, barrier, slice * SLICE, row);
          fetch_for_all(to + A_BYTES + block * SHARE_BYTES, &b_map, barrier, slice * SLICE, b_row);
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int group = threadIdx.x / WARP_GROUP - 1, warp = (threadIdx.x - WARP_GROUP) / 32, lane = threadIdx.x % 32;
    const int own_row = group * GROUP_ROWS + threadIdx.x % WARP_GROUP / 32 * 16 + lane / 8, own_column = lane % 8 * PACK;
    const Staging staging = {shared_address(staged[warp]), lane};
    const Biases biases = {shared_address(bias_words[warp]), lane};
    const uint32_t own_a = stages + group * GROUP_ROWS * SLICE * 2;
    const auto release = [&](int stage) {
      if (lane < CLUSTER) arrive_at(first_empty + 8 * stage, lane);
    };
    Ring ring;
    for (int tile = first; tile < all; tile += clusters) {
      const int2 where = tile_of(tile, shape);
      const int64_t row = static_cast<int64_t>(where.x * CLUSTER + static_cast<int>(block)) * TILE_M + own_row;
      const int64_t column = static_cast<int64_t>(where.y) * COLUMNS + own_column;
      float sums[SUMS];
      Kept<GATED> kept;
      fetch_biases(kept, epilogue, column);
      int before = -1, slice = 0;  // The stage of the slice before.
      const auto multiply_to = [&](int end) {
        for (; slice < end; ++slice) {
          wait(first_full + 8 * ring.stage, ring.parity);
          const uint64_t a = factor(own_a + ring.stage * STAGE_BYTES), b = factor(stages + A_BYTES + ring.stage * STAGE_BYTES);
          multiply_begin();
#pragma unroll
          for (int l = 0; l < SLICE / 16; ++l) multiply<T>(sums, a + 2 * l, b + 2 * l, slice + l > 0);
          multiply_commit();
          if (before >= 0) {
            multiply_wait<1>();
            release(before);
          }
          before = ring.stage;
          ring.next();
        }
      };
      // The residual a chunk at a time: the last one, too, has still a part of the product to come in.
      constexpr int CHUNKS = Kept<GATED>::CHUNKS;
#pragma unroll
      for (int chunk = 0; chunk < CHUNKS; ++chunk) {
        multiply_to(shape.slices * (chunk + 1) / (CHUNKS + 2));
        if (chunk == 0) biases.put(kept.biases);  // By now they have come; `finish` waits for the other lanes.
        fetch_residual(kept, chunk, epilogue, row, column);
      }
      multiply_to(shape.slices);
      multiply_wait<0>();
      pin(sums);
      release(before);
      finish(sums, kept, epilogue, row, column, biases, staging);
    }
  }
  cluster_sync();  // No block's memory goes while another may still write or arrive there.
#endif
}

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function that describes a matrix to TMA. Asked for at run time, for a library of the driver's is linked to by nobody.
inline Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
  return error == cudaSuccess && status == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(found) : nullptr;
}

// A matrix in boxes of `rows` x SLICE. What a box has outside of the matrix comes as zeros.
template <typename T>
bool describe(CUtensorMap& map, Encode encode, const Matrix<const T>& matrix, uint32_t rows) {
  const auto type = std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const uint64_t sizes[] = {static_cast<uint64_t>(matrix.columns), static_cast<uint64_t>(matrix.rows)};
  const uint64_t bytes[] = {2 * static_cast<uint64_t>(matrix.stride)};
  const uint32_t box[] = {SLICE, rows}, steps[] = {1, 1};
  return encode(&map, type, 2, const_cast<T*>(matrix.start), sizes, bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Whether it was launched: on a Hopper GPU, of matrices whose rows begin at multiples of 16 bytes, and n a multiple of 32. (One of 8
// should do; it was not tried.)
template <bool GATED, typename T>
bool launch(const Matrix<const T>& a, const Matrix<const T>& b, const Epilogue<T>& epilogue, cudaStream_t stream) {
  const int64_t m = a.rows, n = epilogue.out.columns, k = a.columns;
  if (!a.aligned || !b.aligned || !epilogue.out.aligned || n % 32 != 0) return false;
  if (!epilogue.residual.aligned || reinterpret_cast<uintptr_t>(epilogue.bias) % 4 != 0) return false;
  int device = 0, major = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (major != 9) return false;
  const Encode encode = encoder();
  CUtensorMap a_map, b_map;
  if (!encode || !describe(a_map, encode, a, TILE_M) || !describe(b_map, encode, b, SHARE)) return false;
  const Shape shape = {tiles(m, TILE_M * CLUSTER), tiles(n, GATED ? SHARE : TILE_N), tiles(k, SLICE), static_cast<int>(n)};
  cudaFuncSetAttribute(kernel<GATED, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {CLUSTER, 1, 1};
  cudaLaunchConfig_t launched = {};
  launched.gridDim = dim3(std::min(shape.tiles_m * shape.tiles_n, processors / CLUSTER) * CLUSTER);
  launched.blockDim = dim3(THREADS);
  launched.dynamicSmemBytes = SHARED_BYTES;
  launched.stream = stream;
  launched.attrs = &cluster;
  launched.numAttrs = 1;
  return cudaLaunchKernelEx(&launched, kernel<GATED, T>, a_map, b_map, epilogue, shape) == cudaSuccess;
}

}  // namespace hopper
#endif

template <bool GATED, typename T>
void launch(const Matrix<const T>& a, const Matrix<const T>& b, const Epilogue<T>& epilogue, cudaStream_t stream) {
#ifndef CUDA_EMULATOR
  if (hopper::launch<GATED>(a, b, epilogue, stream)) return;
#endif
  const int blocks = tiles(a.rows, TILE_M) * tiles(epilogue.out.columns, GATED ? TILE_N / 2 : TILE_N);
  cudaFuncSetAttribute(gemm_kernel<GATED, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  gemm_kernel<GATED, T><<<blocks, THREADS, SHARED_BYTES, stream>>>(a, b, epilogue);
}

template <typename T>
void gemm_epilogue(const T* a, const T* b, const T* bias, const T* residual, T* out, int64_t m, int64_t n, int64_t k,
                   int64_t parts, int64_t a_row_stride, int64_t b_row_stride, int64_t residual_row_stride,
                   int64_t out_row_stride, cudaStream_t stream) {
  const Matrix<const T> left = matrix(a, m, k, a_row_stride), right = matrix(b, parts * n, k, b_row_stride);
  const Epilogue<T> epilogue = {bias, matrix(residual, m, n, residual_row_stride), matrix(out, m, n, out_row_stride)};
  if (parts == 2) {
    launch<true>(left, right, epilogue, stream);
  } else {
    launch<false>(left, right, epilogue, stream);
  }
}
