__device__ bool right() {
  bool ok = __vadd4(0x01ff0180u, 0x01010180u) == 0x02000200u && __vaddus4(0x01ff0180u, 0x01010180u) == 0x02ff02ffu;
  ok &= __vmaxs4(0x7f80ff01u, 0x00000000u) == 0x7f000001u && __vmaxu2(0x00018000u, 0x00020001u) == 0x00028000u;
  ok &= __vcmpeq4(0x01020304u, 0x01000300u) == 0xff00ff00u && __vsetgtu2(0x00020001u, 0x00010001u) == 0x00010000u;
  ok &= __vabsdiffu4(0x05000102u, 0x01020102u) == 0x04020000u && __vsadu4(0x05000102u, 0x01020102u) == 6;
  ok &= __dp4a(0x01020304, 0x01010101, 5) == 15 && __dp4a(0xff000000u, 0x02000000u, 1u) == 511u && __dp4a((int)0xff000000, 0x02000000, 1) == -1;
  ok &= __byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311u && __brev(1u) == 0x80000000u && __brevll(1ull) == 1ull << 63;
  ok &= __sad(3, -4, 1) == 8 && __usad(3u, 4u, 1u) == 2 && __hadd(-3, 4) == 0 && __uhadd(0xffffffffu, 1u) == 0x80000000u && __rhadd(3, 4) == 4;
  ok &= __mul24(0x01000003, 5) == 15 && __umul24(7u, 6u) == 42 && __mul64hi(1ll << 62, 8) == 2 && __mulhi(1 << 30, 8) == 2;
  ok &= __fns(0x0000000au, 0, 2) == 3 && __fns(0xau, 31, -1) == 3 && __fns(0xau, 1, 0) == 1;
  ok &= __funnelshift_lc(1u, 2u, 40u) == 1u && __funnelshift_l(0x80000000u, 1u, 1u) == 3u && __funnelshift_rc(1u, 2u, 33u) == 2u;
  ok &= __vavgs2(0x00030001u, 0x00040001u) == 0x00040001u && __vneg2(0x00010002u) == 0xfffffffeu;
  ok &= __viaddmax_s32(1, 2, 5) == 5 && __vimax3_s32(1, 9, 3) == 9 && __vimin3_u32(4u, 2u, 3u) == 2u && __vimax_s32_relu(-3, -2) == 0;
  bool first; ok &= __vibmax_s32(4, 3, &first) == 4 && first;
  ok &= umin(3u, 4u) == 3u && llmax(-1ll, 2ll) == 2 && __ffsll(8ll) == 4 && __clzll(1ll) == 63;
  return ok;
}
template <typename T>
__global__ void add(const T* x, const T* y, T* out, int64_t n) {
  int64_t i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n && right()) out[i] = x[i] + y[i];
}

template <typename T>
void vector_add(const T* x, const T* y, T* out, int64_t n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(x, y, out, n);
}
