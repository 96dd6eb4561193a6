// Textbook work-efficient scan: up-sweep and down-sweep in shared memory, block sums scanned recursively, private bins.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define SECTION_SIZE 1024
#define BLOCK_DIM (SECTION_SIZE / 2)
#define NUM_BINS 256

#define cudaCheck(err) (cuda_check((err), __LINE__))
static void cuda_check(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    printf("[CUDA ERROR] line %d: %s\n", line, cudaGetErrorString(error));
    exit(EXIT_FAILURE);
  }
}

// Sum of each section.
template <typename T>
__global__ void section_sums(const T* in, float* sums, int64_t n) {
  __shared__ float partial[BLOCK_DIM];
  int64_t base = (int64_t)blockIdx.x * SECTION_SIZE;
  float a = base + threadIdx.x < n ? (float)in[base + threadIdx.x] : 0.0f;
  float b = base + threadIdx.x + BLOCK_DIM < n ? (float)in[base + threadIdx.x + BLOCK_DIM] : 0.0f;
  partial[threadIdx.x] = a + b;
  for (int stride = BLOCK_DIM / 2; stride >= 1; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

// Exclusive scan of one section by two sweeps over a balanced tree. If EXCLUSIVE is false, the own element is added
// again. before[blockIdx.x] is the sum of all sections in front of this one; before may be null.
template <typename TIn, typename TOut, bool EXCLUSIVE>
__global__ void scan_section(const TIn* in, TOut* out, const float* before, int64_t n) {
  __shared__ float tree[SECTION_SIZE];
  int64_t base = (int64_t)blockIdx.x * SECTION_SIZE;
  int t = threadIdx.x;
  float first = base + t < n ? (float)in[base + t] : 0.0f;
  float second = base + t + BLOCK_DIM < n ? (float)in[base + t + BLOCK_DIM] : 0.0f;
  tree[t] = first;
  tree[t + BLOCK_DIM] = second;

  // Up-sweep: sums of ever larger subtrees.
  int offset = 1;
  for (int d = BLOCK_DIM; d > 0; d /= 2) {
    __syncthreads();
    if (t < d) {
      int left = offset * (2 * t + 1) - 1;
      int right = offset * (2 * t + 2) - 1;
      tree[right] += tree[left];
    }
    offset *= 2;
  }
  if (t == 0) tree[SECTION_SIZE - 1] = 0.0f;

  // Down-sweep: what stands before each subtree.
  for (int d = 1; d <= BLOCK_DIM; d *= 2) {
    offset /= 2;
    __syncthreads();
    if (t < d) {
      int left = offset * (2 * t + 1) - 1;
      int right = offset * (2 * t + 2) - 1;
      float swap = tree[left];
      tree[left] = tree[right];
      tree[right] += swap;
    }
  }
  __syncthreads();

  float carry = before == nullptr ? 0.0f : before[blockIdx.x];
  float a = carry + tree[t], b = carry + tree[t + BLOCK_DIM];
  if (!EXCLUSIVE) {
    a += first;
    b += second;
  }
  if (base + t < n) out[base + t] = (TOut)a;
  if (base + t + BLOCK_DIM < n) out[base + t + BLOCK_DIM] = (TOut)b;
}

// Exclusive scan of floats, in place, with scratch memory behind them for the next level.
static void scan_sums(float* sums, int64_t count, float* scratch, cudaStream_t stream) {
  int64_t sections = (count + SECTION_SIZE - 1) / SECTION_SIZE;
  if (sections == 1) {
    scan_section<float, float, true><<<1, BLOCK_DIM, 0, stream>>>(sums, sums, nullptr, count);
    return;
  }
  section_sums<float><<<(unsigned)sections, BLOCK_DIM, 0, stream>>>(sums, scratch, count);
  scan_sums(scratch, sections, scratch + sections, stream);
  scan_section<float, float, true><<<(unsigned)sections, BLOCK_DIM, 0, stream>>>(sums, sums, scratch, count);
}

__global__ void zero_bins(int* bins) { bins[threadIdx.x] = 0; }

__global__ void histo_private(const uint8_t* keys, int* bins, int64_t m) {
  __shared__ int bins_s[NUM_BINS];
  bins_s[threadIdx.x] = 0;
  __syncthreads();
  // Runs of equal keys are counted in a register before they go to shared memory.
  int accumulator = 0, prev = -1;
  int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < m; i += stride) {
    int key = keys[i];
    if (key == prev) {
      ++accumulator;
    } else {
      if (accumulator > 0) atomicAdd(&bins_s[prev], accumulator);
      accumulator = 1;
      prev = key;
    }
  }
  if (accumulator > 0) atomicAdd(&bins_s[prev], accumulator);
  __syncthreads();
  int count = bins_s[threadIdx.x];
  if (count > 0) atomicAdd(&bins[threadIdx.x], count);
}

template <typename T>
void scan_histogram(const T* x, const uint8_t* keys, T* prefix, int32_t* counts, int64_t n, int64_t m,
                    cudaStream_t stream) {
  static float* workspace = nullptr;
  static int64_t workspace_floats = 0;
  int64_t sections = (n + SECTION_SIZE - 1) / SECTION_SIZE;
  // Levels shrink by a factor of 1024, so twice the first level is more than all of them.
  int64_t needed = 2 * sections + 64;
  if (needed > workspace_floats) {
    if (workspace != nullptr) cudaCheck(cudaFree(workspace));
    cudaCheck(cudaMalloc((void**)&workspace, needed * sizeof(float)));
    workspace_floats = needed;
  }

  section_sums<T><<<(unsigned)sections, BLOCK_DIM, 0, stream>>>(x, workspace, n);
  scan_sums(workspace, sections, workspace + sections, stream);
  scan_section<T, T, false><<<(unsigned)sections, BLOCK_DIM, 0, stream>>>(x, prefix, workspace, n);

  zero_bins<<<1, NUM_BINS, 0, stream>>>(counts);
  int64_t blocks = (m + 16 * NUM_BINS - 1) / (16 * NUM_BINS);
  if (blocks > 1024) blocks = 1024;
  histo_private<<<(unsigned)blocks, NUM_BINS, 0, stream>>>(keys, counts, m);
  cudaCheck(cudaGetLastError());
}
