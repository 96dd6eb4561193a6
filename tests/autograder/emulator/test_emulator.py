"""Kernels of every kind on the emulator, right ones and wrong ones, compiled by g++ and called as the runner does."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest
import torch

from autograder.emulator.build import CompileError, build
from autograder.emulator.translate import MalformedError, UnsupportedError
from tests.autograder.emulated import FORWARD, REVERSE, SHUFFLED, Kernel

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.mark.quick
def test_threads_of_many_blocks_add_two_vectors(kernel):
    add = kernel("""
        __global__ void add(const float* x, const float* y, float* out, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) out[i] = x[i] + y[i];
        }
        extern "C" void go(const float* x, const float* y, float* out, int n) {
          add<<<(n + 255) / 256, 256>>>(x, y, out, n);
        }
    """)
    x, y, out = torch.randn(100_003), torch.randn(100_003), torch.full((100_003,), torch.nan)
    assert add(x, y, out, 100_003) == ""
    assert torch.equal(out, x + y)


TILED = """
    constexpr int T = 16;
    __global__ void matmul(const float* a, const float* b, float* c, int n) {
      __shared__ float as[T][T + 1], bs[T][T];
      int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
      float sum = 0.0f;
      for (int k = 0; k < n; k += T) {
        as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
        bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < T; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        SECOND
      }
      c[row * n + col] = sum;
    }
    extern "C" void go(const float* a, const float* b, float* c, int n) {
      dim3 grid(n / T, n / T), block(T, T);
      matmul<<<grid, block>>>(a, b, c, n);
    }
"""


@pytest.mark.quick
@pytest.mark.parametrize("order", [FORWARD, REVERSE, SHUFFLED])
def test_a_block_shares_tiles_in_every_order_of_its_threads(kernel, order):
    matmul = kernel(TILED.replace("SECOND", "__syncthreads();"))
    a, b, c = torch.randn(64, 64), torch.randn(64, 64), torch.full((64, 64), torch.nan)
    assert matmul(a, b, c, 64, order=order) == ""
    torch.testing.assert_close(c, a @ b)


@pytest.mark.quick
def test_a_missing_barrier_shows_in_another_order(kernel):
    matmul = kernel(TILED.replace("SECOND", ""))
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    wrong = 0
    for order in (FORWARD, REVERSE, SHUFFLED):
        c = torch.full((64, 64), torch.nan)
        assert matmul(a, b, c, 64, order=order) == ""
        wrong += not torch.allclose(c, a @ b, atol=1e-4)
    assert wrong > 0


@pytest.mark.quick
def test_the_others_pass_a_barrier_that_some_returned_before(kernel, capfd):
    """As on a GPU since Volta, with a note: a result without what the others should have done is wrong."""
    leaves = kernel("""__global__ void k(float* out, int n) {
          __shared__ float shared[64];
          if (threadIdx.x >= n) return;
          shared[threadIdx.x] = threadIdx.x;
          __syncthreads();
          out[threadIdx.x] = shared[n - 1 - threadIdx.x];
          if (__syncthreads_and(1) && !__syncthreads_or(0)) out[63] = __syncthreads_count(1);
        }
        extern "C" void go(float* out, int n) { k<<<1, 64>>>(out, n); }""")
    out = torch.zeros(64)
    assert leaves(out, 52) == ""
    assert out[:52].tolist() == list(range(51, -1, -1))
    assert out[63] == 52
    assert capfd.readouterr().err.startswith(
        "Note: block (0,0,0) of k: 12 of 64 threads returned before the __syncthreads() at line 5."
    )


@pytest.mark.quick
def test_a_tree_without_the_threads_that_returned_is_wrong(kernel):
    total = kernel("""__global__ void k(const float* x, float* out, int n) {
          __shared__ float shared[64];
          if (threadIdx.x >= n) return;
          shared[threadIdx.x] = x[threadIdx.x];
          for (int step = 32; step > 0; step /= 2) {
            __syncthreads();
            if (threadIdx.x < step) shared[threadIdx.x] += shared[threadIdx.x + step];
          }
          if (threadIdx.x == 0) out[0] = shared[0];
        }
        extern "C" void go(const float* x, float* out, int n) { k<<<1, 64>>>(x, out, n); }""")
    out = torch.zeros(1)
    assert total(torch.ones(64), out, 64) == ""
    assert out.item() == 64
    assert total(torch.ones(64), out, 52) == ""
    assert out.item() < -1e6


def test_two_barriers_are_not_one(kernel):
    branches = kernel("""__global__ void k(int n) {
          if (threadIdx.x < n) {
            __syncthreads();
          } else {
            __syncthreads();
          }
        }
        extern "C" void go(int n) { k<<<2, 64>>>(n); }""")
    assert branches(64) == ""
    trouble = branches(48)
    assert "16 of 64 at line 5 and others at line 3" in trouble
    assert "different barriers" in trouble


@pytest.mark.quick
def test_shared_memory_is_poisoned_for_every_block(kernel):
    stale = kernel("""__global__ void k(float* out) {
          __shared__ float sum;
          if (blockIdx.x == 0) sum = 1.0f;
          __syncthreads();
          if (threadIdx.x == 0) out[blockIdx.x] = sum;
        }
        extern "C" void go(float* out) { k<<<2, 32>>>(out); }""")
    out = torch.zeros(2)
    assert stale(out) == ""
    assert out[0] == 1.0
    assert out[1] < -1e6


def test_shared_memory_is_aligned_as_asked_for(kernel):
    aligned = kernel("""__global__ void k(int* out) {
          __shared__ char before;
          __shared__ alignas(128) half a[8], b[8];
          __shared__ __align__(64) half c[8];
          extern __shared__ __align__(1024) half d[];
          before = 0;
          out[0] = (unsigned long long)a % 128 + (unsigned long long)b % 128 + (unsigned long long)c % 64 + before;
          out[0] += (unsigned long long)d % 1024;
        }
        extern "C" void go(int* out) { k<<<1, 1>>>(out); }""")
    out = torch.ones(1, dtype=torch.int32)
    assert aligned(out) == ""
    assert out.item() == 0


@pytest.mark.quick
def test_dynamic_shared_memory_inside_and_outside_of_functions(kernel):
    dynamic = kernel("""
        extern __shared__ float outside[];
        template <typename T> __global__ void k(T* out, int n) {
          extern __shared__ __align__(16) float inside[];
          inside[threadIdx.x] = threadIdx.x;
          __syncthreads();
          out[threadIdx.x] = outside[n - 1 - threadIdx.x];
        }
        extern "C" void go(float* out, int n) {
          k<float><<<1, n, n * sizeof(float)>>>(out, n);
        }""")
    out = torch.zeros(96)
    assert dynamic(out, 96) == ""
    assert torch.equal(out, torch.arange(95, -1, -1, dtype=torch.float32))


@pytest.mark.parametrize(
    "declared",
    [
        "extern __shared__ unsigned char smem[];",
        "extern __shared__ __align__(16) char smem[];",
        "extern __shared__ volatile unsigned char smem[];",
        "extern volatile __shared__ unsigned char smem[];",
        "extern __shared__ int4 smem[];",
        "extern unsigned char __shared__ smem[];",
        "extern volatile unsigned char\n__shared__ smem[];",
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_dynamic_shared_memory_may_be_looked_at_as_another_type(kernel, declared, inside):
    seen = kernel(f"""{"" if inside else declared}
        __device__ float twice(const volatile float* s, int i) {{ return 2 * s[i]; }}
        __global__ void k(float* out, int n) {{
          {declared if inside else ""}
          volatile float* a = reinterpret_cast<volatile float*>(smem);
          volatile float* b = (volatile float*)&smem[0] + n;
          a[threadIdx.x] = threadIdx.x;
          b[threadIdx.x] = 1.0f;
          __syncthreads();
          out[threadIdx.x] = twice((volatile float*)smem, n - 1 - threadIdx.x) + ((volatile float*)(smem + 0))[n];
        }}
        extern "C" void go(float* out, int n, int bytes) {{ k<<<1, n, bytes>>>(out, n); }}""")
    out = torch.zeros(64)
    assert seen(out, 64, 512) == ""
    assert torch.equal(out, 2 * torch.arange(63.0, -1, -1) + 1)
    # As any dynamic shared memory it ends where the launch says.
    assert "writes byte 508 of dynamic shared memory; its launch gave it 508 bytes" in seen(out, 64, 508)


def test_the_type_may_stand_before_the_word_shared(kernel):
    summed = kernel("""#include <array>
        __global__ void k(float* out) {
          float __shared__ tile[2][32];
          unsigned int __shared__ *pointer, number;
          static std::array<float, 4> __shared__ four;
          if (threadIdx.x == 0) { four[3] = 2; number = 0; pointer = &number; }
          tile[1][threadIdx.x] = threadIdx.x;
          __syncthreads();
          if (threadIdx.x == 0) out[0] = tile[1][31] + four[3] + (pointer == &number);
        }
        extern "C" void go(float* out) { k<<<1, 32>>>(out); }""")
    out = torch.zeros(1)
    assert summed(out) == ""
    assert out.item() == 34


def test_shared_variables_may_be_volatile(kernel):
    sums = kernel("""struct Pair { float x, y; };
        __global__ void k(const float* x, float* out) {
          __shared__ volatile float s[64];
          volatile __shared__ float first, grid[2][2];
          __shared__ volatile Pair pair;
          if (threadIdx.x == 0) out[2] = s[1], out[3] = grid[1][1], out[4] = pair.y, out[5] = first;
          s[threadIdx.x] = x[threadIdx.x];
          __syncthreads();
          for (int d = 32; d > 0; d /= 2) {
            if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
            __syncthreads();
          }
          if (threadIdx.x == 0) first = s[0], pair.x = 1;
          __syncthreads();
          if (threadIdx.x == 63) out[0] = first, out[1] = pair.x;
        }
        extern "C" void go(const float* x, float* out) { k<<<1, 64>>>(x, out); }""")
    x, out = torch.arange(64.0), torch.zeros(6)
    assert sums(x, out) == ""
    assert out[:2].tolist() == [x.sum(), 1]
    assert (out[2:] < -1e6).all()


@pytest.mark.quick
def test_warps_shuffle_vote_and_reduce(kernel):
    warps = kernel("""
        __global__ void k(const float* x, float* out, int* votes) {
          float v = x[threadIdx.x];
          for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
          float all = x[threadIdx.x];
          for (int m = 1; m < 32; m *= 2) all = fmaxf(all, __shfl_xor_sync(~0u, all, m));
          float left = __shfl_up_sync(~0u, x[threadIdx.x], 1, 8);
          if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
          out[2 + threadIdx.x] = left;
          unsigned positive = __ballot_sync(~0u, x[threadIdx.x] > 0);
          if (threadIdx.x % 32 == 0) {
            votes[threadIdx.x / 32] = __popc(positive);
          }
          votes[2 + threadIdx.x] = all == __shfl_sync(~0u, all, 3);
        }
        extern "C" void go(const float* x, float* out, int* votes) {
          k<<<1, 64>>>(x, out, votes);
        }""")
    x, out, votes = torch.randn(64), torch.zeros(66), torch.zeros(66, dtype=torch.int32)
    assert warps(x, out, votes, order=SHUFFLED, seed=3) == ""
    torch.testing.assert_close(out[:2], x.view(2, 32).sum(1))
    assert votes[:2].tolist() == (x.view(2, 32) > 0).sum(1).tolist()
    assert votes[2:].all()
    expected = x.clone().view(8, 8)
    expected[:, 1:] = x.view(8, 8)[:, :-1]
    assert torch.equal(out[2:], expected.flatten())


@pytest.mark.parametrize("order", [FORWARD, REVERSE, SHUFFLED])
def test_every_warp_is_told_what_the_whole_block_said_at_a_barrier(kernel, order):
    """Also the warps that go on last, when the first ones have long said other things to each other."""
    votes = kernel("""__global__ void k(int* out) {
          for (int round = 0; round < 4; ++round) {
            int* row = out + round * 3 * blockDim.x + threadIdx.x;
            row[0] = __syncthreads_count(threadIdx.x % 4 <= round);
            row[0] += __shfl_xor_sync(~0u, 0, 1);
            row[blockDim.x] = __syncthreads_or(threadIdx.x == 65 && round % 2);
            row[blockDim.x] += __any_sync(~0u, 0);
            row[2 * blockDim.x] = __syncthreads_and(threadIdx.x != 65 || round % 2);
            row[2 * blockDim.x] += __ballot_sync(~0u, 0);
          }
        }
        extern "C" void go(int* out) { k<<<1, 96>>>(out); }""")
    out = torch.zeros(4, 3, 96, dtype=torch.int32)
    assert votes(out, order=order) == ""
    assert out.amin(2).tolist() == out.amax(2).tolist() == [[24, 0, 0], [48, 1, 1], [72, 0, 0], [96, 1, 1]]


def test_a_mask_that_names_a_lane_which_never_comes(kernel):
    hangs = kernel("""__global__ void k(float* out) {
          if (threadIdx.x < 16)
            out[threadIdx.x] = __shfl_sync(0xffffffff, out[threadIdx.x], 0);
        }
        extern "C" void go(float* out) { k<<<1, 32>>>(out); }""")
    trouble = hangs(torch.zeros(32))
    assert "__shfl_sync at line 3 waits for lanes 0xffff0000 (mask 0xffffffff), which never arrive" in trouble


def test_a_mask_has_to_name_its_caller(kernel):
    lies = kernel("""__global__ void k() { __syncwarp(0xf); }
        extern "C" void go() { k<<<1, 32>>>(); }""")
    assert "lane 4 with the mask 0x0000000f, which does not name it" in lies()


@pytest.mark.quick
def test_atomics_count_and_a_spin_lock_ends(kernel):
    counts = kernel("""
        __device__ int lock = 0;
        __global__ void k(int* bins, float* sum, int* guarded) {
          atomicAdd(&bins[threadIdx.x % 7], 1);
          atomicAdd(sum, 0.5f);
          while (atomicCAS(&lock, 0, 1) != 0) { }
          *guarded += 1;
          atomicExch(&lock, 0);
        }
        extern "C" void go(int* bins, float* sum, int* guarded) {
          k<<<3, 128>>>(bins, sum, guarded);
        }""")
    bins, total, guarded = torch.zeros(7, dtype=torch.int32), torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    assert counts(bins, total, guarded, order=SHUFFLED) == ""
    assert bins.tolist() == [57, 57, 54, 54, 54, 54, 54]
    assert total.item() == 192.0
    assert guarded.item() == 384


@pytest.mark.quick
@pytest.mark.parametrize(("name", "dtype"), [("half", torch.float16), ("__nv_bfloat16", torch.bfloat16)])
def test_small_floats_round_as_torch_does(kernel, name, dtype):
    small = kernel(
        """
        #include <cuda_fp16.h>
        #include <cuda_bf16.h>
        __global__ void k(const TYPE* x, const TYPE* y, TYPE* out, int n) {
          int i = threadIdx.x;
          for (; i < n; i += blockDim.x) {
            out[i] = x[i] + y[i]; out[n + i] = x[i] * y[i]; out[2 * n + i] = x[i] / y[i];
          }
        }
        extern "C" void go(const TYPE* x, const TYPE* y, TYPE* out, int n) {
          k<<<1, 128>>>(x, y, out, n);
        }""".replace("TYPE", name)
    )
    n = 20_000
    x = (torch.randn(n) * torch.exp(torch.randn(n) * 4)).to(dtype)
    y = (torch.randn(n) * torch.exp(torch.randn(n) * 4)).to(dtype)
    out = torch.zeros(3, n, dtype=dtype)
    assert small(x, y, out, n) == ""
    expected = torch.stack([x + y, x * y, x / y])
    assert torch.equal(out.view(torch.int16), expected.view(torch.int16))


def test_vectors_load_four_at_once(kernel):
    scale = kernel("""
        __global__ void k(const float4* __restrict__ x, float4* __restrict__ out, float a) {
          float4 v = __ldg(&x[threadIdx.x]);
          out[threadIdx.x] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
        }
        extern "C" void go(const float* x, float* out) {
          k<<<1, 64>>>(reinterpret_cast<const float4*>(x), (float4*)out, 2.0f);
        }""")
    x, out = torch.randn(256), torch.zeros(256)
    assert scale(x, out) == ""
    assert torch.equal(out, 2 * x)


@pytest.mark.quick
@pytest.mark.parametrize("layout", ["row_major", "col_major"])
def test_warps_multiply_small_matrices(kernel, layout):
    wmma = kernel(
        """
        #include <mma.h>
        using namespace nvcuda;
        __global__ void k(const half* a, const half* b, float* c) {
          wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
          wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::LAYOUT> fb;
          wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
          wmma::fill_fragment(fc, 0.0f);
          for (int i = 0; i < 2; ++i) {
            wmma::load_matrix_sync(fa, a + i * 16, 32);
            wmma::load_matrix_sync(fb, b + i * 16 * STEP, STRIDE);
            wmma::mma_sync(fc, fa, fb, fc);
          }
          wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
        }
        extern "C" void go(const half* a, const half* b, float* c) {
          k<<<1, 32>>>(a, b, c);
        }""".replace("LAYOUT", layout)
        .replace("STEP", "16" if layout == "row_major" else "1")
        .replace("STRIDE", "16" if layout == "row_major" else "32")
    )
    a, b, c = torch.randn(16, 32).half(), torch.randn(32, 16).half(), torch.zeros(16, 16)
    given = b if layout == "row_major" else b.t().contiguous()
    assert wmma(a, given, c) == ""
    torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["signed", "unsigned"])
def test_warps_sum_products_of_bytes_exactly(kernel, kind):
    wmma = kernel(
        """
        #include <mma.h>
        using namespace nvcuda;
        typedef KIND char Byte;
        __global__ void k(const Byte* a, const Byte* b, int* c) {
          wmma::fragment<wmma::matrix_a, 16, 16, 16, Byte, wmma::row_major> fa;
          wmma::fragment<wmma::matrix_b, 16, 16, 16, Byte, wmma::col_major> fb;
          wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
          wmma::fill_fragment(fc, 1 << 24);
          wmma::load_matrix_sync(fa, a, 16);
          wmma::load_matrix_sync(fb, b, 16);
          wmma::mma_sync(fc, fa, fb, fc);
          wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
        }
        extern "C" void go(const Byte* a, const Byte* b, int* c) { k<<<1, 32>>>(a, b, c); }
        """.replace("KIND", kind)
    )
    least, dtype = (-128, torch.int8) if kind == "signed" else (0, torch.uint8)
    a, b = (torch.randint(least, least + 256, (16, 16), dtype=dtype) for _ in range(2))
    c = torch.zeros(16, 16, dtype=torch.int32)
    assert wmma(a, b, c) == ""
    assert torch.equal(c.long(), a.long() @ b.long().T + (1 << 24))


@pytest.mark.parametrize("rounds", [True, False])
def test_tensor_cores_ignore_what_tf32_has_no_room_for(kernel, rounds):
    """What was not rounded loses its last bits: a kernel that forgets to is as far off as on a GPU."""
    wmma = kernel(
        """
        #include <mma.h>
        using namespace nvcuda;
        __global__ void k(const float* a, const float* b, float* c) {
          wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
          wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fb;
          wmma::fragment<wmma::accumulator, 16, 16, 8, float> fc;
          wmma::fill_fragment(fc, 0.0f);
          wmma::load_matrix_sync(fa, a, 8);
          wmma::load_matrix_sync(fb, b, 16);
          for (int i = 0; ROUNDS && i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(fa.x[i]);
          for (int i = 0; ROUNDS && i < fb.num_elements; ++i) fb.x[i] = wmma::__float_to_tf32(fb.x[i]);
          wmma::mma_sync(fc, fa, fb, fc);
          wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
        }
        extern "C" void go(const float* a, const float* b, float* c) { k<<<1, 32>>>(a, b, c); }
        """.replace("ROUNDS", str(rounds).lower())
    )
    a, b, c = torch.randn(16, 8), torch.randn(8, 16), torch.zeros(16, 16)
    a[0] = 1 + 2.0**-11  # In the middle: away from zero, and not to the even one.
    assert wmma(a, b, c) == ""
    up = 0x1000 if rounds else 0
    narrow = [((one.view(torch.int32) + up) & ~0x1FFF).view(torch.float32) for one in (a, b)]
    torch.testing.assert_close(c, narrow[0] @ narrow[1], atol=1e-6, rtol=1e-6)
    assert not torch.allclose(c, a @ b, atol=1e-6, rtol=1e-6)


def test_functions_of_numbers_are_those_of_their_type(kernel):
    """Without `std::` too: no float becomes an int or a double on its way."""
    numbers = kernel("""template <class T> constexpr bool is_float(T) { return __is_same(T, float); }
        __global__ void k(const float* x, float* out) {
          const float v = x[threadIdx.x];
          const double wide = v;
          static_assert(is_float(sqrt(1.0f)) && is_float(pow(2.0f, 3.0f)) && !is_float(fabs(1.0)), "");
          out[threadIdx.x] = abs(v);
          out[4 + threadIdx.x] = abs(wide) + abs((int)v) + abs((long long)v);
          out[8 + threadIdx.x] = isnan(v) + 2 * isinf(v) + 4 * isfinite(v) + 8 * signbit(v);
          out[12 + threadIdx.x] = isnan(wide) + 2 * isinf(wide) + 4 * isfinite(wide) + 8 * signbit(wide);
          out[16 + threadIdx.x] = float(abs(half(v))) + abs(-3);
        }
        extern "C" void go(const float* x, float* out) { k<<<1, 4>>>(x, out); }""")
    x, out = torch.tensor([-2.75, 0.5, torch.inf, -torch.inf]), torch.zeros(5, 4)
    assert numbers(x, out) == ""
    assert out[0].tolist() == x.abs().tolist()
    assert out[1, :2].tolist() == [6.75, 0.5]
    assert out[2].tolist() == out[3].tolist() == [12, 4, 2, 10]
    assert out[4, :2].tolist() == [5.75, 3.5]


def test_of_a_number_and_a_nan_the_number_is_larger_and_smaller(kernel):
    """CUDA's `max` and `min` of floats are fmax and fmin; std::max would depend on which of them comes first."""
    numbers = kernel("""constexpr float larger = max(1.0f, 2.0f);
        __global__ void k(const float* x, float* out) {
          const float a = x[0], nan = x[1];
          const double b = a, wide = nan;
          const float found[] = {max(a, nan), max(nan, a), min(a, nan), min(nan, a), (float)max(b, wide),
                                 (float)max(wide, b), (float)min(b, nan), (float)min(nan, b), max(3, nan), min(nan, 3)};
          for (int i = 0; i < 10; ++i) out[i] = found[i];
          out[10] = max(nan, nan);
          out[11] = max(a, -a) + min(4, -5) + min(7u, 8u) + float(max(half(1.0f), half(0.5f))) + larger;
        }
        extern "C" void go(const float* x, float* out) { k<<<1, 1>>>(x, out); }""")
    x, out = torch.tensor([1.5, torch.nan]), torch.zeros(12)
    assert numbers(x, out) == ""
    assert out[:10].tolist() == [1.5] * 8 + [3.0] * 2
    assert out[10].isnan()
    assert out[11] == 1.5 - 5 + 7 + 1 + 2


@pytest.mark.quick
def test_cooperative_groups_reduce_tiles(kernel):
    groups = kernel("""
        #include <cooperative_groups.h>
        #include <cooperative_groups/reduce.h>
        namespace cg = cooperative_groups;
        __global__ void k(const float* x, float* out) {
          auto block = cg::this_thread_block();
          auto tile = cg::tiled_partition<8>(block);
          float sum = cg::reduce(tile, x[block.thread_rank()], cg::plus<float>());
          if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum;
          block.sync();
        }
        extern "C" void go(const float* x, float* out) { k<<<1, 64>>>(x, out); }""")
    x, out = torch.randn(64), torch.zeros(8)
    assert groups(x, out) == ""
    torch.testing.assert_close(out, x.view(8, 8).sum(1))


CHOSEN = """
    template <int FACTOR>
    __global__ void k(const float* x, float* out) { out[threadIdx.x] = FACTOR * x[threadIdx.x]; }
    template <typename Kernel>
    void run(Kernel kernel, const float* x, float* out, int threads) { kernel<<<1, threads>>>(x, out); }
    extern "C" void go(const float* x, float* out, int large, int threads) { BODY; }
"""


@pytest.mark.parametrize(
    "body",
    [
        "auto kernel = large ? k<3> : k<2>; kernel<<<1, threads>>>(x, out)",
        "const auto kernel = large ? &k<3> : &k<2>; kernel<<<1, threads>>>(x, out)",
        "void (*kernel)(const float*, float*) = k<2>; if (large) kernel = k<3>; kernel<<<1, threads>>>(x, out)",
        "decltype(&k<2>) both[] = {k<2>, k<3>}; auto& kernel = both[large]; kernel<<<1, threads>>>(x, out)",
        "run(large ? k<3> : k<2>, x, out, threads)",
        "const auto launch = [&](auto kernel) { kernel<<<1, threads>>>(x, out); }; launch(large ? k<3> : k<2>)",
        "constexpr int TWO = 2; if (large) k<TWO + 1><<<1, threads>>>(x, out); else k<TWO><<<1, threads>>>(x, out)",
    ],
)
def test_a_kernel_may_be_chosen_by_a_variable(kernel, body):
    chosen = kernel(CHOSEN.replace("BODY", body))
    x, out = torch.randn(32), torch.zeros(32)
    for large, factor in ((0, 2.0), (1, 3.0)):
        assert chosen(x, out, large, 32) == ""
        assert torch.equal(out, factor * x)
    # What it does is looked at as with any other launch.
    assert "reads element 32 of a, which has 32 elements (0 to 31)" in chosen(x, out, 0, 33)
    assert chosen.line == 3


@pytest.mark.parametrize("callee", ["kernels[1]", "choose(1)"])
def test_a_launch_needs_a_name(tmp_path, prepared, callee):
    with pytest.raises(MalformedError, match="line 2: before <<< a launch needs the name of a kernel"):
        build(f"void go() {{\n  {callee}<<<1, 1>>>();\n}}", tmp_path, prepared)


@pytest.mark.parametrize(
    "sizes",
    [
        "dim3 blockDim = dim3(16, 2); dim3 gridDim = dim3(3, 2);",
        "dim3 blockDim(16, 2); const dim3 gridDim{3, 2};",
        "const auto [gridDim, blockDim] = Sizes{{3, 2}, {16, 2}};",
        "dim3 gridDim(3, 2), blockDim(16, 2); const int warpSize = 32, blockIdx = warpSize;",
    ],
)
def test_the_host_may_call_its_variables_as_the_built_in_ones(kernel, sizes):
    """As with nvcc: and the launch takes the host's, while a kernel sees its own."""
    named = kernel(f"""struct Sizes {{ dim3 gridDim, blockDim; }};
        __global__ void k(int* out) {{
          const int block = blockIdx.y * gridDim.x + blockIdx.x, thread = threadIdx.y * blockDim.x + threadIdx.x;
          out[block * blockDim.x * blockDim.y + thread] = gridDim.x * 100 + blockDim.x + warpSize;
        }}
        extern "C" void go(int* out) {{ k<<<1, 1>>>(out); {sizes} k<<<gridDim, blockDim>>>(out); }}""")
    out = torch.zeros(200, dtype=torch.int32)
    assert named(out) == ""
    assert out.tolist() == [348] * 192 + [0] * 8


def test_nothing_is_launched_while_the_file_is_loaded(kernel):
    """The emulator's own variables may not be there yet."""
    with pytest.raises(CompileError, match=r"mine\.cu:2:"):
        kernel("""__global__ void k() {}
            static const bool made = (k<<<1, 1>>>(), true);
            extern "C" void go() {}""")


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ("k<<<1, 2048>>>()", "a block has at most 1024 threads"),
        ("k<<<0, 32>>>()", "at least one of each"),
        ("k<<<1, 32, 64 * 1024>>>()", "have to be asked for with cudaFuncSetAttribute"),
        ("k<<<1, 32, 256 * 1024>>>()", "at most 227 KiB"),
    ],
)
def test_a_launch_that_a_gpu_refuses_is_refused(kernel, launch, why):
    bad = kernel(f"""__global__ void k() {{}}
        extern "C" void go() {{
          {launch};
        }}""")
    trouble = bad()
    assert why in trouble
    assert trouble.startswith("k<<<")
    assert (bad.kind, bad.line) == ("LaunchError", 3)


@pytest.mark.parametrize("declared", ["outside", "inside"])
@pytest.mark.parametrize("access", ["all[25] = 7", "out[0] = all[25]", "*(all + 25) = 7", "wide[6].y = 7"])
def test_a_constant_index_beyond_what_the_launch_gave_is_found(kernel, declared, access):
    """The compiler knows where it lies; it asks before the access all the same."""
    array = "extern __shared__ __align__(16) int all[];"
    beyond = kernel(f"""{array if declared == "outside" else ""}
        __global__ void k(int* out) {{
          {array if declared == "inside" else ""}
          int4* wide = reinterpret_cast<int4*>(all);
          wide[0].x = 1;
          {access};
        }}
        extern "C" void go(int* out, int bytes) {{ k<<<1, 1, bytes>>>(out); }}""")
    out = torch.zeros(1, dtype=torch.int32)
    assert beyond(out, 104) == ""
    assert "byte 100 of dynamic shared memory; its launch gave it 100 bytes" in beyond(out, 100)
    assert (beyond.kind, beyond.line) == ("IllegalAccess", 6)


@pytest.mark.parametrize("access", ["all[-1] = 7", "out[0] = all[-1]", "all[58112] = 7", "out[0] = all[60000]"])
def test_a_constant_index_outside_of_all_shared_memory_is_found(kernel, access):
    """What lies there is the emulator's: a kernel neither sees nor changes it."""
    outside = kernel(f"""extern __shared__ int all[];
        __global__ void k(int* out) {{
          {access};
        }}
        extern "C" void go(int* out, int bytes) {{
          cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
          k<<<1, 1, bytes>>>(out);
        }}""")
    assert "dynamic shared memory; its launch gave it 232448 bytes" in outside(
        torch.zeros(1, dtype=torch.int32), 232448
    )
    assert (outside.kind, outside.line) == ("IllegalAccess", 3)


def test_more_shared_memory_can_be_asked_for(kernel):
    large = kernel("""__global__ void k(int* out) {
          extern __shared__ int all[];
          all[25000] = 7;
          *out = all[25000];
        }
        extern "C" void go(int* out) {
          cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 110000);
          k<<<1, 1, 110000>>>(out);
        }""")
    out = torch.zeros(1, dtype=torch.int32)
    assert large(out) == ""
    assert out.item() == 7


LARGE = """
    template <int FACTOR> __global__ void k(int* out) {
      extern __shared__ int all[];
      *out = all[0] = FACTOR;
    }
    template <class T> __global__ void found_by_its_argument(T* out) {
      extern __shared__ int all[];
      *out = all[0] = sizeof(T);
    }
    template <class Kernel> void run(Kernel kernel, int* out, int bytes) { kernel<<<1, 1, bytes>>>(out); }
    extern "C" void go(int* out, int other, int bytes) {
      const auto asks = cudaFuncAttributeMaxDynamicSharedMemorySize;
      BODY
    }
"""


@pytest.mark.parametrize(
    "kernel_that_asks",
    [
        "k<1>",
        "&k<1>",
        "(const void*)k<1>",
        "(void*)&k<1>",
        "reinterpret_cast<const void*>(&k<1>)",
        "pointer",
        "(const void*)pointer",
        "*pointer",
    ],
)
def test_every_kernel_asks_for_its_own_shared_memory(kernel, kernel_that_asks):
    large = kernel(
        LARGE.replace(
            "BODY",
            f"""void (*pointer)(int*) = k<1>;
            cudaFuncSetAttribute({kernel_that_asks}, asks, 50000);
            if (other == 0) k<1><<<1, 1, bytes>>>(out);
            if (other == 1) pointer<<<1, 1, bytes>>>(out);
            if (other == 2) k<2><<<1, 1, bytes>>>(out);
            if (other == 3) run(k<2>, out, bytes);
            if (other == 4) found_by_its_argument<<<1, 1, bytes>>>(out);""",
        )
    )
    out = torch.zeros(1, dtype=torch.int32)
    for same in (0, 1):
        assert large(out.zero_(), same, 50000) == ""
        assert out.item() == 1
    for other in (2, 3, 4):
        assert "have to be asked for with cudaFuncSetAttribute" in large(out.zero_(), other, 50000)
        assert large.kind == "LaunchError"
        assert out.item() == 0


@pytest.mark.parametrize(
    ("asked", "bytes_", "right"),
    [
        ("cudaFuncSetAttribute(found_by_its_argument<int>, asks, 50000);", 50000, True),
        ("cudaFuncSetAttribute(found_by_its_argument<char>, asks, 50000);", 50000, False),
        ("cudaFuncSetAttribute(found_by_its_argument<int>, asks, 50000);", 50004, False),
        # What was said last counts; nobody has to ask for 48 KiB.
        ("for (int n : {90000, 50000}) cudaFuncSetAttribute(found_by_its_argument<int>, asks, n);", 50004, False),
        ("for (int n : {90000, 4}) cudaFuncSetAttribute(found_by_its_argument<int>, asks, n);", 49152, True),
        ("if (cudaFuncSetAttribute(k<1>, asks, 232449) != cudaErrorInvalidValue) return;", 50000, False),
    ],
)
def test_a_kernel_has_the_shared_memory_that_it_asked_for(kernel, asked, bytes_, right):
    large = kernel(LARGE.replace("BODY", f"{asked} found_by_its_argument<<<1, 1, bytes>>>(out);"))
    trouble = large(torch.zeros(1, dtype=torch.int32), 0, bytes_)
    assert (trouble == "") is right
    assert ("have to be asked for with cudaFuncSetAttribute" in trouble) is not right


def test_a_kernel_of_a_macro_has_what_any_kernel_asked_for(kernel):
    """It does not say which one it is: what a GPU takes is never refused."""
    large = kernel("""extern __shared__ int all[];
        #define KERNEL(name) __global__ void __launch_bounds__(32) name(int* out) { *out = all[0] = 7; }
        KERNEL(k)
        extern "C" void go(int* out) {
          cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000);
          k<<<1, 1, 50000>>>(out);
        }""")
    out = torch.zeros(1, dtype=torch.int32)
    assert large(out) == ""
    assert out.item() == 7


BOUNDED = [
    "__global__ void __launch_bounds__(96) k(int* out)",
    "__global__ __launch_bounds__(96) void k(int* out)",
    "__launch_bounds__(96, 2) __global__ void k(int* out)",
    "static void __global__ __launch_bounds__(WARPS * 32) k(int* out)",
    'extern "C" __global__ void __launch_bounds__(int{larger<32, 96>()}, 1, 1) k(int* out)',
    "__global__ void __launch_bounds__(96) k(int* out);\n__global__ void __launch_bounds__(96) k(int* out)",
    "template <int N = 96> __global__ void __launch_bounds__(N) k(int* out)",
    "template <class T>\n__global__ void\n__launch_bounds__(24 * sizeof(T), /* ( */ 1)\nk(T* out)",
    "namespace { __global__ void __launch_bounds__(96) k(int* out, int = int{3}) { out[threadIdx.x] = 1; } }\nvoid f()",
]


@pytest.mark.parametrize("head", BOUNDED)
def test_a_block_has_no_more_threads_than_the_launch_bounds_allow(kernel, head):
    bounded = kernel(f"""constexpr int WARPS = 3;
        template <int A, int B> constexpr int larger() {{ return A > B ? A : B; }}
        {head} {{
          {"" if head.endswith("f()") else "out[threadIdx.x] = 1;"}
        }}
        extern "C" void go(int* out, int x, int y) {{
          k<<<1, dim3(x, y)>>>(out{", 3" if "int = int" in head else ""});
          if (cudaGetLastError() == cudaErrorInvalidValue) out[200] = 1;
        }}""")
    out = torch.zeros(201, dtype=torch.int32)
    assert bounded(out, 48, 2) == ""
    assert out.tolist() == [1] * 48 + [0] * 153
    trouble = bounded(out.zero_(), 97, 1)
    assert trouble.startswith("k<<<(1,1,1), (97,1,1), 0>>> cannot be launched: ")
    assert "its __launch_bounds__ allow 96 threads" in trouble
    assert bounded.kind == "LaunchError"
    assert out.tolist() == [0] * 200 + [1]
    assert "allow 96 threads" in bounded(out, 64, 2)


def test_every_instantiation_has_launch_bounds_of_its_own(kernel):
    bounded = kernel("""template <int N> __global__ void __launch_bounds__(N) k(int* out) { out[threadIdx.x] = N; }
        __global__ void unbounded(int* out) { out[threadIdx.x] = 1; }
        extern "C" void go(int* out, int which, int n) {
          auto kernel = which == 0 ? k<32> : which == 1 ? &k<64> : unbounded;
          kernel<<<1, n>>>(out);
        }""")
    out = torch.zeros(1024, dtype=torch.int32)
    for which, most in enumerate((32, 64, 1024)):
        assert bounded(out, which, most) == ""
        assert "cannot be launched" in bounded(out, which, most + 1)


def test_launch_bounds_that_a_parameter_hides_do_not_count(kernel):
    """In the kernel's body the name means something else."""
    bounded = kernel("""constexpr int n = 64;
        __global__ void __launch_bounds__(n) k(int* out, const int n) { out[threadIdx.x] = n; }
        extern "C" void go(int* out) { k<<<1, 64>>>(out, 5); }""")
    out = torch.zeros(64, dtype=torch.int32)
    assert bounded(out) == ""
    assert out.tolist() == [5] * 64


@pytest.mark.quick
@pytest.mark.parametrize(
    ("launch", "error"),
    [
        ("k<<<1, 1, 50000>>>()", "cudaErrorInvalidValue"),
        ("k<<<1, 1, 48000>>>()", "cudaErrorInvalidValue"),
        ("k<<<1, 65>>>()", "cudaErrorInvalidValue"),
        ("k<<<1, 1025>>>()", "cudaErrorInvalidValue"),
        ("k<<<0, 1>>>()", "cudaErrorInvalidValue"),
        ("k<<<1, 64>>>()", "cudaErrorLaunchFailure"),
    ],
)
def test_a_launch_answers_as_cuda_does(kernel, launch, error):
    bad = kernel(f"""__global__ void __launch_bounds__(64) k() {{ __shared__ float used[512]; __trap(); }}
        extern "C" void go(int* out) {{
          {launch};
          *out = cudaPeekAtLastError() == {error} && cudaGetErrorString({error}) != std::string("an error");
        }}""")
    out = torch.zeros(1, dtype=torch.int32)
    assert bad(out)
    assert out.item() == 1


@pytest.mark.parametrize(
    ("asked", "dynamic", "why"),
    [
        (0, 16 * 1024, ""),
        (0, 16 * 1024 + 4, "a block has 49152, more only after cudaFuncSetAttribute"),
        (195 * 1024, 195 * 1024, ""),
        (195 * 1024 + 4, 195 * 1024 + 4, "a block has 232448."),
    ],
)
def test_shared_variables_and_what_a_launch_asks_for_stand_side_by_side(kernel, asked, dynamic, why):
    both = kernel(f"""__global__ void k(float* out) {{
          __shared__ float fixed[8192];
          extern __shared__ float more[];
          fixed[threadIdx.x] = more[threadIdx.x] = 1.0f;
          out[threadIdx.x] = fixed[threadIdx.x] + more[threadIdx.x];
        }}
        extern "C" void go(float* out) {{
          if ({asked}) cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, {asked});
          k<<<1, 32, {dynamic}>>>(out);
        }}""")
    out = torch.zeros(32)
    trouble = both(out)
    assert (trouble == "") if not why else (why in trouble)
    assert why or out.tolist() == [2.0] * 32


def test_too_many_shared_variables_are_refused(kernel):
    large = kernel("""__global__ void k() { __shared__ float a[8192]; __shared__ float b[4097]; }
        extern "C" void go() { k<<<1, 1>>>(); }""")
    assert "49156 bytes of __shared__ variables" in large()


def test_two_libraries_of_one_process_do_not_share_an_emulator(prepared, tmp_path):
    source = """__global__ void k(int* out) { if (*out) __trap(); *out = 1; }
        extern "C" void go(int* out) { k<<<1, 1>>>(out); }"""
    first, second = (Kernel(source, folder, prepared) for folder in _folders(tmp_path))
    assert "__trap()" in first(torch.ones(1, dtype=torch.int32))
    assert second._library.cuda_emulator_trouble() == b""
    assert first._library.cuda_emulator_trouble() != b""


def _folders(folder: Path) -> list[Path]:
    for name in ("one", "two"):
        (folder / name).mkdir()
    return [folder / "one", folder / "two"]


def test_after_a_failure_nothing_more_is_launched(kernel):
    two = kernel("""__global__ void bad() { __trap(); }
        __global__ void good(int* out) { *out = 1; }
        extern "C" void go(int* out, int first) {
          if (first) bad<<<1, 1>>>();
          good<<<1, 1>>>(out);
          if (cudaGetLastError() != cudaSuccess) out[1] = 1;
        }""")
    out = torch.zeros(2, dtype=torch.int32)
    assert "__trap() at line 1" in two(out, 1)
    assert out.tolist() == [0, 1]
    assert two(out, 0) == ""
    assert out.tolist() == [1, 1]


@pytest.mark.quick
def test_an_error_names_the_students_own_line(tmp_path, prepared):
    with pytest.raises(CompileError, match=r"mine\.cu:3:\d+: error: 'nonsense' was not declared"):
        build("// one\n__global__ void k() {\n  nonsense = 1;\n}\n", tmp_path, prepared, filename="mine.cu")


def test_a_backslash_at_the_files_end_takes_nothing_of_what_follows(tmp_path, prepared):
    built = build(
        "int mine() { return 3; }\n// the end \\", tmp_path, prepared, entry='extern "C" int f() { return mine(); }'
    )
    assert ctypes.CDLL(str(built)).f() == 3
    with pytest.raises(CompileError, match=r"<entry>:1:\d+: error: 'theirs' was not declared"):
        build("int mine() { return 3; }\\", tmp_path, prepared, entry="int f() { return theirs(); }")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('int a;\nasm(".global b");\n', r"line 2: inline PTX"),
        ("#include <cub/cub.cuh>\nusing S = cub::BlockScan<int, 64>;\n", r"line 2: `cub` \(CUB\)"),
        ('#include "cutlass/gemm.h"\ncutlass::half_t h;\n', r"line 2: `cutlass` \(CUTLASS\)"),
        ("void f() {\n\n  cudaLaunchCooperativeKernel();\n}", r"line 3: .*cooperative launches"),
    ],
)
def test_what_only_a_gpu_has_is_refused_by_name(tmp_path, prepared, source, what):
    with pytest.raises(UnsupportedError, match=what):
        build(source, tmp_path, prepared)


@pytest.mark.quick
@pytest.mark.parametrize(
    "source",
    [
        '__attribute__((no_sanitize("kernel-address"))) void f() {}',
        '__attribute((__no_sanitize__("all"))) void f() {}',
        "__attribute__((no_sanitize_address)) void f() {}",
        "__attribute__((__no_address_safety_analysis__)) void f() {}",
        '[[gnu::no_sanitize("kernel-address")]] void f() {}',
        '[[using gnu: __no_sanitize__("bounds")]] void f() {}',
        '[[clang::no_sanitize("address")]] void f() {}',
        '#define OFF __attribute__((no_sanitize("kernel-address")))\nOFF void f() {}',
        '#define OFF \\\n [[gnu::no_sanitize("kernel-address")]]\nOFF void f() {}',
        "CUDA_EMULATOR_UNCHECKED void f() {}",
        "#define OFF CUDA_EMULATOR_UNCHECKED\nOFF void f() {}",
        '#pragma clang attribute push(__attribute__((no_sanitize("address"))), apply_to=function)',
    ],
)
def test_no_part_of_a_file_is_kept_from_being_checked(tmp_path, prepared, source: str) -> None:
    with pytest.raises(UnsupportedError, match=r"line \d: what is not to be checked"):
        build(source, tmp_path, prepared)
    # Where it is no code, or a GPU's, it may stand.
    build(f"/* {source.replace('*/', '')} */\n#ifndef CUDA_EMULATOR\n{source}\n#endif\n", tmp_path, prepared)


@pytest.mark.parametrize(
    "source",
    [
        '#define PASTE(a, b) a##b\n__attribute__((PASTE(no_sani, tize)("kernel-address"))) void f() {}',
        "#define PASTE(a, b) a##b\n[[gnu::PASTE(no_sanitize_, address)]] void f() {}",
        "no_sani\\\ntize",
    ],
)
def test_nor_is_one_by_a_word_that_is_put_together_from_pieces(tmp_path, prepared, source: str) -> None:
    with pytest.raises(UnsupportedError, match="what is not to be checked"):
        build(source, tmp_path, prepared)


PTX = 'asm("trap;");\n'


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (f"#ifndef CUDA_EMULATOR\n{PTX}#if X\n{PTX}#else\n{PTX}#endif\n{PTX}#endif\n", 0),
        (f"#ifdef CUDA_EMULATOR\nint a;\n#else\n#include <cuda/barrier>\n{PTX}#endif\n", 0),
        (f"# if ! defined( CUDA_EMULATOR )\n{PTX}# endif\n{PTX}", 4),
        (f"#ifndef CUDA_EMULATOR\n#else\n{PTX}#endif\n", 3),
        (f"#ifdef CUDA_EMULATOR\n{PTX}#endif\n", 2),
        (f"#ifndef CUDA_EMULATOR\n#elif 1\n{PTX}#endif\n", 3),
        (f"#ifndef OTHER\n{PTX}#endif\n", 2),
        # Nor is what no condition lets through, whatever it asks for.
        (f"#if !defined(CUDA_EMULATOR) && X\n{PTX}#endif\n", 0),
        (f"#if 0\n{PTX}#include <cub/cub.cuh>\n#endif\n", 0),
        (f"#if __CUDA_ARCH__ < 700\n{PTX}#elif defined(__CUDACC__)\n{PTX}#endif\n", 4),
        (f"#if __has_include(<cub/cub.cuh>)\n{PTX}#endif\n", 0),
        # Comments at a directive, and around its words, are what they are to a compiler.
        (f"#ifndef CUDA_EMULATOR\n{PTX}#endif//\n{PTX}", 4),
        (f"#ifndef CUDA_EMULATOR//x\n{PTX}#else//x\n#endif/*x*/\n{PTX}", 5),
        (f"#ifndef CUDA_EMULATOR\n#else/*x\n*/\n{PTX}#endif\n", 4),
        (f"#ifndef/**/CUDA_EMULATOR\n{PTX}#/* x */endif\n{PTX}", 4),
        (f"#if/**/!defined /*x*/ CUDA_EMULATOR // x\n{PTX}/*x*/ #endif\n{PTX}", 4),
        # Nor does it matter where on its line a directive begins, or whether its line is continued.
        (f"int a;\n  #ifndef CUDA_EMULATOR\n{PTX}\n\t# endif\n{PTX}", 6),
        (f"#ifndef \\\n CUDA_EMULATOR\n{PTX}#end\\\nif\n{PTX}", 6),
        (f"#ifndef \\ \t\n CUDA_EMULATOR\n{PTX}#end\\\v\f\nif\n{PTX}", 6),
        (f"#ifndef \\\r\n CUDA_EMULATOR\r\n{PTX}#end\\ \r\nif\r\n{PTX}", 6),
        # No comment begins in a string.
        (f'#define A "/*"\n{PTX}#define B "*/"\n', 2),
    ],
)
def test_what_a_file_keeps_for_gpus_is_not_refused(tmp_path, prepared, source: str, line: int) -> None:
    found = 0
    try:
        build(source, tmp_path, prepared)
    except UnsupportedError as error:
        found = error.line
    assert found == line


@pytest.mark.parametrize(
    "splice", ["\\\n", "\\ \n", "\\ \t\v\f\n", "\\\0\n", "\\\\\n", "\\\r\n", "\\ \r\n", "\\\r"], ids=repr
)
def test_a_kernel_in_a_comment_that_goes_on_is_no_code(tmp_path, prepared, splice):
    hidden = '__global__ void k(float* a) { asm("trap;"); a[0] = 2; }'
    source = f"""// The old one: {splice}{hidden}
        __global__ void k(float* a) {{ a[0] = 1; }}
        extern "C" void go(float* a) {{ k<<<1, 1>>>(a); }}
        """
    a = torch.zeros(1)
    # To g++ it would be a second one.
    assert Kernel(source, tmp_path, prepared)(a) == ""
    assert a.tolist() == [1]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (f"// a \\ b\n{PTX}", 2),
        (f"// a \\b \n{PTX}", 2),
        (f"// a \\ \n\n{PTX}", 3),
        (f"// a \\\r\r\n{PTX}", 3),
        (f"// a\r{PTX}", 2),
        (f"// a\r\n{PTX}", 2),
        # Strings and preprocessor lines go on as comments do.
        (f'const char* a = "\\ \nasm";\n{PTX}', 3),
        (f'const char* a = "\\\r\nasm";\r\n{PTX}', 3),
        (f'const char* a = "\\\\ \nasm";\n{PTX}', 3),
        (f"const char a = '\\ \na';\n{PTX}", 3),
        (f"#define A \\ \n {PTX}{PTX}", 3),
        (f"#define A \\\r\n {PTX}{PTX}", 3),
        # A raw string needs no splice, and a backslash is one of its characters.
        (f'const char* a = R"(\\ \n)";\n{PTX}', 3),
    ],
)
def test_a_line_goes_on_where_it_does_for_the_compiler(tmp_path, prepared, source: str, line: int) -> None:
    with pytest.raises(UnsupportedError, match=f"line {line}: inline PTX"):
        build(source, tmp_path, prepared)


def test_a_file_with_a_branch_for_gpus_runs_the_other_one(tmp_path, prepared):
    source = (
        '__global__ void k(float* a) {\n#ifndef CUDA_EMULATOR\n  asm("trap;");\n#else\n'
        "  a[threadIdx.x] = 7;\n#endif\n}\n"
        'extern "C" void go(float* a) { k<<<1, 4>>>(a); }\n'
    )
    a = torch.zeros(4)
    assert Kernel(source, tmp_path, prepared)(a) == ""
    assert a.tolist() == [7, 7, 7, 7]


WRONG = [
    ("out[i] = 1.0f;", "IllegalAccess", "thread (1,0,0) of block (2,0,0) of k writes element 65 of a, which has 65 "),
    ("if (i == 3) out[i - 4] = 1.0f;", "IllegalAccess", "writes element -1 of a, before its first one"),
    ("if (out[i] == 1.0f) out[0] = 2.0f;", "IllegalAccess", "reads element 65 of a"),
    ("if (i == 0) *(float*)nullptr = 1.0f;", "IllegalAccess", "writes through a null pointer"),
    ("if (i == 1) *(float2*)&out[i] = make_float2(1, 2);", "MisalignedAddress", "element 1 of a as 'struct float2'"),
    ("__shared__ float s[32]; s[threadIdx.x + 1] = 1.0f;", "IllegalAccess", "takes index 32 of 'float [32]'"),
    (
        "extern __shared__ float d[]; d[threadIdx.x] = 1.0f;",
        "IllegalAccess",
        "byte 64 of dynamic shared memory; its launch",
    ),
    ("float v = __ldg(&out[i + 100]); if (i < n) out[i] = v;", "IllegalAccess", "reads element 100 of a"),
    ("atomicAdd(&out[i], 1.0f);", "IllegalAccess", "element 65 of a"),
    ("assert(i < n);", "AssertionFailed", "assert(i < n) does not hold in thread (1,0,0) of block (2,0,0) of k"),
]
WAITING = ["atomicAdd(&out[0], 0.0f)", "*(volatile float*)out", "atomicCAS((int*)out, 1, 2)"]


@pytest.mark.quick
@pytest.mark.parametrize(("body", "kind", "says"), WRONG)
def test_what_a_thread_may_not_do_is_told_with_its_line(kernel, body, kind, says):
    checked = kernel(f"""__global__ void k(float* out, int n) {{ int i = blockIdx.x * 32 + threadIdx.x;
          {body}
        }}
        extern "C" void go(float* out, int n) {{ k<<<3, 32, 64>>>(out, n); }}""")
    assert says in checked(torch.zeros(65), 65)
    assert (checked.kind, checked.line) == (kind, 2)


@pytest.mark.quick
@pytest.mark.parametrize("condition", WAITING)
def test_a_block_that_waits_for_another_one_is_told_so(kernel, condition):
    waits = kernel(f"""__global__ void k(float* out) {{
          if (blockIdx.x == 0) while ({condition} == 0) {{ }} else out[0] = 1.0f;
        }}
        extern "C" void go(float* out) {{ k<<<2, 32>>>(out); }}""")
    assert "block (0,0,0) of k: its threads wait for something" in waits(torch.zeros(1))
    assert waits.kind == "WaitsForAnotherBlock"
    assert waits(torch.zeros(1), order=REVERSE) == ""


def test_memory_of_the_file_itself_is_its_to_touch_until_it_is_freed(kernel):
    scratch = kernel("""__device__ float global[64];
        __constant__ float factor[1];
        __global__ void k(float* scratch, float* out) {
          float local[64];
          for (int i = 0; i < 64; ++i) local[i] = i;
          global[threadIdx.x] = local[threadIdx.x] * factor[0];
          scratch[threadIdx.x] = global[threadIdx.x];
          out[threadIdx.x] = scratch[threadIdx.x];
        }
        extern "C" void go(float* out, int late) {
          float two = 2.0f, *scratch;
          cudaMemcpyToSymbol(factor, &two, sizeof two);
          cudaMalloc(&scratch, 64 * sizeof(float));
          if (late) cudaFree(scratch);
          k<<<1, 64>>>(scratch, out);
          if (!late) cudaFree(scratch);
        }""")
    out = torch.zeros(64)
    assert scratch(out, 0) == ""
    assert torch.equal(out, 2 * torch.arange(64.0))
    assert "at an address that is no device memory" in scratch(out, 1) or "element" in scratch(out, 1)
    assert scratch.line == 7


def test_variables_of_the_file_may_be_made_when_it_is_loaded(kernel):
    dynamic = kernel("""#include <vector>
        static const std::vector<float> table = {1.0f, 2.0f};
        static const int count = printf("%s", "");
        extern "C" void go(float* out) { cudaMemcpy(out, table.data(), 8, cudaMemcpyHostToDevice); }""")
    out = torch.zeros(2)
    assert dynamic(out) == ""
    assert out.tolist() == [1.0, 2.0]


def test_a_copy_beyond_the_end_is_told(kernel):
    copies = kernel("""extern "C" void go(float* out, int n) {
          float host[100] = {};
          cudaMemcpy(out, host, n * sizeof(float), cudaMemcpyHostToDevice);
        }""")
    assert copies(torch.zeros(100), 100) == ""
    assert "a cudaMemcpy to the device of 400 bytes begins at element 0 of a" in copies(torch.zeros(99), 100)


def test_a_copy_of_a_few_bytes_is_no_store_of_the_hosts(kernel):
    """The compiler would make a store of it, which the host may not do."""
    sets = kernel("""extern "C" void go(float* out) {
          const float one = 1.0f;
          cudaMemset(out, 0, 2 * sizeof one);
          cudaMemcpy(out + 1, &one, sizeof one, cudaMemcpyHostToDevice);
        }""")
    out = torch.full((2,), torch.nan)
    assert sets(out) == ""
    assert out.tolist() == [0.0, 1.0]


@pytest.mark.quick
def test_blocks_go_backwards_in_the_reverse_order(kernel):
    last = kernel("""__global__ void k(int* out) { if (threadIdx.x == 0) *out = blockIdx.x; }
        extern "C" void go(int* out) { k<<<5, 32>>>(out); }""")
    out = torch.zeros(1, dtype=torch.int32)
    assert [(last(out, order=order), out.item())[1] for order in (FORWARD, REVERSE)] == [4, 0]


@pytest.mark.parametrize(("barrier", "right"), [("__syncthreads();", 3), ("", 0)])
def test_a_warp_that_runs_ahead_shows_that_shared_memory_is_used_again_too_early(kernel, barrier, right):
    source = """__global__ void k(const float* x, float* out) {
          __shared__ float parts[8];
          float sums[2];
          for (int round = 0; round < 2; ++round) {
            float v = x[threadIdx.x] * (round + 1);
            for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
            if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
            __syncthreads();
            sums[round] = 0.0f;
            for (int i = 0; i < 8; ++i) sums[round] += parts[i];
            BARRIER
          }
          out[threadIdx.x] = sums[0] + sums[1];
        }
        extern "C" void go(const float* x, float* out) { k<<<1, 256>>>(x, out); }"""
    x = torch.arange(256.0)
    summed, found = kernel(source.replace("BARRIER", barrier)), 0
    for order in (FORWARD, REVERSE, SHUFFLED):
        out = torch.zeros(256)
        assert summed(x, out, order=order) == ""
        found += bool((out == 3 * x.sum()).all())
    assert found == right
