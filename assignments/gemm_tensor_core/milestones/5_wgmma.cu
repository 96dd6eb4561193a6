// GEMM, fifth milestone: the same slices, multiplied by wgmma, which reads them out of shared memory itself.
//
// A block is two warp groups, and each has 64 x 256 sums, 128 registers of each thread. No fragment is loaded any more: wgmma gets a 64-bit
// description of where each factor is and how it is swizzled. It is asynchronous. While one slice is multiplied, the next one's
// instructions are issued, and only then does a thread wait for the first; so the tensor cores always have the next slice to go on with. What is left: all
// threads still meet at a barrier for each slice before its stage is filled again, and while a tile is stored, the SM multiplies nothing.
// The reference kernel gives fetching to a warp group of its own, goes on to the next tile meanwhile, and shares slices between two blocks.
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
constexpr int WARP_GROUP = 128, GROUP_ROWS = 64;  // Threads of a warp group, and rows that it multiplies.
constexpr int THREADS = TILE_M / GROUP_ROWS * WARP_GROUP;
constexpr int SUMS = GROUP_ROWS * TILE_N / WARP_GROUP;
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

// What wgmma has to know of a factor: where it is in units of 16 bytes, that eight rows fill 1024 bytes, and that its rows of 128 bytes
// are swizzled. (What lies between two packs of a row, here 1, does not matter to swizzled rows.)
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
  if constexpr (std::is_same_v<T, __half>) {
    WGMMA("f16");
  } else {
    WGMMA("bf16");
  }
}

#undef WGMMA
#undef THIRTY_TWO
#undef EIGHT

__device__ void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until no more than LEFT slices are being multiplied.
template <int LEFT>
__device__ void multiply_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

// Behind this the compiler may read the sums.
__device__ void pin(float (&sums)[SUMS]) {
#pragma unroll
  for (int i = 0; i < SUMS; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

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
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ uint8_t memory[];
  __shared__ uint64_t full[STAGES];
  const uint32_t stages = (shared_address(memory) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, barriers = shared_address(full);
  const int2 tile = tile_of(blockIdx.x, tiles_m, tiles_n);

  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) barrier_init(barriers + 8 * i);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");  // TMA has to see them, too.
  }
  __syncthreads();
  const auto begin = [&](int slice) {
    if (threadIdx.x != 0 || slice >= slices) return;
    const uint32_t to = stages + slice % STAGES * STAGE_BYTES, barrier = barriers + slice % STAGES * 8;
    expect(barrier, STAGE_BYTES);
    fetch(to, &a_map, barrier, slice * SLICE, tile.x * TILE_M);
    fetch(to + A_BYTES, &b_map, barrier, slice * SLICE, tile.y * TILE_N);
  };
  for (int slice = 0; slice < AHEAD; ++slice) begin(slice);

  const int group = threadIdx.x / WARP_GROUP, lane = threadIdx.x % 32;
  float sums[SUMS];
  for (int slice = 0; slice < slices; ++slice) {
    const uint32_t stage = stages + slice % STAGES * STAGE_BYTES;
    wait(barriers + slice % STAGES * 8, slice / STAGES % 2);
    const uint64_t a = factor(stage + group * GROUP_ROWS * ROW_BYTES), b = factor(stage + A_BYTES);
    multiply_begin();
#pragma unroll
    for (int step = 0; step < SLICE / 16; ++step) multiply<T>(sums, a + 2 * step, b + 2 * step, slice + step > 0);  // 32 bytes further.
    multiply_commit();
    multiply_wait<1>();    // This group is done with the slice before;
    __syncthreads();       // so is the other:
    begin(slice + AHEAD);  // its stage is free.
  }
  multiply_wait<0>();
  pin(sums);

  const int64_t row = static_cast<int64_t>(tile.x) * TILE_M + threadIdx.x / 32 * 16 + lane / 4;
  const int64_t column = static_cast<int64_t>(tile.y) * TILE_N + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < TILE_N / 8; ++j) {
    store_pair(c, row, column + 8 * j, sums[4 * j], sums[4 * j + 1]);
    store_pair(c, row + 8, column + 8 * j, sums[4 * j + 2], sums[4 * j + 3]);
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
