"""Compile without device via fake driver: signature by hand."""
import sys, re, subprocess, tempfile, os, itertools
sys.path.insert(0, os.environ.get("TP", "/tmp/flash/t36"))
import triton
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget
import fa_kern
def comp(arch, causal, BM, BN, warps, stages, D=128, GROUP=8, WS=False, DEFER=0, POLY=0, TMA=True, PERSIST=0, LATE=0, maxnreg=None):
    d = lambda n: f"tensordesc<bf16[{n},{D}]>" if TMA else "*bf16"
    sig = dict(q_ptr="*bf16", k_t=d(BN), v_t=d(BN), o_ptr="*bf16", lse_ptr="*fp32", q_t=d(BM), q_heads="i32", kv_heads="i32", q_len="i32", kv_len="i32", c="fp32", stride="i32", tiles_m="i32", tiles="i32")
    ce = dict(CAUSAL=causal, BM=BM, BN=BN, D=D, GROUP=GROUP, WS=WS, DEFER=DEFER, POLY=POLY, TMA=TMA, PERSIST=bool(PERSIST), LATE=LATE)
    for k in ce: sig[k] = "constexpr"
    names = list(sig)
    attrs = {(names.index(n),): [["tt.divisibility", 16]] for n in ("q_ptr", "o_ptr", "lse_ptr", "q_len", "kv_len", "stride", "q_heads", "kv_heads", "tiles_m", "tiles")}
    if not TMA:
        for n in ("k_t","v_t","q_t"): attrs[(names.index(n),)] = [["tt.divisibility", 16]]
    src = ASTSource(fa_kern.attention, sig, {(names.index(k),): v for k, v in ce.items()}, attrs)
    opt = dict(num_warps=warps, num_stages=stages)
    if maxnreg: opt["maxnreg"] = maxnreg
    k = triton.compile(src, target=GPUTarget("cuda", arch, 32), options=opt)
    return k
BIN = os.path.join(os.path.dirname(triton.__file__), "backends/nvidia/bin")
def look(k):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as f:
        f.write(k.asm["cubin"]); f.flush()
        r = subprocess.run([BIN + "/cuobjdump", "-res-usage", f.name], capture_output=True, text=True).stdout
        s = subprocess.run([BIN + "/nvdisasm", f.name], capture_output=True, text=True).stdout
    reg = re.findall(r"REG:(\d+) STACK:(\d+)", r)
    return dict(reg=reg, smem=k.metadata.shared, spill=len(re.findall(r"\b(LDL|STL)", s)), hgmma=len(re.findall("HGMMA", s)), utc=len(re.findall(r"UTC\w*MMA", s)), tma=len(re.findall("UTMALDG", s)), ex2=len(re.findall("MUFU.EX2", s)), maxnreg=len(re.findall("USETMAXREG", s))), s
if __name__ == "__main__":
    print(triton.__version__)
    for arch in (90,):
        for kw in [dict(BM=128,BN=128,warps=8,stages=2), dict(BM=128,BN=64,warps=8,stages=3), dict(BM=64,BN=64,warps=4,stages=3), dict(BM=64,BN=128,warps=4,stages=2), dict(BM=128,BN=64,warps=4,stages=2), dict(BM=128,BN=128,warps=8,stages=2,WS=True), dict(BM=128,BN=128,warps=4,stages=2,WS=True),dict(BM=128,BN=128,warps=8,stages=2,DEFER=1),dict(BM=128,BN=128,warps=8,stages=2,DEFER=2),dict(BM=128,BN=128,warps=8,stages=2,POLY=1),dict(BM=128,BN=128,warps=8,stages=2,POLY=2), dict(BM=192,BN=128,warps=12,stages=2) if 0 else dict(BM=128,BN=128,warps=8,stages=2,PERSIST=1)]:
            try:
                k = comp(arch, True, **kw); print(kw, look(k)[0], flush=True)
            except Exception as e:
                print(kw, "ERR", str(e)[-300:])
