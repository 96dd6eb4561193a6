import sys, aot
from aot import look, comp
for arch in (100,):
    for kw in [dict(BM=128,BN=128,warps=4,stages=2), dict(BM=128,BN=128,warps=4,stages=2,WS=True), dict(BM=128,BN=128,warps=8,stages=2), dict(BM=128,BN=128,warps=8,stages=2,WS=True),dict(BM=128,BN=64,warps=4,stages=3,WS=True),dict(BM=256,BN=128,warps=8,stages=2,WS=False), dict(BM=128,BN=128,warps=4,stages=2,POLY=2),dict(BM=128,BN=128,warps=4,stages=2,DEFER=2,POLY=2)]:
        for causal in (True,):
            try: k = comp(arch, causal, **kw); print(causal, kw, look(k)[0], flush=True)
            except BaseException as e: print(kw, "ERR", str(e)[-150:])
