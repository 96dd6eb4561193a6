// Purist: a thread for every element of a two-dimensional grid, and everything between load and store in double.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <stdint.h>

__device__ void mulhilo(uint32_t a, uint32_t b, uint32_t* hi, uint32_t* lo) {
  uint64_t product = (uint64_t)a * (uint64_t)b;
  *hi = (uint32_t)(product >> 32);
  *lo = (uint32_t)product;
}

// One 16-bit number of element e: word (e % 8) / 2, half e % 2.
__device__ uint32_t random16(int64_t e, uint64_t seed) {
  uint32_t ctr[4] = {(uint32_t)(e / 8), 0, 0, 0};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; round++) {
    uint32_t hi0, lo0, hi1, lo1;
    mulhilo(0xD2511F53u, ctr[0], &hi0, &lo0);
    mulhilo(0xCD9E8D57u, ctr[2], &hi1, &lo1);
    uint32_t next[4] = {hi1 ^ ctr[1] ^ key[0], lo1, hi0 ^ ctr[3] ^ key[1], lo0};
    for (int i = 0; i < 4; i++) ctr[i] = next[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  uint32_t word = 0;
  for (int i = 0; i < 4; i++)
    if ((e % 8) / 2 == i) word = ctr[i];
  return e % 2 == 0 ? word & 0xffffu : word >> 16;
}

template <typename T>
__global__ void kernel(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, double p,
                       uint64_t seed) {
  int64_t col = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || col >= cols) return;

  int64_t e = row * cols + col;
  bool keep = (double)random16(e, seed) >= p * 65536.0;
  double y = 0.0;
  if (keep) {
    double v = (double)(float)x[e] + (double)(float)bias[col];
    y = v * 0.5 * erfc(-v / sqrt(2.0)) / (1.0 - p);
  }
  out[e] = (T)(float)y;
  mask[e] = keep ? 1 : 0;
}

template <typename T>
void bias_gelu_dropout(const T* x, const T* bias, T* out, uint8_t* mask, int64_t rows, int64_t cols, float p,
                       int64_t seed, cudaStream_t stream) {
  dim3 threads(32, 8);
  dim3 blocks((unsigned)((cols + 31) / 32), (unsigned)((rows + 7) / 8));
  kernel<T><<<blocks, threads, 0, stream>>>(x, bias, out, mask, rows, cols, (double)p, (uint64_t)seed);
}
