// Four kernels kept in one file as a record of the way; the last, a block per row with an online pass, is launched.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <float.h>
#include <math.h>
#include <stdint.h>

// kernel 1: port of the loop on the CPU, a thread per row
template <typename T>
__global__ void softmax_forward_kernel1(T* out, const T* inp, int64_t N, int64_t C, int64_t ldo, int64_t ldi) {
  int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  const T* inp_row = inp + i * ldi;
  T* out_row = out + i * ldo;
  float maxval = -INFINITY;
  for (int64_t j = 0; j < C; j++) maxval = fmaxf(maxval, (float)inp_row[j]);
  double sum = 0.0;
  for (int64_t j = 0; j < C; j++) sum += expf((float)inp_row[j] - maxval);
  for (int64_t j = 0; j < C; j++) out_row[j] = (T)(expf((float)inp_row[j] - maxval) / (float)sum);
}

// kernel 2: a block per row, trees in shared memory
template <typename T>
__global__ void softmax_forward_kernel2(T* out, const T* inp, int64_t C, int64_t ldo, int64_t ldi) {
  extern __shared__ float shared[];
  int tid = threadIdx.x, block_size = blockDim.x;
  const T* x = inp + blockIdx.x * ldi;
  T* y = out + blockIdx.x * ldo;
  float maxval = -INFINITY;
  for (int64_t i = tid; i < C; i += block_size) maxval = fmaxf(maxval, (float)x[i]);
  shared[tid] = maxval;
  __syncthreads();
  for (int stride = block_size / 2; stride >= 1; stride /= 2) {
    if (tid < stride) shared[tid] = fmaxf(shared[tid], shared[tid + stride]);
    __syncthreads();
  }
  float offset = shared[0];
  __syncthreads();
  float sumval = 0.0f;
  for (int64_t i = tid; i < C; i += block_size) sumval += expf((float)x[i] - offset);
  shared[tid] = sumval;
  __syncthreads();
  for (int stride = block_size / 2; stride >= 1; stride /= 2) {
    if (tid < stride) shared[tid] += shared[tid + stride];
    __syncthreads();
  }
  float sum = shared[0];
  for (int64_t i = tid; i < C; i += block_size) y[i] = (T)(expf((float)x[i] - offset) / sum);
}

// kernel 3: a warp per row, no shared memory
template <typename T>
__global__ void softmax_forward_kernel3(T* out, const T* inp, int64_t C, int64_t ldo, int64_t ldi) {
  int lane = threadIdx.x;
  const T* x = inp + blockIdx.x * ldi;
  T* y = out + blockIdx.x * ldo;
  float maxval = -INFINITY;
  for (int64_t i = lane; i < C; i += 32) maxval = fmaxf(maxval, (float)x[i]);
  for (int o = 16; o > 0; o /= 2) maxval = fmaxf(maxval, __shfl_xor_sync(0xFFFFFFFF, maxval, o));
  float sum = 0.0f;
  for (int64_t i = lane; i < C; i += 32) sum += expf((float)x[i] - maxval);
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xFFFFFFFF, sum, o);
  for (int64_t i = lane; i < C; i += 32) y[i] = (T)(expf((float)x[i] - maxval) / sum);
}

struct SumMax {
  float maxval;
  float sum;
};

__device__ __forceinline__ SumMax join(SumMax a, SumMax b) {
  bool a_bigger = a.maxval > b.maxval;
  SumMax bigger = a_bigger ? a : b;
  SumMax smaller = a_bigger ? b : a;
  // Both may still be empty; then the difference of the two infinities must not be taken.
  if (smaller.maxval == -INFINITY) return bigger;
  bigger.sum += smaller.sum * expf(smaller.maxval - bigger.maxval);
  return bigger;
}

// kernel 4: a block per row, maximum and sum in one pass, and a second pass that writes
template <typename T, int UNROLL>
__global__ void __launch_bounds__(1024)
    softmax_forward_kernel4(T* __restrict__ out, const T* __restrict__ inp, int64_t C, int64_t ldo, int64_t ldi) {
  __shared__ SumMax of_warps[32];
  int tid = threadIdx.x, warp = tid / 32, lane = tid % 32, num_warps = blockDim.x / 32;
  const T* x = inp + blockIdx.x * ldi;
  T* y = out + blockIdx.x * ldo;

  SumMax sm = {-INFINITY, 0.0f};
  for (int64_t i = tid; i < C; i += (int64_t)blockDim.x * UNROLL) {
    float reg[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      int64_t j = i + (int64_t)u * blockDim.x;
      reg[u] = j < C ? (float)x[j] : -INFINITY;
    }
    float top = reg[0];
#pragma unroll
    for (int u = 1; u < UNROLL; u++) top = fmaxf(top, reg[u]);
    if (top == -INFINITY) continue;
    float maxval = fmaxf(sm.maxval, top), add = 0.0f;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) add += expf(reg[u] - maxval);
    sm.sum = sm.sum * expf(sm.maxval - maxval) + add;
    sm.maxval = maxval;
  }
  for (int o = 16; o > 0; o /= 2) {
    SumMax other;
    other.maxval = __shfl_xor_sync(0xFFFFFFFF, sm.maxval, o);
    other.sum = __shfl_xor_sync(0xFFFFFFFF, sm.sum, o);
    sm = join(sm, other);
  }
  if (lane == 0) of_warps[warp] = sm;
  __syncthreads();
  sm = of_warps[0];
  for (int w = 1; w < num_warps; w++) sm = join(sm, of_warps[w]);

  float norm = 1.0f / sm.sum;
  for (int64_t i = tid; i < C; i += (int64_t)blockDim.x * UNROLL) {
    float reg[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      int64_t j = i + (int64_t)u * blockDim.x;
      reg[u] = j < C ? (float)x[j] : 0.0f;
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      int64_t j = i + (int64_t)u * blockDim.x;
      if (j < C) y[j] = (T)(expf(reg[u] - sm.maxval) * norm);
    }
  }
}

template <typename T>
void softmax(const T* x, T* out, int64_t rows, int64_t cols, int64_t x_row_stride, int64_t out_row_stride,
             cudaStream_t stream) {
  const int kernel_num = 4;
  const unsigned N = (unsigned)rows;
  if (kernel_num == 1) {
    softmax_forward_kernel1<T><<<(N + 63) / 64, 64, 0, stream>>>(out, x, rows, cols, out_row_stride, x_row_stride);
  } else if (kernel_num == 2) {
    softmax_forward_kernel2<T><<<N, 256, 256 * sizeof(float), stream>>>(out, x, cols, out_row_stride, x_row_stride);
  } else if (kernel_num == 3) {
    softmax_forward_kernel3<T><<<N, 32, 0, stream>>>(out, x, cols, out_row_stride, x_row_stride);
  } else {
    int block_size = cols > 16384 ? 1024 : cols > 1024 ? 256 : 64;
    softmax_forward_kernel4<T, 8><<<N, block_size, 0, stream>>>(out, x, cols, out_row_stride, x_row_stride);
  }
}
