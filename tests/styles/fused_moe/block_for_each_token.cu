// One block does everything for one token: choice, softmax, both products, sum. No scratch memory, no second launch.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>

#define BLOCK 128
#define CHUNK 256
#define FOR_LANES(i, n) for (int i = threadIdx.x; i < (n); i += BLOCK)

template <typename scalar_t>
__global__ void moe_token(const scalar_t* __restrict__ x, const float* __restrict__ logits, const scalar_t* __restrict__ w13,
                          const scalar_t* __restrict__ w2, int32_t* __restrict__ idx, scalar_t* __restrict__ out, int E, int K, int H,
                          int I) {
  extern __shared__ float smem[];  // H inputs, H sums
  float *xs = smem, *acc = smem + H;
  __shared__ float ys[CHUNK], prob[8];
  __shared__ int who[8];
  const size_t t = blockIdx.x;
  FOR_LANES(h, H) {
    xs[h] = float(x[t * H + h]);
    acc[h] = 0.f;
  }
  if (threadIdx.x == 0) {
    const float* l = logits + t * E;
    for (int k = 0; k < K; k++) {
      int best = -1;
      float value = -FLT_MAX;
      for (int e = 0; e < E; e++) {
        bool used = false;
        for (int j = 0; j < k; j++) used = used || who[j] == e;
        if (!used && (best < 0 || l[e] > value)) { best = e; value = l[e]; }
      }
      who[k] = best;
      prob[k] = value;
      idx[t * K + k] = best;
    }
    float z = 0.f;
    const float m = prob[0];
    for (int k = 0; k < K; k++) z += (prob[k] = expf(prob[k] - m));
    for (int k = 0; k < K; k++) prob[k] /= z;
  }
  __syncthreads();
  for (int k = 0; k < K; k++) {
    const scalar_t* gate = w13 + size_t(who[k]) * 2 * I * H;
    const scalar_t* up = gate + size_t(I) * H;
    const scalar_t* back = w2 + size_t(who[k]) * H * I;
    for (int c = 0; c < I; c += CHUNK) {
      const int n = min(CHUNK, I - c);
      FOR_LANES(i, n) {
        float g = 0.f, u = 0.f;
        for (int h = 0; h < H; h++) {
          g = fmaf(xs[h], float(gate[size_t(c + i) * H + h]), g);
          u = fmaf(xs[h], float(up[size_t(c + i) * H + h]), u);
        }
        ys[i] = u * g / (1.f + expf(-g));
      }
      __syncthreads();
      FOR_LANES(h, H) {
        float s = 0.f;
        for (int i = 0; i < n; i++) s = fmaf(ys[i], float(back[size_t(h) * I + c + i]), s);
        acc[h] = fmaf(prob[k], s, acc[h]);
      }
      __syncthreads();
    }
  }
  FOR_LANES(h, H) out[t * H + h] = scalar_t(acc[h]);
}

template <typename scalar_t>
void fused_moe(const scalar_t* x, const float* logits, const scalar_t* w13, const scalar_t* w2, int32_t* idx, scalar_t* out, int64_t T,
               int64_t E, int64_t K, int64_t H, int64_t I, cudaStream_t stream) {
  moe_token<scalar_t><<<dim3(unsigned(T)), BLOCK, size_t(2 * H) * sizeof(float), stream>>>(x, logits, w13, w2, idx, out, int(E), int(K),
                                                                                           int(H), int(I));
}
