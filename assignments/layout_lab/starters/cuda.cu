// Layout lab: six functions from integers to integers. The kernels are there; the functions are your part.
#include <cstdint>

constexpr int THREADS = 128;
constexpr int WARP = 32;

__device__ int layout_offset(int index, const int* shape, const int* stride, int64_t modes) {
  // Your part: cut the index into coordinates, the first mode changing fastest, and add up coordinate times stride.
  return index;
}

__device__ int swizzled(int offset, int bits, int base, int shift) {
  // Your part: `bits` bits of the offset, from bit `base` on, change by those that are `shift` places above them.
  return offset;
}

// which: 0 is A (16 x 16), 1 is B (16 x 8), 2 is C (16 x 8).
__device__ int fragment_offset(int lane, int value, int which, int row_stride) {
  // Your part: which row and which column is it?
  return lane * row_stride + value;
}

__device__ int tmem_address(int row, int column, int rows, int first, int bits) {
  // Your part: the lane goes to the upper 16 bits of the address, the column to the lower ones.
  return row + column;
}

__global__ void fill_layout(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = layout_offset(index[i], shape, stride, modes);
}

__global__ void fill_composed(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                              const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  // Your part: two layouts, one after the other.
  out[i] = index[i];
}

__global__ void fill_swizzled(const int* offset, const int* rule, int* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = swizzled(offset[i], rule[0], rule[1], rule[2]);
}

__global__ void fill_fragment(const int* lane, const int* value, const int* operand, int* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fragment_offset(lane[i], value[i], operand[0], operand[1]);
}

// A block of one warp counts for the warp that it stands for.
__global__ void count_passes(const int* access, const int* access_bytes, int* passes) {
  // Your part: which word or element does each lane want, in which bank, and which of them take a pass of their own?
  if (threadIdx.x == 0) passes[blockIdx.x] = 1;
}

__global__ void fill_tmem(const int* row, const int* column, const int* tile, int* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tmem_address(row[i], column[i], tile[0], tile[1], tile[2]);
}

unsigned blocks(int64_t n) { return static_cast<unsigned>((n + THREADS - 1) / THREADS); }

void layout_offsets(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n,
                    cudaStream_t stream) {
  fill_layout<<<blocks(n), THREADS, 0, stream>>>(index, shape, stride, out, modes, n);
}

void composed_offsets(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                      const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n, cudaStream_t stream) {
  fill_composed<<<blocks(n), THREADS, 0, stream>>>(index, a_shape, a_stride, b_shape, b_stride, out, a_modes, b_modes,
                                                   n);
}

void swizzled_offsets(const int* offset, const int* rule, int* out, int64_t n, cudaStream_t stream) {
  fill_swizzled<<<blocks(n), THREADS, 0, stream>>>(offset, rule, out, n);
}

void fragment_offsets(const int* lane, const int* value, const int* operand, int* out, int64_t n, cudaStream_t stream) {
  fill_fragment<<<blocks(n), THREADS, 0, stream>>>(lane, value, operand, out, n);
}

void bank_passes(const int* access, const int* access_bytes, int* passes, int64_t warps, cudaStream_t stream) {
  count_passes<<<static_cast<unsigned>(warps), WARP, 0, stream>>>(access, access_bytes, passes);
}

void tmem_addresses(const int* row, const int* column, const int* tile, int* out, int64_t n, cudaStream_t stream) {
  fill_tmem<<<blocks(n), THREADS, 0, stream>>>(row, column, tile, out, n);
}
