// Wrong: the weights of a token's choices are taken over all experts.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

// The number of larger logits, or equal ones that stand before, is an expert's place in the token's order: a thread for each.
__global__ void rank_kernel(const float* logits, int32_t* chosen, int64_t tokens, int experts, int top) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= tokens * experts) return;
  const int64_t token = at / experts;
  const int mine = static_cast<int>(at % experts);
  int place = 0;
  for (int other = 0; other < experts; ++other) {
    const float theirs = logits[token * experts + other];
    place += theirs > logits[at] || (theirs == logits[at] && other < mine);
  }
  if (place < top) chosen[token * top + place] = mine;
}

constexpr int WARPS = 4;

template <typename T>
__device__ float warp_dot(const T* a, const T* b, int size) {
  float sum = 0.0f;
  for (int i = threadIdx.x % 32; i < size; i += 32) sum += static_cast<float>(a[i]) * static_cast<float>(b[i]);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  return sum;
}

template <typename T>
__global__ void up_kernel(const T* x, const T* gate_up, const int32_t* chosen, T* y, int64_t pairs, int top, int hidden, int inner) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  if (at >= pairs * inner) return;
  const int64_t pair = at / inner, row = static_cast<int64_t>(chosen[pair]) * 2 * inner + at % inner;
  const T* const own = x + pair / top * hidden;
  const float gate = warp_dot(own, gate_up + row * hidden, hidden), value = warp_dot(own, gate_up + (row + inner) * hidden, hidden);
  if (threadIdx.x % 32 == 0) y[at] = static_cast<T>(gate / (1.0f + expf(-gate)) * value);
}

template <typename T>
__global__ void down_kernel(const T* y, const T* down, const float* logits, const int32_t* chosen, T* out, int64_t tokens,
                            int experts, int top, int hidden, int inner) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
  if (at >= tokens * hidden) return;
  const int64_t token = at / hidden;
  const float* const own = logits + token * experts;
  const int32_t* const found = chosen + token * top;
  float total = 0.0f, sum = 0.0f;
  for (int other = 0; other < experts; ++other) total += expf(own[other] - own[found[0]]);
  for (int j = 0; j < top; ++j) {
    const float power = expf(own[found[j]] - own[found[0]]);
    sum += power * warp_dot(y + (token * top + j) * inner, down + (static_cast<int64_t>(found[j]) * hidden + at % hidden) * inner, inner);
  }
  if (threadIdx.x % 32 == 0) out[at] = static_cast<T>(sum / total);
}

template <typename T>
void fused_moe(const T* x, const float* logits, const T* gate_up, const T* down, int32_t* chosen, T* out, int64_t tokens,
               int64_t experts, int64_t top, int64_t hidden, int64_t inner, cudaStream_t stream) {
  T* y = nullptr;
  if (cudaMallocAsync(&y, tokens * top * inner * sizeof(T), stream) != cudaSuccess) return;
  const auto blocks = [](int64_t size, int64_t part) { return static_cast<unsigned>((size + part - 1) / part); };
  const int e = static_cast<int>(experts), t = static_cast<int>(top), h = static_cast<int>(hidden), i = static_cast<int>(inner);
  rank_kernel<<<blocks(tokens * experts, 128), 128, 0, stream>>>(logits, chosen, tokens, e, t);
  up_kernel<<<blocks(tokens * top * inner, WARPS), 32 * WARPS, 0, stream>>>(x, gate_up, chosen, y, tokens * top, t, h, i);
  down_kernel<<<blocks(tokens * hidden, WARPS), 32 * WARPS, 0, stream>>>(y, down, logits, chosen, out, tokens, e, t, h, i);
  cudaFreeAsync(y, stream);
}
