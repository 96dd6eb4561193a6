// nvcuda::wmma: a warp multiplies small matrices together.
//
// Every lane holds an equal share of a fragment. Which elements is not specified by CUDA, and here it is simply the
// lane-th run of consecutive ones: code that relies on another share is wrong on the next GPU as well.
#pragma once

#include "cuda_emulator/half.h"
#include "cuda_emulator/math.h"
#include "cuda_emulator/warp.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

// Of what was not rounded they ignore the last thirteen bits.
inline float as_tensor_cores_read(float value) { return __uint_as_float(__float_as_uint(value) & ~0x1fffu); }

// To the nearest, and from the middle away from zero: cvt.rna.tf32.f32.
inline float __float_to_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return value;
  return as_tensor_cores_read(__uint_as_float(bits + 0x1000u));
}

template <class T>
struct stored {
  using type = T;
};
template <>
struct stored<precision::tf32> {
  using type = float;
};

// What a product of two elements is summed in: floats one after another, and integers exactly.
template <class T>
constexpr bool is_byte = __is_same(T, signed char) || __is_same(T, unsigned char);
template <class T, bool Integer = is_byte<T> || __is_same(T, int)>
struct summed {
  using type = float;
};
template <class T>
struct summed<T, true> {
  using type = int;
};

template <class Use, int M, int N, int K>
struct extent;
template <int M, int N, int K>
struct extent<matrix_a, M, N, K> {
  static constexpr int rows = M, columns = K;
};
template <int M, int N, int K>
struct extent<matrix_b, M, N, K> {
  static constexpr int rows = K, columns = N;
};
template <int M, int N, int K>
struct extent<accumulator, M, N, K> {
  static constexpr int rows = M, columns = N;
};

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert((M == 16 && N == 16 && (K == 16 || K == 8)) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16),
                "wmma multiplies 16x16x16, 32x8x16, 8x32x16, or 16x16x8 in tf32");
  using element_type = typename stored<T>::type;
  static constexpr int rows = extent<Use, M, N, K>::rows, columns = extent<Use, M, N, K>::columns;
  static constexpr int num_elements = rows * columns / 32;
  static constexpr bool is_tf32 = __is_same(T, precision::tf32);
  element_type x[num_elements];
};

// Lanes show each other where their share is; `read` gets element (row, column) of the whole. All lanes pass both barriers.
template <class Fragment>
class whole {
 public:
  whole(const Fragment& mine, int line) {
    ::cuda_emulator::give(&mine, 0xffffffffu, "wmma", line);
    for (unsigned i = 0; i < 32; ++i) shares_[i] = ::cuda_emulator::shown<const Fragment*>(i);
  }
  using Wide = typename summed<typename Fragment::element_type>::type;
  CUDA_EMULATOR_UNCHECKED Wide read(int row, int column) const {
    const int index = row * Fragment::columns + column;
    // Another lane's stack: nothing but these bytes is taken from it.
    typename Fragment::element_type element;
    __builtin_memcpy(&element, &shares_[index / Fragment::num_elements]->x[index % Fragment::num_elements], sizeof element);
    if constexpr (Fragment::is_tf32) return as_tensor_cores_read(element);
    return static_cast<Wide>(element);
  }

 private:
  const Fragment* shares_[32];
};

template <class Fragment>
int row_of(int element) {
  return (static_cast<int>(::cuda_emulator::lane()) * Fragment::num_elements + element) / Fragment::columns;
}
template <class Fragment>
int column_of(int element) {
  return (static_cast<int>(::cuda_emulator::lane()) * Fragment::num_elements + element) % Fragment::columns;
}

template <class Use, int M, int N, int K, class T, class Layout>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& into, typename stored<T>::type value) {
  for (auto& element : into.x) element = value;
}

// A matrix in memory begins at a multiple of 32 bytes, and its rows are a multiple of 16 bytes apart.
inline void check_alignment(const void* address, size_t row_bytes, const char* operation, int line) {
  if (reinterpret_cast<std::uintptr_t>(address) % 32 == 0 && row_bytes % 16 == 0) return;
  ::cuda_emulator::fail("MisalignedAddress", line,
                        "a misaligned address: %s needs a pointer to a multiple of 32 bytes and rows that are a multiple of "
                        "16 bytes apart; in %s it got an address %zu bytes behind one, and rows %zu bytes apart.",
                        operation, ::cuda_emulator::this_thread().c_str(),
                        static_cast<size_t>(reinterpret_cast<std::uintptr_t>(address) % 32), row_bytes);
  ::cuda_emulator::stop_thread();
}

template <class Fragment, class Memory>
CUDA_EMULATOR_INLINE void load(Fragment& into, const Memory* from, unsigned stride, bool by_columns, int line) {
  ::cuda_emulator::give(0, 0xffffffffu, "load_matrix_sync", line);
  check_alignment(from, stride * sizeof(Memory), "load_matrix_sync", line);
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const size_t row = row_of<Fragment>(i), column = column_of<Fragment>(i);
    into.x[i] = from[by_columns ? column * stride + row : row * stride + column];
  }
}
template <class Use, int M, int N, int K, class T, class Memory>
CUDA_EMULATOR_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, row_major>& into, const Memory* from, unsigned stride, CUDA_EMULATOR_LINE) {
  load(into, from, stride, false, line_);
}
template <class Use, int M, int N, int K, class T, class Memory>
CUDA_EMULATOR_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, col_major>& into, const Memory* from, unsigned stride, CUDA_EMULATOR_LINE) {
  load(into, from, stride, true, line_);
}
template <int M, int N, int K, class T, class Memory>
CUDA_EMULATOR_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& into, const Memory* from, unsigned stride, layout_t layout,
                      CUDA_EMULATOR_LINE) {
  load(into, from, stride, layout == mem_col_major, line_);
}

template <int M, int N, int K, class T, class Memory>
CUDA_EMULATOR_INLINE void store_matrix_sync(Memory* to, const fragment<accumulator, M, N, K, T>& from, unsigned stride, layout_t layout,
                       CUDA_EMULATOR_LINE) {
  using Fragment = fragment<accumulator, M, N, K, T>;
  ::cuda_emulator::give(0, 0xffffffffu, "store_matrix_sync", line_);
  check_alignment(to, stride * sizeof(Memory), "store_matrix_sync", line_);
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const size_t row = row_of<Fragment>(i), column = column_of<Fragment>(i);
    to[layout == mem_col_major ? column * stride + row : row * stride + column] = from.x[i];
  }
}

template <int M, int N, int K, class D, class A, class LayoutA, class B, class LayoutB, class C>
void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, A, LayoutA>& a,
              const fragment<matrix_b, M, N, K, B, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c,
              CUDA_EMULATOR_LINE) {
  static_assert(is_byte<A> ? __is_same(A, B) && __is_same(C, int) && __is_same(D, int) : !is_byte<B> && !__is_same(C, int) && !__is_same(D, int),
                "bytes of one kind are summed in int, other numbers are not");
  using Result = fragment<accumulator, M, N, K, D>;
  const whole all_a(a, line_);
  const whole all_b(b, line_);
  Result result;
  for (int i = 0; i < Result::num_elements; ++i) {
    auto sum = static_cast<typename summed<C>::type>(c.x[i]);
    for (int k = 0; k < K; ++k) sum += all_a.read(row_of<Result>(i), k) * all_b.read(k, column_of<Result>(i));
    result.x[i] = sum;
  }
  // Nobody writes its share while somebody reads.
  ::cuda_emulator::give(0, 0xffffffffu, "mma_sync", line_);
  d = result;
}

}  // namespace nvcuda::wmma
