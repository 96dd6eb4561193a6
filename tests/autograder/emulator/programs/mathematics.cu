#include <math_constants.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ bool near(double a, double b) { return fabs(a - b) <= 2e-6 * fabs(b) + 1e-12; }
__device__ bool right() {
  float s, c; double ds, dc;
  sincosf(0.5f, &s, &c); bool ok = near(s, 0.479425538604) && near(c, 0.87758256189);
  sincospif(0.25f, &s, &c); ok &= near(s, 0.70710678118) && near(c, 0.70710678118);
  sincospi(1.0 / 6, &ds, &dc); ok &= near(ds, 0.5) && near(dc, 0.86602540378);
  __sincosf(0.f, &s, &c); ok &= s == 0.f && c == 1.f;
  ok &= near(rsqrtf(4.f), 0.5) && near(rcbrtf(8.f), 0.5) && near(cbrtf(27.f), 3) && near(rhypotf(3.f, 4.f), 0.2) && near(norm3df(1, 2, 2), 3) && near(rnorm4df(1, 1, 1, 1), .5);
  ok &= near(erfinvf(0.5f), 0.476936276204) && near(erfcinv(0.01), 1.8213863677) && near(normcdfinv(0.975), 1.95996398454) && near(normcdff(1.f), 0.841344746069) && near(erfcxf(20.f), 0.02817434874);
  ok &= near(exp10f(2.f), 100) && near(exp2f(3.f), 8) && near(cyl_bessel_i0f(1.f), 1.26606587775) && near(j0f(1.f), 0.765197686557) && near(lgammaf(5.f), 3.17805383035) && near(tgammaf(5.f), 24);
  ok &= __fadd_rd(1.f, 1e-10f) == 1.f && __fadd_ru(1.f, 1e-10f) > 1.f && __fmul_rz(1.f / 3, 3.f) <= 1.f && __dadd_ru(1.0, 1e-30) > 1.0 && __fdiv_rn(1.f, 4.f) == .25f && __fsqrt_rn(9.f) == 3.f && __frcp_rz(3.f) < __frcp_ru(3.f);
  ok &= __float2int_rn(2.5f) == 2 && __float2int_ru(2.1f) == 3 && __float2int_rd(-2.1f) == -3 && __float2uint_rz(-1.f) == 0u && __double2ll_rn(3.5) == 4 && __float2int_rz(1e20f) == 2147483647 && __float2int_rn(CUDART_NAN_F) == 0;
  ok &= __int2float_rz(16777217) == 16777216.f && __int2float_ru(16777217) == 16777218.f && __double2float_rd(1.0 + 1e-12) == 1.f && __hiloint2double(__double2hiint(1.5), __double2loint(1.5)) == 1.5;
  ok &= __half2float(__float2half_rz(0.1f)) < 0.1f && __half2float(__float2half_ru(0.1f)) > 0.1f && __half2int_rn(__int2half_rn(7)) == 7 && __half2short_rz(__float2half(-2.7f)) == -2 && __bfloat162float(__int2bfloat16_rn(257)) == 256.f;
  half2 a = __floats2half2_rn(1.f, 2.f), b = __floats2half2_rn(1.f, 3.f);
  ok &= __hbeq2(a, a) && !__hbeq2(a, b) && __low2float(__heq2(a, b)) == 1.f && __high2float(__hlt2(a, b)) == 1.f && __heq2_mask(a, b) == 0xffffu && __hble2(a, b);
  ok &= __low2float(h2exp(__hneg2(__float2half2_rn(0.f)))) == 1.f && __half2float(hexp2(__float2half(3.f))) == 8.f && __half2float(hrcp(__float2half(4.f))) == .25f && near(__half2float(htrunc(__float2half(2.7f))), 2);
  ok &= __half2float(__hadd_sat(__float2half(.75f), __float2half(.5f))) == 1.f && __half2float(__hfma_relu(__float2half(1.f), __float2half(-1.f), __float2half(0.f))) == 0.f && __hisinf(CUDART_INF_FP16) == 1 && __hgtu(CUDART_NAN_FP16, __float2half(1.f));
  ok &= __half_as_ushort(__ushort_as_half(0x3c00)) == 0x3c00 && __high2float(__lowhigh2highlow(a)) == 1.f && __bfloat162float(__high2bfloat16(__bfloat162bfloat162(__float2bfloat16(3.f)))) == 3.f;
  ok &= near(CUDART_PI_F, 3.14159265) && isinf(CUDART_INF) && near(fdividef(1.f, 4.f), .25) && near(__fdividef(1.f, 4.f), .25) && __saturatef(2.f) == 1.f && near(__powf(2.f, 3.f), 8) && near(__log2f(8.f), 3) && near(__tanf(0.5f), 0.546302489844);
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
