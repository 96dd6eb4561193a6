template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  int lane = threadIdx.x & 31, all;
  bool ok = __match_any_sync(0xffffffffu, lane % 4) == (0x11111111u << (lane % 4));
  ok &= __match_all_sync(0xffffffffu, 7, &all) == 0xffffffffu && all == 1;
  ok &= __match_all_sync(0xffffffffu, lane, &all) == 0u && all == 0;
  ok &= __reduce_add_sync(0xffffffffu, lane) == 496 && __reduce_or_sync(0xffffffffu, 1u << lane) == 0xffffffffu;
  unsigned mask = __activemask();
  if (lane < 10) { unsigned here = __activemask(); ok &= here == 0x3ffu; __syncwarp(here); }
  ok &= mask == 0xffffffffu && __popc(__ballot_sync(mask, lane & 1)) == 16;
  double d = __shfl_down_sync(0xffffffffu, (double)lane, 1); ok &= lane == 31 || d == lane + 1;
  if (i < n && ok) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
