// Honest: shifts and masks instead of quotients and remainders.
#include <cstdint>

constexpr int THREADS = 128;
constexpr int WARP = 32;
constexpr int LINE_BYTES = 128;  // 32 banks of a word each.
constexpr int WORD_BYTES = 4;

__device__ int layout_offset(int index, const int* shape, const int* stride, int64_t modes) {
  int offset = 0;
  for (int mode = 0; mode < modes; ++mode) {
    // The last mode takes what is left, so that indices behind the end go on.
    const int coordinate = mode < modes - 1 ? index % shape[mode] : index;
    offset += coordinate * stride[mode];
    index /= shape[mode];
  }
  return offset;
}

__device__ int swizzled(int offset, int bits, int base, int shift) {
  const int mask = ((1 << bits) - 1) << base;
  return offset ^ ((offset >> shift) & mask);
}

__device__ int fragment_offset(int lane, int value, int which, int row_stride) {
  const int group = lane >> 2, pair = ((lane & 3) << 1) | (value & 1);
  // Bit 1 of the value is the lower half of A, bit 2 its right half; B and C have one half each.
  const int second = (value & 2) << 2;
  const int row = (which == 1 ? pair : group) + second;
  const int column = which == 0 ? pair + ((value & 4) << 1) : which == 1 ? group : pair;
  return row * row_stride + column;
}

__device__ int tmem_address(int row, int column, int rows, int first, int bits) {
  const int lane = rows == 128 ? row : ((row & 0x30) << 1) | (row & 15);
  return (lane << 16) | (first + (column * bits >> 5));
}

__global__ void fill_layout(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = layout_offset(index[i], shape, stride, modes);
}

__global__ void fill_composed(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                              const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int inner = layout_offset(index[i], b_shape, b_stride, b_modes);
  out[i] = layout_offset(inner, a_shape, a_stride, a_modes);
}

__global__ void fill_swizzled(const int* offset, const int* rule, int* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = swizzled(offset[i], rule[0], rule[1], rule[2]);
}

__global__ void fill_fragment(const int* lane, const int* value, const int* operand, int* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fragment_offset(lane[i], value[i], operand[0], operand[1]);
}

// A warp counts for the warp that it stands for: lane by lane, as the hardware sees it.
__global__ void count_passes(const int* access, const int* access_bytes, int* passes) {
  __shared__ int units[WARP];
  const int lane = threadIdx.x;
  const int each = access_bytes[0];
  // What is fetched at once: a word, or the whole element where that is larger.
  const int unit_bytes = each > WORD_BYTES ? each : WORD_BYTES;
  const int places = LINE_BYTES / unit_bytes;
  const int unit = access[blockIdx.x * WARP + lane] * each / unit_bytes;
  units[lane] = unit;
  __syncwarp();
  int count = 0;
  const int first = lane / places * places;
  for (int other = first; other < first + places; ++other) {
    // Of lanes of a group that want the same unit only the first counts: one fetch serves them all.
    bool is_first = true;
    for (int earlier = first; earlier < other; ++earlier) is_first &= units[earlier] != units[other];
    count += is_first && units[other] % places == unit % places;
  }
  for (int step = places / 2; step > 0; step /= 2) count = max(count, __shfl_xor_sync(0xffffffffu, count, step));
  // Every lane has its group's count now; the groups take their turns.
  int total = 0;
  for (int group = 0; group < WARP; group += places) total += __shfl_sync(0xffffffffu, count, group);
  if (lane == 0) passes[blockIdx.x] = total;
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
