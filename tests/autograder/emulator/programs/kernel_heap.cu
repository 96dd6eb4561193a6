#include <cassert>
#include <cstdio>
struct Node { int value; Node* next; };
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = blockIdx.x * 64ll + threadIdx.x;
  Node* head = nullptr;
  for (int k = 0; k < 3; ++k) { Node* node = new Node{k, head}; assert(node != nullptr); head = node; }
  int sum = 0;
  while (head != nullptr) { Node* next = head->next; sum += head->value; delete head; head = next; }
  float* scratch = (float*)malloc(4 * sizeof(float));
  if (scratch == NULL) return;
  for (int k = 0; k < 4; ++k) scratch[k] = k;
  float* more = new float[8];
  more[7] = 1;
  sum += (int)scratch[3] - 3 + (int)more[7] - 1;
  delete[] more;
  free(scratch);
  if (i == 0) printf("sum %d of block %d\n", sum, blockIdx.x);
  if (i < n && sum == 3) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20);
  add<<<(n + 63) / 64, 64, 0, stream>>>(x, y, out, n);
}
