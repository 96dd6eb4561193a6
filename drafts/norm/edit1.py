import re
p='reference/bias_gelu_dropout/solutions/cuda.cu'
s=open(p).read()
a=s.index('__device__ float gelu'); b=s.index('// The numbers of a pack')
s=s[:a]+'''// v * Phi(v): the logarithm to base 2 of the odds Phi/(1 - Phi) is v times a smooth function of v^2.
__device__ float gelu(float v) {
  const float u = fminf(v * v, 38.0f);
  float odds = 5.067394948099491e-09f;
  odds = odds * u - 3.816365108377795e-07f;
  odds = odds * u + 1.1439893569331616e-05f;
  odds = odds * u - 0.00015958023141138256f;
  odds = odds * u - 9.404860611539334e-05f;
  odds = odds * u + 0.10483512282371521f;
  odds = odds * u + 2.3022093772888184f;
  return __fdividef(v, 1.0f + exp2f(-v * odds));
}

'''+s[b:]
a=s.index('// Philox-4x32'); b=s.index('// v * Phi(v)')
s=s[:a]+'''// The keys of Philox's ten rounds. They are the same for all threads, so the host makes them.
struct Keys {
  uint32_t low[10], high[10];
};

Keys keys_of(uint64_t seed) {
  Keys keys;
  for (uint32_t round = 0; round < 10; ++round) {
    keys.low[round] = static_cast<uint32_t>(seed) + round * 0x9E3779B9u;
    keys.high[round] = static_cast<uint32_t>(seed >> 32) + round * 0xBB67AE85u;
  }
  return keys;
}

// Philox-4x32 with ten rounds.
__device__ Words philox(uint32_t counter, const Keys& keys) {
  uint32_t c0 = counter, c1 = 0, c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c0, b = static_cast<uint64_t>(0xCD9E8D57u) * c2;
    c0 = static_cast<uint32_t>(b >> 32) ^ c1 ^ keys.low[round];
    c1 = static_cast<uint32_t>(b);
    c2 = static_cast<uint32_t>(a >> 32) ^ c3 ^ keys.high[round];
    c3 = static_cast<uint32_t>(a);
  }
  return {{c0, c1, c2, c3}};
}

'''+s[b:]
s=s.replace('''__device__ void work(const Pack<T>& x, const Pack<T>& bias, uint32_t counter, float threshold, float scale,
                     uint64_t seed, Pack<T>& out, MaskPack& mask) {
  const Words words = philox(counter, seed);''','''__device__ void work(const Pack<T>& x, const Pack<T>& bias, uint32_t counter, uint32_t threshold, float scale,
                     const Keys& keys, Pack<T>& out, MaskPack& mask) {
  const Words words = philox(counter, keys);''')
s=s.replace('const bool keep = static_cast<float>(number) >= threshold;','const bool keep = number >= threshold;')
s=s.replace('static_cast<T>(keep ? gelu(v) * scale : 0.0f);','static_cast<T>(gelu(v) * (keep ? scale : 0.0f));')
s=s.replace('''                float threshold, float scale, uint64_t seed) {''','''                uint32_t threshold, float scale, const __grid_constant__ Keys keys) {''')
s=s.replace('''int64_t size, int64_t cols, float threshold, float scale,
              uint64_t seed) {''','''int64_t size, int64_t cols, uint32_t threshold, float scale,
              const __grid_constant__ Keys keys) {''')
s=s.replace('threshold, scale, seed, outs, masks','threshold, scale, keys, outs, masks')
s=s.replace('''  const float threshold = p * 65536.0f, scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
''','''  const float scale = p < 1.0f ? 1.0f / (1.0f - p) : 0.0f;
  // A whole number is not less than p * 65536 if it is not less than the next whole number above.
  const uint32_t threshold = static_cast<uint32_t>(ceilf(p * 65536.0f));
  const Keys keys = keys_of(static_cast<uint64_t>(seed));
''')
s=s.replace('''                                                static_cast<uint32_t>(cols / PACK), threshold, scale,
                                                static_cast<uint64_t>(seed));''','''                                                static_cast<uint32_t>(cols / PACK), threshold, scale, keys);''')
s=s.replace('''    any_packs<<<blocks, THREADS, 0, stream>>>(x, bias, out, mask, size, cols, threshold, scale,
                                              static_cast<uint64_t>(seed));''','''    any_packs<<<blocks, THREADS, 0, stream>>>(x, bias, out, mask, size, cols, threshold, scale, keys);''')
s=s.replace('constexpr float LOG2_E = 1.4426950408889634f;\n','')
open(p,'w').write(s)
p='reference/bias_gelu_dropout/solutions/triton.py'
s=open(p).read()
a=s.index('@triton.jit\ndef _gelu'); b=s.index('@triton.jit\ndef _numbers')
s=s[:a]+'''@triton.jit
def _gelu(v):
    """v · Φ(v): the logarithm to base 2 of the odds Φ/(1 - Φ) is v times a smooth function of v²."""
    u = tl.minimum(v * v, 38.0)
    odds = 5.067394948099491e-09 * u - 3.816365108377795e-07
    odds = odds * u + 1.1439893569331616e-05
    odds = odds * u - 0.00015958023141138256
    odds = odds * u - 9.404860611539334e-05
    odds = odds * u + 0.10483512282371521
    odds = odds * u + 2.3022093772888184
    return v / (1.0 + tl.exp2(-v * odds))


'''+s[b:]
s=s.replace('LOG2_E = tl.constexpr(1.4426950408889634)\n','')
open(p,'w').write(s)
