// Layout lab, first milestone: one thread does everything, answer after answer.
#include <cstdint>

constexpr int WARP = 32;
constexpr int LINE_BYTES = 128;
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
  const int group = lane / 4, pair = 2 * (lane % 4) + value % 2;
  // Bit 1 of the value is the lower half of A, bit 2 its right half; B and C have one half each.
  const int second = 8 * (value / 2 % 2);
  const int row = (which == 1 ? pair : group) + second;
  const int column = which == 0 ? pair + 8 * (value / 4) : which == 1 ? group : pair;
  return row * row_stride + column;
}

__device__ int tmem_address(int row, int column, int rows, int first, int bits) {
  const int lane = rows == 128 ? row : row / 16 * 32 + row % 16;
  return (lane << 16) + first + column * bits / 32;
}

__global__ void fill_layout(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = layout_offset(index[i], shape, stride, modes);
}

__global__ void fill_composed(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                              const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = layout_offset(layout_offset(index[i], b_shape, b_stride, b_modes), a_shape, a_stride, a_modes);
  }
}

__global__ void fill_swizzled(const int* offset, const int* rule, int* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = swizzled(offset[i], rule[0], rule[1], rule[2]);
}

__global__ void fill_fragment(const int* lane, const int* value, const int* operand, int* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = fragment_offset(lane[i], value[i], operand[0], operand[1]);
}

// How many passes the lanes of one group take: as many as the bank that is wanted most has different units.
__device__ int passes_of(const int* access, int lanes, int each) {
  const int unit_bytes = each > WORD_BYTES ? each : WORD_BYTES;
  int most = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    int count = 0;
    for (int other = 0; other < lanes; ++other) {
      const int unit = access[other] * each / unit_bytes;
      bool counts = unit % (LINE_BYTES / unit_bytes) == access[lane] * each / unit_bytes % (LINE_BYTES / unit_bytes);
      for (int earlier = 0; earlier < other; ++earlier) counts &= access[earlier] * each / unit_bytes != unit;
      count += counts;
    }
    most = count > most ? count : most;
  }
  return most;
}

__global__ void count_passes(const int* access, const int* access_bytes, int* passes, int64_t warps) {
  const int lanes = access_bytes[0] > WORD_BYTES ? LINE_BYTES / access_bytes[0] : WARP;
  for (int64_t warp = 0; warp < warps; ++warp) {
    int total = 0;
    for (int first = 0; first < WARP; first += lanes) {
      total += passes_of(access + warp * WARP + first, lanes, access_bytes[0]);
    }
    passes[warp] = total;
  }
}

__global__ void fill_tmem(const int* row, const int* column, const int* tile, int* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = tmem_address(row[i], column[i], tile[0], tile[1], tile[2]);
}

void layout_offsets(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n,
                    cudaStream_t stream) {
  fill_layout<<<1, 1, 0, stream>>>(index, shape, stride, out, modes, n);
}

void composed_offsets(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                      const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n, cudaStream_t stream) {
  fill_composed<<<1, 1, 0, stream>>>(index, a_shape, a_stride, b_shape, b_stride, out, a_modes, b_modes,
                                                   n);
}

void swizzled_offsets(const int* offset, const int* rule, int* out, int64_t n, cudaStream_t stream) {
  fill_swizzled<<<1, 1, 0, stream>>>(offset, rule, out, n);
}

void fragment_offsets(const int* lane, const int* value, const int* operand, int* out, int64_t n, cudaStream_t stream) {
  fill_fragment<<<1, 1, 0, stream>>>(lane, value, operand, out, n);
}

void bank_passes(const int* access, const int* access_bytes, int* passes, int64_t warps, cudaStream_t stream) {
  count_passes<<<1, 1, 0, stream>>>(access, access_bytes, passes, warps);
}

void tmem_addresses(const int* row, const int* column, const int* tile, int* out, int64_t n, cudaStream_t stream) {
  fill_tmem<<<1, 1, 0, stream>>>(row, column, tile, out, n);
}
