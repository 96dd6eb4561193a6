import sys, re, os
import triton
from triton.experimental.gluon._runtime import GluonASTSource
from triton.backends.compiler import GPUTarget
import fa_gluon, aot
from aot import look
def comp(causal, BM=128, BN=128, STAGES=2, D=128, GROUP=8, PING=True, HOLD=True, LATE=True, arch=90, maxnreg=None):
    d = lambda n: f"tensordesc<bf16[{n},{D}],{fa_gluon.layout(n, D)!r}>"
    sig = dict(q_t=d(BM//2), k_t=d(BN), v_t=d(BN), o_ptr="*bf16", lse_ptr="*fp32", q_heads="i32", kv_heads="i32", q_len="i32", kv_len="i32", c="fp32", stride="i32", tiles_m="i32", tiles="i32")
    ce = dict(CAUSAL=causal, BM=BM, BN=BN, D=D, GROUP=GROUP, STAGES=STAGES, PING=PING, HOLD=HOLD, LATE=LATE, num_warps=4)
    for k in ce: sig[k] = "constexpr"
    names = list(sig)
    attrs = {(names.index(n),): [["tt.divisibility", 16]] for n in ("o_ptr", "lse_ptr", "q_len", "kv_len", "stride", "q_heads", "kv_heads", "tiles_m", "tiles")}
    src = GluonASTSource(fa_gluon.attention, sig, {(names.index(k),): v for k, v in ce.items()}, attrs)
    o = dict(num_warps=4)
    if maxnreg: o["maxnreg"] = maxnreg
    return triton.compile(src, target=GPUTarget("cuda", arch, 32), options=o)
if __name__ == "__main__":
    for causal in (False, True):
      for kw in [dict(), dict(LATE=False), dict(HOLD=False), dict(BN=64,STAGES=4), dict(BN=64,STAGES=3)]:
        k = comp(causal, **kw); r, s = look(k); print(causal, kw, r)
        open(f"/tmp/flash/g_{causal}_{len(kw)}{kw.get('BN',0)}.ptx","w").write(k.asm["ptx"]); open(f"/tmp/flash/g_{causal}_{len(kw)}{kw.get('BN',0)}.sass","w").write(s)
