// One template fills every table by a grid-stride loop; what is filled in is a functor.
#include <cstdint>

namespace {

struct Layout {
  const int* shape;
  const int* stride;
  int modes;
  __device__ int operator()(int index) const {
    int offset = 0, below = 1;
    for (int k = 0; k + 1 < modes; ++k) {
      offset += index / below % shape[k] * stride[k];
      below *= shape[k];
    }
    return offset + index / below * stride[modes - 1];
  }
};

template <typename Answer>
__global__ void fill(int* out, int64_t n, Answer answer) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) out[i] = answer(i);
}

struct OfLayout {
  const int* index;
  Layout layout;
  __device__ int operator()(int64_t i) const { return layout(index[i]); }
};

struct OfTwo {
  const int* index;
  Layout outer, inner;
  __device__ int operator()(int64_t i) const { return outer(inner(index[i])); }
};

struct Swizzle {
  const int* offset;
  const int* rule;
  __device__ int operator()(int64_t i) const {
    const int source = ((1 << rule[0]) - 1) << (rule[1] + rule[2]);
    return offset[i] ^ ((offset[i] & source) >> rule[2]);
  }
};

struct Fragment {
  const int* lane;
  const int* value;
  const int* operand;
  __device__ int operator()(int64_t i) const {
    const int g = lane[i] / 4, t = lane[i] % 4, v = value[i];
    switch (operand[0]) {
      case 0: return (g + (v & 2 ? 8 : 0)) * operand[1] + 2 * t + (v & 1) + (v & 4 ? 8 : 0);
      case 1: return (2 * t + (v & 1) + (v & 2 ? 8 : 0)) * operand[1] + g;
      default: return (g + (v & 2 ? 8 : 0)) * operand[1] + 2 * t + (v & 1);
    }
  }
};

struct Passes {
  const int* access;
  const int* bytes;
  __device__ int operator()(int64_t warp) const {
    const int unit = *bytes < 4 ? 4 : *bytes, places = 128 / unit;
    int total = 0;
    for (int first = 0; first < 32; first += places) {
      int most = 0;
      for (int place = 0; place < places; ++place) {
        int wanted[32], count = 0;
        for (int lane = first; lane < first + places; ++lane) {
          const int mine = access[warp * 32 + lane] * *bytes / unit;
          bool is_new = mine % places == place;
          for (int k = 0; k < count; ++k) is_new = is_new && wanted[k] != mine;
          if (is_new) wanted[count++] = mine;
        }
        most = most < count ? count : most;
      }
      total += most;
    }
    return total;
  }
};

struct Tmem {
  const int* row;
  const int* column;
  const int* tile;
  __device__ int operator()(int64_t i) const {
    const int lane = tile[0] == 64 ? row[i] + row[i] / 16 * 16 : row[i];
    return lane * 65536 + tile[1] + column[i] / (32 / tile[2]);
  }
};

template <typename Answer>
void filled(int* out, int64_t n, Answer answer, cudaStream_t stream) {
  fill<<<4, 64, 0, stream>>>(out, n, answer);
}

}  // namespace

void layout_offsets(const int* index, const int* shape, const int* stride, int* out, int64_t modes, int64_t n,
                    cudaStream_t stream) {
  filled(out, n, OfLayout{index, {shape, stride, static_cast<int>(modes)}}, stream);
}

void composed_offsets(const int* index, const int* a_shape, const int* a_stride, const int* b_shape,
                      const int* b_stride, int* out, int64_t a_modes, int64_t b_modes, int64_t n, cudaStream_t stream) {
  const Layout a{a_shape, a_stride, static_cast<int>(a_modes)}, b{b_shape, b_stride, static_cast<int>(b_modes)};
  filled(out, n, OfTwo{index, a, b}, stream);
}

void swizzled_offsets(const int* offset, const int* rule, int* out, int64_t n, cudaStream_t stream) {
  filled(out, n, Swizzle{offset, rule}, stream);
}

void fragment_offsets(const int* lane, const int* value, const int* operand, int* out, int64_t n, cudaStream_t stream) {
  filled(out, n, Fragment{lane, value, operand}, stream);
}

void bank_passes(const int* access, const int* access_bytes, int* passes, int64_t warps, cudaStream_t stream) {
  filled(passes, warps, Passes{access, access_bytes}, stream);
}

void tmem_addresses(const int* row, const int* column, const int* tile, int* out, int64_t n, cudaStream_t stream) {
  filled(out, n, Tmem{row, column, tile}, stream);
}
