// GEMM, fourth milestone: the same tiles, filled by TMA three slices ahead, and read by ldmatrix.
//
// One thread asks for a slice of 48 KiB with two instructions, and a barrier in shared memory (mbarrier) counts the bytes that came. Nothing
// on its way needs registers or addresses any more, and so there are slices of 64 of K, in four stages: three are in flight while one is
// multiplied. TMA swizzles: pack p of row r lies where pack p ^ r % 8 would. Without padding, the eight packs that ldmatrix reads at once
// still come from different banks. mma.sync says which lane holds which sum: they are stored from registers. What is left: the tensor cores of
// Hopper do more than mma.sync can ask them for, and every factor passes through registers.
//
// TMA takes rows that begin at multiples of 16 bytes. Other matrices have the second milestone's kernel, as on the CPU lane.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstdint>

#ifndef CUDA_EMULATOR
#include <cuda.h>

#include <type_traits>
#endif

using namespace nvcuda;

template <typename T>
struct Matrix {
  T* start;
  int64_t rows, columns, stride;

  __host__ __device__ bool has(int64_t row, int64_t column) const { return row < rows && column < columns; }
  __host__ __device__ T* at(int64_t row, int64_t column) const { return start + row * stride + column; }
};

#ifndef CUDA_EMULATOR
namespace hopper {

constexpr int TILE_M = 128, TILE_N = 256, SLICE = 64;
constexpr int STAGES = 4, AHEAD = STAGES - 1;  // Slices in shared memory, and of those the ones on their way.
constexpr int THREADS = 256;
constexpr int WARP_TILE = 64;                  // Rows and columns of a warp; two warps share the columns, four the rows.
constexpr int WARPS_ACROSS = TILE_N / WARP_TILE;
constexpr int DOWN = WARP_TILE / 16, ACROSS = WARP_TILE / 8;  // Instructions of 16 x 8 sums in a warp's tile.
constexpr int GROUP = 16;                      // Rows of tiles that are walked through together.
constexpr int ROW_BYTES = SLICE * 2;           // 128: eight packs of 16 bytes, which TMA swizzles.
constexpr int A_BYTES = TILE_M * ROW_BYTES, STAGE_BYTES = A_BYTES + TILE_N * ROW_BYTES;
constexpr int ALIGNMENT = 1024;                // Of what TMA swizzles: eight rows.
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + ALIGNMENT;

__device__ uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// A barrier whose phase is over when one thread has arrived and all bytes that it said to expect have come.
__device__ void barrier_init(uint32_t barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}

__device__ void expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Until the phase with this parity is over: 0 is the first phase, 1 the second, 0 the third.
__device__ void wait(uint32_t barrier, uint32_t parity) {
  uint32_t passed = 0;
  while (!passed) {
    asm volatile(
        "{\n.reg .pred passed;\nmbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2;\nselp.u32 %0, 1, 0, passed;\n}"
        : "=r"(passed)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}

// A box of a matrix into shared memory. What it has outside of the matrix comes as zeros, and counts among the bytes.
__device__ void fetch(uint32_t to, const CUtensorMap* matrix, uint32_t barrier, int column, int row) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(matrix), "r"(barrier), "r"(column), "r"(row)
      : "memory");
}

// Four squares of 8 x 8: lane l gives the address of row l % 8 of square l / 8, and gets two neighbours of row l / 4 of each.
__device__ void load_squares(uint32_t (&squares)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(squares[0]), "=r"(squares[1]), "=r"(squares[2]), "=r"(squares[3])
               : "r"(row)
               : "memory");
}

#define MMA(TYPE)                                                                                                         \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                                                          \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

// 16 rows of a times 8 of b, 16 of K.
template <typename T>
__device__ void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t* b) {
  if constexpr (std::is_same_v<T, __half>) {
    MMA("f16");
  } else {
    MMA("bf16");
  }
}

#undef MMA

// Two neighbours of a row, rounded: four bytes, where both exist.
template <typename T>
__device__ void store_pair(const Matrix<T>& c, int64_t row, int64_t column, float x, float y) {
  if (!c.has(row, column)) return;
  uint32_t pair;
  reinterpret_cast<T*>(&pair)[0] = static_cast<T>(x);
  reinterpret_cast<T*>(&pair)[1] = static_cast<T>(y);
  if (c.has(row, column + 1)) {
    *reinterpret_cast<uint32_t*>(c.at(row, column)) = pair;
  } else {
    *c.at(row, column) = reinterpret_cast<T*>(&pair)[0];
  }
}

// The tile of a block: column by column inside a group of GROUP rows of tiles, so that blocks which run together share both factors.
__device__ int2 tile_of(int block, int tiles_m, int tiles_n) {
  const int first = block / (GROUP * tiles_n) * GROUP;
  const int height = min(tiles_m - first, GROUP);
  const int within = block % (GROUP * tiles_n);
  return {first + within % height, within / height};
}

template <typename T>
__global__ void __launch_bounds__(THREADS, 1)
    kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Matrix<T> c, int tiles_m,
           int tiles_n, int slices) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t full[STAGES];
  const uint32_t stages = (shared_address(memory) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, barriers = shared_address(full);
  const int2 tile = tile_of(blockIdx.x, tiles_m, tiles_n);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / WARPS_ACROSS * WARP_TILE, warp_column = warp % WARPS_ACROSS * WARP_TILE;

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) barrier_init(barriers + 8 * i);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // TMA has to see them, too.
  }
  const auto begin = [&](int slice) {
    if (threadIdx.x != 0 || slice >= slices) return;
    const uint32_t to = stages + slice % STAGES * STAGE_BYTES, barrier = barriers + slice % STAGES * 8;
    expect(barrier, STAGE_BYTES);
    fetch(to, &a_map, barrier, slice * SLICE, tile.x * TILE_M);
    fetch(to + A_BYTES, &b_map, barrier, slice * SLICE, tile.y * TILE_N);
  };
  for (int slice = 0; slice < AHEAD; ++slice) begin(slice);

  // Where this lane's rows begin in a stage, and how far along them its first pack is. Of a the four squares lie two by two, rows first;
  // of b they are two times eight rows of 16 of K. All rows of a lane are the same modulo 8.
  const uint32_t a_rows = (warp_row + lane % 16) * ROW_BYTES, a_pack = (lane / 16 ^ lane % 8) * 16;
  const uint32_t b_rows = A_BYTES + (warp_column + lane / 16 * 8 + lane % 8) * ROW_BYTES, b_pack = (lane / 8 % 2 ^ lane % 8) * 16;
  float sums[DOWN][ACROSS][4] = {};
  for (int slice = 0; slice < slices; ++slice) {
    __syncthreads();       // All warps are done with the slice before:
    begin(slice + AHEAD);  // its stage is free.
    const uint32_t stage = stages + slice % STAGES * STAGE_BYTES;
    wait(barriers + slice % STAGES * 8, slice / STAGES % 2);
#pragma unroll
    for (int step = 0; step < SLICE / 16; ++step) {  // Two packs further; `^` for `+`, as both are swizzled.
      uint32_t a[DOWN][4], b[ACROSS / 2][4];
#pragma unroll
      for (int i = 0; i < DOWN; ++i) load_squares(a[i], stage + a_rows + i * 16 * ROW_BYTES + (a_pack ^ step * 32));
#pragma unroll
      for (int j = 0; j < ACROSS / 2; ++j) load_squares(b[j], stage + b_rows + j * 16 * ROW_BYTES + (b_pack ^ step * 32));
#pragma unroll
      for (int i = 0; i < DOWN; ++i) {
#pragma unroll
        for (int j = 0; j < ACROSS; ++j) multiply<T>(sums[i][j], a[i], b[j / 2] + j % 2 * 2);
      }
    }
  }

  const int64_t row = static_cast<int64_t>(tile.x) * TILE_M + warp_row + lane / 4;
  const int64_t column = static_cast<int64_t>(tile.y) * TILE_N + warp_column + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < DOWN; ++i) {
#pragma unroll
    for (int j = 0; j < ACROSS; ++j) {
      store_pair(c, row + 16 * i, column + 8 * j, sums[i][j][0], sums[i][j][1]);
      store_pair(c, row + 16 * i + 8, column + 8 * j, sums[i][j][2], sums[i][j][3]);
    }
  }
#endif
}

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's function that describes a matrix to TMA. Asked for at run time, so that nobody has to link the driver's library.
inline Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status;
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
  return error == cudaSuccess && status == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(found) : nullptr;
}

template <typename T>
bool aligned(const Matrix<T>& matrix) {
  return reinterpret_cast<uintptr_t>(matrix.start) % 16 == 0 && matrix.stride % 8 == 0;
}

// A matrix in boxes of `rows` x SLICE.
template <typename T>
bool describe(CUtensorMap& map, Encode encode, const Matrix<const T>& matrix, uint32_t rows) {
  const auto type = std::is_same_v<T, __half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const uint64_t sizes[] = {static_cast<uint64_t>(matrix.columns), static_cast<uint64_t>(matrix.rows)};
  const uint64_t bytes[] = {2 * static_cast<uint64_t>(matrix.stride)};
  const uint32_t box[] = {SLICE, rows}, steps[] = {1, 1};
  return encode(&map, type, 2, const_cast<T*>(matrix.start), sizes, bytes, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Whether it was launched: on a Hopper GPU, of matrices whose rows begin at multiples of 16 bytes.
template <typename T>
bool launch(const Matrix<const T>& a, const Matrix<const T>& b, const Matrix<T>& c, cudaStream_t stream) {
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (major != 9 || !aligned(a) || !aligned(b) || !aligned(c)) return false;
  const Encode encode = encoder();
  CUtensorMap a_map, b_map;
  if (!encode || !describe(a_map, encode, a, TILE_M) || !describe(b_map, encode, b, TILE_N)) return false;
  const auto parts = [](int64_t size, int part) { return static_cast<int>((size + part - 1) / part); };
  const int tiles_m = parts(c.rows, TILE_M), tiles_n = parts(c.columns, TILE_N);
  cudaFuncSetAttribute(kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  kernel<T><<<tiles_m * tiles_n, THREADS, SHARED_BYTES, stream>>>(a_map, b_map, c, tiles_m, tiles_n, parts(a.columns, SLICE));
  return true;
}

}  // namespace hopper
#endif

// The second milestone: tiles of 64 x 64, for matrices that TMA cannot move.
namespace plain {

constexpr int TILE = 64, SLICE = 32, THREADS = 128;
constexpr int STEP = SLICE + 8;  // Padded, so that the rows of a fragment lie in different banks.

template <typename T>
__global__ void kernel(const Matrix<const T> a, const Matrix<const T> b, const Matrix<T> c) {
  __shared__ alignas(128) T a_slice[TILE][STEP], b_slice[TILE][STEP];
  __shared__ alignas(128) float c_tile[TILE][TILE];
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE, first_column = static_cast<int64_t>(blockIdx.x) * TILE;
  const int warp_row = threadIdx.x / 64 * 32, warp_column = threadIdx.x / 32 % 2 * 32;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
  for (auto& row : sums) {
    for (auto& sum : row) wmma::fill_fragment(sum, 0.0f);
  }
  for (int64_t start = 0; start < a.columns; start += SLICE) {
    for (int i = threadIdx.x; i < TILE * SLICE; i += THREADS) {
      const int64_t row = first_row + i / SLICE, column = first_column + i / SLICE, l = start + i % SLICE;
      a_slice[i / SLICE][i % SLICE] = a.has(row, l) ? *a.at(row, l) : static_cast<T>(0.0f);
      b_slice[i / SLICE][i % SLICE] = b.has(column, l) ? *b.at(column, l) : static_cast<T>(0.0f);
    }
    __syncthreads();
    for (int l = 0; l < SLICE; l += 16) {
      wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> left[2];
      wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> right[2];
      for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(left[i], &a_slice[warp_row + 16 * i][l], STEP);
      for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(right[j], &b_slice[warp_column + 16 * j][l], STEP);
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) wmma::mma_sync(sums[i][j], left[i], right[j], sums[i][j]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      float* const corner = &c_tile[warp_row + 16 * i][warp_column + 16 * j];
      wmma::store_matrix_sync(corner, sums[i][j], TILE, wmma::mem_row_major);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
    const int64_t row = first_row + i / TILE, column = first_column + i % TILE;
    if (c.has(row, column)) *c.at(row, column) = static_cast<T>(c_tile[i / TILE][i % TILE]);
  }
}

}  // namespace plain

template <typename T>
void gemm(const T* a, const T* b, T* c, int64_t m, int64_t n, int64_t k, int64_t a_row_stride, int64_t b_row_stride,
          int64_t c_row_stride, cudaStream_t stream) {
  const Matrix<const T> left = {a, m, k, a_row_stride}, right = {b, n, k, b_row_stride};
  const Matrix<T> product = {c, m, n, c_row_stride};
#ifndef CUDA_EMULATOR
  if (hopper::launch(left, right, product, stream)) return;
#endif
  const dim3 blocks(static_cast<unsigned>((n + plain::TILE - 1) / plain::TILE), static_cast<unsigned>((m + plain::TILE - 1) / plain::TILE));
  plain::kernel<<<blocks, plain::THREADS, 0, stream>>>(left, right, product);
}
