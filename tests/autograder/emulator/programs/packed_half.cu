#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <float.h>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#define WARP_SIZE 32
#define INT4(value) (reinterpret_cast<int4*>(&(value))[0])
#define FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])
#define HALF2(value) (reinterpret_cast<half2*>(&(value))[0])
#define BFLOAT2(value) (reinterpret_cast<__nv_bfloat162*>(&(value))[0])
#define LDST128BITS(value) (reinterpret_cast<float4*>(&(value))[0])
#define CP_ASYNC_COMMIT_GROUP() asm volatile("cp.async.commit_group;\n" ::)
#define CP_ASYNC_CG(dst, src, bytes) asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;\n" ::"r"(dst), "l"(src), "n"(bytes))
__device__ __forceinline__ void unused_copy(void* s, const void* g) {
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(s));
  CP_ASYNC_CG(at, g, 16);
  CP_ASYNC_COMMIT_GROUP();
}
template <const int kWarpSize = WARP_SIZE>
__device__ __forceinline__ float warp_reduce_sum(float val) {
#pragma unroll
  for (int mask = kWarpSize >> 1; mask >= 1; mask >>= 1) val += __shfl_xor_sync(0xffffffff, val, mask);
  return val;
}
__global__ void elementwise_add_f16x8_pack_kernel(half* a, half* b, half* c, int N) {
  int idx = 8 * (blockIdx.x * blockDim.x + threadIdx.x);
  half pack_a[8], pack_b[8], pack_c[8];
  if ((idx + 7) < N) {
    LDST128BITS(pack_a[0]) = LDST128BITS(a[idx]);
    LDST128BITS(pack_b[0]) = LDST128BITS(b[idx]);
#pragma unroll
    for (int i = 0; i < 8; i += 2) HALF2(pack_c[i]) = __hadd2(HALF2(pack_a[i]), HALF2(pack_b[i]));
    LDST128BITS(c[idx]) = LDST128BITS(pack_c[0]);
  } else {
    for (int i = 0; idx + i < N; i++) c[idx + i] = __hadd(a[idx + i], b[idx + i]);
  }
}
template <typename T>
__global__ void plain(const T* a, const T* b, T* c, int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (warp_reduce_sum(1.0f) != 32.0f) return;
  if (idx < N) c[idx] = a[idx] + b[idx];
}
static bool aligned(const void* p) { return (reinterpret_cast<uintptr_t>(p) & 15) == 0; }

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  if constexpr (std::is_same_v<T, half>) {
    if (aligned(x) && aligned(y) && aligned(out)) {
      elementwise_add_f16x8_pack_kernel<<<(n + 2047) / 2048, 256, 0, stream>>>((half*)x, (half*)y, out, n);
      return;
    }
  }
  plain<T><<<dim3((n + 255) / 256), dim3(256), 0, stream>>>(x, y, out, (int)n);
}
