// Quantised GEMM, the staff kernel in CUDA C++: out[i, j] = (sum over l of a[i, l] * b[j, l]) * a_scale[i] * b_scale[j], int8 factors.
//
// Two kernels, as in rung 14. The first, by nvcuda::wmma, takes any matrices and runs on the CPU lane. The second is for Hopper, whose
// wgmma and TMA are inline PTX in C++: it takes matrices whose rows begin at multiples of 16 bytes.
//
// The first: a block of 256 threads computes a tile of 128 x 256, a warp 64 x 64 of it, which are 128 sums of each lane. A slice of 64
// of K lies in shared memory in four planes of 16 of K: a row of a plane is one pack of 16 bytes, and a fragment's sixteen rows follow
// one another, so that it is read in one piece. (wmma wants fragments at multiples of 32 bytes, which rows of 64 bytes do not give.)
// There are two buffers: while the warps multiply out of one, each thread has its packs of the next on their way from memory
// to registers, and puts them into the other.
//
// The second, in `hopper`: one thread fetches slices of 128 of K by TMA into a ring of four stages; two warp groups multiply 64 x 256
// sums each by wgmma, 128 registers of each thread. Two blocks, one above the other, share what they fetch of b. A thread has two
// neighbours of a row at a time, whose scales it needs: four lanes store 32 bytes of a row, a sector, straight from registers.
//
// In both the sums are int32, which holds every one of them exactly, and become float32 when all of K is in them.
#include <mma.h>

#include <cstdint>

#ifndef CUDA_EMULATOR
#include <cuda.h>

#include <algorithm>
#endif

using namespace nvcuda;

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 64;
constexpr int THREADS = 256;
constexpr int GROUP = 16;                   // Rows of tiles that are walked through together.
constexpr int FRAGMENTS = 4;                // Of a warp, in both directions.
constexpr int WARP_TILE = 16 * FRAGMENTS;   // 64 rows and 64 columns; two warps share the columns, four the rows.
constexpr int WARPS_ACROSS = TILE_N / WARP_TILE;
constexpr int PACK = 16;                    // Numbers in 16 bytes.
constexpr int PLANES = SLICE / PACK;
constexpr int PLANE = (TILE_M + TILE_N) * PACK + 32;  // Padded, so that the planes' packs of a row lie in different banks.
constexpr int BUFFER = PLANES * PLANE;      // Numbers of one slice of both factors.
constexpr int OUT_STEP = WARP_TILE + 4;     // Padded, for sums on their way out.
constexpr int ROWS = THREADS / PLANES;      // That all threads together load at once.
constexpr int PACKS_A = TILE_M / ROWS, PACKS_B = TILE_N / ROWS;
constexpr int SHARED_BYTES = 2 * BUFFER;

__host__ __device__ int tiles(int64_t size, int tile) { return static_cast<int>((size + tile - 1) / tile); }

template <typename T>
struct Matrix {
  T* start;
  int64_t rows, columns, stride;
  bool aligned;  // Whether every row begins at a multiple of 16 bytes.

  __device__ bool has(int64_t row, int64_t column) const { return row < rows && column < columns; }
  __device__ T* at(int64_t row, int64_t column) const { return start + row * stride + column; }
};

struct Scales {
  const float *a, *b;
};

// Sixteen neighbours of a row: in one load where they may be, and zeros for what is outside of the matrix.
__device__ uint4 load_pack(const Matrix<const int8_t>& from, int64_t row, int64_t column) {
  if (from.aligned && from.has(row, column + PACK - 1)) return *reinterpret_cast<const uint4*>(from.at(row, column));
  uint4 pack = {0, 0, 0, 0};
  for (int i = 0; i < PACK; ++i) {
    if (from.has(row, column + i)) reinterpret_cast<int8_t*>(&pack)[i] = *from.at(row, column + i);
  }
  return pack;
}

using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, int>;

// A warp's share of one slice: both factors out of shared memory, a plane at a time.
__device__ void multiply(Sums (&sums)[FRAGMENTS][FRAGMENTS], const int8_t* a_rows, const int8_t* b_rows) {
#pragma unroll
  for (int plane = 0; plane < PLANES; ++plane) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left[FRAGMENTS];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right[FRAGMENTS];
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) wmma::load_matrix_sync(left[i], a_rows + plane * PLANE + 16 * i * PACK, PACK);
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) wmma::load_matrix_sync(right[j], b_rows + plane * PLANE + 16 * j * PACK, PACK);
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
      for (int j = 0; j < FRAGMENTS; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
    }
  }
}

// Which lane holds which sum of a fragment is not said anywhere: sixteen rows at a time go out through the warp's own memory, where a
// lane gets every 32nd sum and meets its scales.
__device__ void store(const Matrix<float>& out, const Scales& scales, const Sums (&sums)[FRAGMENTS][FRAGMENTS], int64_t row,
                      int64_t column, int* own) {
#pragma unroll
  for (int i = 0; i < FRAGMENTS; ++i) {
#pragma unroll
    for (int j = 0; j < FRAGMENTS; ++j) wmma::store_matrix_sync(own + 16 * j, sums[i][j], OUT_STEP, wmma::mem_row_major);
    __syncwarp();
    for (int at = threadIdx.x % 32; at < 16 * WARP_TILE; at += 32) {
      const int64_t r = row + 16 * i + at / WARP_TILE, c = column + at % WARP_TILE;
      if (!out.has(r, c)) continue;
      const float sum = static_cast<float>(own[at / WARP_TILE * OUT_STEP + at % WARP_TILE]);
      *out.at(r, c) = sum * scales.a[r] * scales.b[c];
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

__global__ void __launch_bounds__(THREADS)
    gemm_kernel(Matrix<const int8_t> a, Matrix<const int8_t> b, Scales scales, Matrix<float> out) {
  extern __shared__ uint4 shared[];
  int8_t* const slices = reinterpret_cast<int8_t*>(shared);
  const int2 tile = tile_of(blockIdx.x, tiles(out.rows, TILE_M), tiles(out.columns, TILE_N));
  const int64_t first_row = static_cast<int64_t>(tile.x) * TILE_M, first_column = static_cast<int64_t>(tile.y) * TILE_N;
  const int warp = threadIdx.x / 32;
  const int warp_row = warp / WARPS_ACROSS * WARP_TILE, warp_column = warp % WARPS_ACROSS * WARP_TILE;
  const bool works = out.has(first_row + warp_row, first_column + warp_column);
  uint4 a_packs[PACKS_A], b_packs[PACKS_B];
  Sums sums[FRAGMENTS][FRAGMENTS];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0);
  }

  const int r = threadIdx.x / PLANES, plane = threadIdx.x % PLANES;
  const auto fetch = [&](int64_t start) {
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) a_packs[i] = load_pack(a, first_row + r + i * ROWS, start + plane * PACK);
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) b_packs[i] = load_pack(b, first_column + r + i * ROWS, start + plane * PACK);
  };
  const auto put = [&](int8_t* slice) {
    uint4* const to = reinterpret_cast<uint4*>(slice + plane * PLANE);
#pragma unroll
    for (int i = 0; i < PACKS_A; ++i) to[r + i * ROWS] = a_packs[i];
#pragma unroll
    for (int i = 0; i < PACKS_B; ++i) to[TILE_M + r + i * ROWS] = b_packs[i];
  };

  fetch(0);
  put(slices);
  __syncthreads();
  int buffer = 0;
  for (int64_t start = 0; start < a.columns; start += SLICE, buffer ^= 1) {
    const bool more = start + SLICE < a.columns;
    if (more) fetch(start + SLICE);
    const int8_t* const slice = slices + buffer * BUFFER;
    if (works) multiply(sums, slice + warp_row * PACK, slice + (TILE_M + warp_column) * PACK);
    if (more) put(slices + (buffer ^ 1) * BUFFER);
    __syncthreads();
  }
  int* const own = reinterpret_cast<int*>(shared) + warp * 16 * OUT_STEP;
  if (works) store(out, scales, sums, first_row + warp_row, first_column + warp_column, own);
}

template <typename T>
Matrix<T> matrix(T* start, int64_t rows, int64_t columns, int64_t stride) {
  return {start, rows, columns, stride, reinterpret_cast<uintptr_t>(start) % 16 == 0 && stride * sizeof(T) % 16 == 0};
}

#ifndef CUDA_EMULATOR
namespace hopper {

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 128;
constexpr int CLUSTER = 2;                  // Blocks that share their slices of b.
constexpr int GROUP = 16;                   // Rows of tiles that are walked through together.
constexpr int SHARE = TILE_N / CLUSTER;     // Rows of b that one block fetches for all.
constexpr int STAGES = 4;
constexpr int A_BYTES = TILE_M * SLICE, SHARE_BYTES = SHARE * SLICE, STAGE_BYTES = A_BYTES + CLUSTER * SHARE_BYTES;
constexpr int WARP_GROUP = 128, GROUP_ROWS = 64;  // Threads of a warp group, and rows that it multiplies.
constexpr int THREADS = 3 * WARP_GROUP;           // One group fetches, two multiply.
constexpr int SUMS = GROUP_ROWS * TILE_N / WARP_GROUP;
constexpr int ALIGNMENT = 1024;             // Of what the hardware swizzles.
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + ALIGNMENT;

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
  "+r"(sums[i]), "+r"(sums[i + 1]), "+r"(sums[i + 2]), "+r"(sums[i + 3]), "+r"(sums[i + 4]), "+r"(sums[i + 5]), "+r"(sums[i + 6]), \
      "+r"(sums[i + 7])
#define THIRTY_TWO(sums, i) EIGHT(sums, i), EIGHT(sums, i + 8), EIGHT(sums, i + 16), EIGHT(sums, i + 24)

// 64 rows of a times 256 of b, 32 of K: begun here, done when `multiply_wait` says so. Without `more` the sums begin anew.
__device__ void multiply(int32_t (&sums)[SUMS], uint64_t a, uint64_t b, bool more) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile(
      "{\n.reg .pred more;\nsetp.ne.b32 more, %130, 0;\nwgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
      "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "
      "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, "
      "%65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "
      "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, "
      "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "
      "%124, %125, %126, %127}, %128, %129, more;\n}"
      : THIRTY_TWO(sums, 0), THIRTY_TWO(sums, 32), THIRTY_TWO(sums, 64), THIRTY_TWO(sums, 96)
      : "l"(a), "l"(b), "r"(static_cast<int>(more)));
#endif
}

#undef THIRTY_TWO
#undef EIGHT

__device__ void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Behind this the compiler may read the sums.
__device__ void pin(int32_t (&sums)[SUMS]) {
#pragma unroll
  for (int i = 0; i < SUMS; ++i) asm volatile("" : "+r"(sums[i])::"memory");
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

// Without a branch, behind which the compiler would convert the sums while wgmma may still add to them.
__device__ void store_where(bool has, float* to, float x, float y) {
  asm volatile(
      "{\n.reg .pred has;\nsetp.ne.b32 has, %0, 0;\n@has st.global.v2.f32 [%1], {%2, %3};\n}" ::"r"(static_cast<int>(has)),
      "l"(to), "f"(x), "f"(y)
      : "memory");
}

// `row` and `column` are those of a thread's first sum. It has two neighbours of this row and of the eighth one below, in every eighth
// column. The number of columns is even, so that both neighbours are in the matrix or none is.
__device__ void store(const int32_t (&sums)[SUMS], const Matrix<float>& out, const Scales& scales, int64_t row, int64_t column) {
  const bool has_row = row < out.rows, has_eighth = row + 8 < out.rows;
  const float upper = has_row ? __ldg(scales.a + row) : 0.0f, lower = has_eighth ? __ldg(scales.a + row + 8) : 0.0f;
#pragma unroll
  for (int i = 0; i < TILE_N / 8; ++i) {
    const int64_t c = column + 8 * i;
    const bool has_column = c < out.columns;
    const float2 right = has_column ? __ldg(reinterpret_cast<const float2*>(scales.b + c)) : float2{0.0f, 0.0f};
    store_where(has_row && has_column, out.at(row, c), static_cast<float>(sums[4 * i]) * upper * right.x,
                static_cast<float>(sums[4 * i + 1]) * upper * right.y);
    store_where(has_eighth && has_column, out.at(row + 8, c), static_cast<float>(sums[4 * i + 2]) * lower * right.x,
                static_cast<float>(sums[4 * i + 3]) * lower * right.y);
  }
}

// How many tiles of a cluster there are in both directions, and slices of K.
struct Shape {
  int tiles_m, tiles_n, slices;
};

__device__ int2 tile_of(int tile, const Shape& shape) {
  constexpr int HEIGHT = GROUP / CLUSTER;
  const int first = tile / (HEIGHT * shape.tiles_n) * HEIGHT;
  const int height = min(shape.tiles_m - first, HEIGHT);
  const int within = tile % (HEIGHT * shape.tiles_n);
  return {first + within % height, within / height};
}

__global__ void __launch_bounds__(THREADS, 1)
    kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Scales scales,
           const Matrix<float> out, const Shape shape) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  constexpr int WARPS = 2 * WARP_GROUP / 32;  // That multiply.
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  const uint32_t stages = (shared_address(memory) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const uint32_t first_full = shared_address(full), first_empty = shared_address(empty);
  const uint32_t block = block_in_cluster();
  const int clusters = gridDim.x / CLUSTER, first = blockIdx.x / CLUSTER, all = shape.tiles_m * shape.tiles_n;

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
        const int b_row = where.y * TILE_N + static_cast<int>(block) * SHARE;
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
    const int group = threadIdx.x / WARP_GROUP - 1, lane = threadIdx.x % 32;
    const int own_row = group * GROUP_ROWS + threadIdx.x % WARP_GROUP / 32 * 16 + lane / 4, own_column = lane % 4 * 2;
    const uint32_t own_a = stages + group * GROUP_ROWS * SLICE;
    const auto release = [&](int stage) {
      if (lane < CLUSTER) arrive_at(first_empty + 8 * stage, lane);
    };
    Ring ring;
    for (int tile = first; tile < all; tile += clusters) {
      const int2 where = tile_of(tile, shape);
      const int64_t row = static_cast<int64_t>(where.x * CLUSTER + static_cast<int>(block)) * TILE_M + own_row;
      const int64_t column = static_cast<int64_t>(where.y) * TILE_N + own_column;
      int32_t sums[SUMS];
      int before = -1, slice = 0;  // The stage of the slice before.
      do {
        wait(first_full + 8 * ring.stage, ring.parity);
        const uint64_t a = factor(own_a + ring.stage * STAGE_BYTES), b = factor(stages + A_BYTES + ring.stage * STAGE_BYTES);
        multiply_begin();
#pragma unroll
        for (int l = 0; l < SLICE / 32; ++l) multiply(sums, a + 2 * l, b + 2 * l, slice + l > 0);
        multiply_commit();
        if (before >= 0) {
          multiply_wait<1>();
          release(before);
        }
        before = ring.stage;
        ring.next();
      } while (++slice < shape.slices);
      multiply_wait<0>();
      pin(sums);
      release(before);
      store(sums, out, scales, row, column);
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
inline bool describe(CUtensorMap& map, Encode encode, const Matrix<const int8_t>& matrix, uint32_t rows) {
  const uint64_t sizes[] = {static_cast<uint64_t>(matrix.columns), static_cast<uint64_t>(matrix.rows)};
  const uint64_t bytes[] = {static_cast<uint64_t>(matrix.stride)};
  const uint32_t box[] = {SLICE, rows}, steps[] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, const_cast<int8_t*>(matrix.start), sizes, bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Whether it was launched: on a Hopper GPU, of matrices whose rows begin at multiples of 16 bytes, and an even n.
inline bool launch(const Matrix<const int8_t>& a, const Matrix<const int8_t>& b, const Scales& scales, const Matrix<float>& out,
                   cudaStream_t stream) {
  const int64_t m = a.rows, n = out.columns, k = a.columns;
  const bool pairs = n % 2 == 0 && reinterpret_cast<uintptr_t>(scales.b) % sizeof(float2) == 0;
  if (!a.aligned || !b.aligned || !out.aligned || !pairs) return false;
  int device = 0, major = 0, processors = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (major != 9) return false;
  const Encode encode = encoder();
  CUtensorMap a_map, b_map;
  if (!encode || !describe(a_map, encode, a, TILE_M) || !describe(b_map, encode, b, SHARE)) return false;
  const Shape shape = {tiles(m, TILE_M * CLUSTER), tiles(n, TILE_N), tiles(k, SLICE)};
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
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
  return cudaLaunchKernelEx(&launched, kernel, a_map, b_map, scales, out, shape) == cudaSuccess;
}

}  // namespace hopper
#endif

void quantised_gemm(const int8_t* a, const int8_t* b, const float* a_scale, const float* b_scale, float* out, int64_t m, int64_t n,
                    int64_t k, int64_t a_row_stride, int64_t b_row_stride, int64_t out_row_stride, cudaStream_t stream) {
  const Matrix<const int8_t> left = matrix(a, m, k, a_row_stride), right = matrix(b, n, k, b_row_stride);
  const Matrix<float> product = matrix(out, m, n, out_row_stride);
  const Scales scales = {a_scale, b_scale};
#ifndef CUDA_EMULATOR
  if (hopper::launch(left, right, scales, product, stream)) return;
#endif
  const int blocks = tiles(m, TILE_M) * tiles(n, TILE_N);
  cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  gemm_kernel<<<blocks, THREADS, SHARED_BYTES, stream>>>(left, right, scales, product);
}
