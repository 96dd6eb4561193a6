import triton, triton.language as tl, torch, importlib.util,sys
from triton.backends.compiler import GPUTarget
def load(p):
    spec=importlib.util.spec_from_file_location("sol",p); sol=importlib.util.module_from_spec(spec); spec.loader.exec_module(sol); return sol
def comp(fn,sig,consts,warps=8,stages=4):
    src=triton.compiler.ASTSource(fn,sig|{k:"constexpr" for k in consts},constexprs=consts)
    r=triton.compile(src,target=GPUTarget("cuda",90,32),options={"num_warps":warps,"num_stages":stages})
    p=r.asm["ptx"]
    open("k_k.ptx","w").write(p)
    import subprocess,tempfile,os
    f="k_k.cubin";open(f,"wb").write(r.asm["cubin"])
    u=subprocess.run(["./.venv/lib/python3.11/site-packages/triton/backends/nvidia/bin/cuobjdump","-res-usage",f],capture_output=True,text=True).stdout
    print(fn.__name__,r.metadata.shared,"wgmma",p.count("wgmma.mma_async"),[l for l in u.splitlines() if "REG" in l])
D=lambda m,n,t="fp16":f"tensordesc<{t}[{m},{n}]>"
g=load("./reference/gemm_tensor_core/solutions/triton.py")
for st in (3,4): comp(g._descriptor_kernel,dict(a_matrix=D(128,64),b_matrix=D(256,64),c_matrix=D(128,128),m="i32",n="i32",k="i32"),dict(BLOCK_M=128,BLOCK_N=256,BLOCK_K=64,GROUP_M=16),stages=st)
e=load("./reference/gemm_epilogue/solutions/triton.py")
comp(e._gelu_kernel,dict(a_matrix=D(128,64),b_matrix=D(256,64),bias_ptr="*fp16",residual_matrix=D(128,64),out_matrix=D(128,64),m="i32",n="i32",k="i32"),dict(BLOCK_M=128,BLOCK_N=256,BLOCK_K=64,GROUP_M=16),stages=4)
comp(e._gated_kernel,dict(a_matrix=D(128,64),b_matrix=D(128,64),bias_ptr="*fp16",residual_matrix=D(128,64),out_matrix=D(128,64),m="i32",n="i32",k="i32"),dict(BLOCK_M=128,BLOCK_N=128,BLOCK_K=64,GROUP_M=16),stages=4)
