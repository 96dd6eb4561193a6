#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <numeric>
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n, const int* order) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n && order[i % 16] == i % 16) out[i] = x[i] + y[i];
}
struct Buffer {
  int* data = nullptr;
  explicit Buffer(const std::vector<int>& from) { cudaMalloc(&data, from.size() * 4); cudaMemcpy(data, from.data(), from.size() * 4, cudaMemcpyHostToDevice); }
  ~Buffer() { cudaFree(data); }
};

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  std::vector<int> order(16);
  std::iota(order.begin(), order.end(), 0);
  auto buffer = std::make_unique<Buffer>(order);
  std::map<std::string, int> sizes{{"threads", 256}};
  auto begin = std::chrono::steady_clock::now();
  add<<<(n + 255) / 256, sizes["threads"], 0, stream>>>(x, y, out, n, buffer->data);
  cudaStreamSynchronize(stream);
  if (std::chrono::steady_clock::now() < begin) std::cout << "odd" << std::endl;
}
