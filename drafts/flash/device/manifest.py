LANES='["h100", "h200", "b200"]'
head='''slug = "flash_attention_2"
title = "FlashAttention 2"
rung = 26
summary = "Softmax attention in one pass over the keys, without ever writing the scores to memory."
techniques = ["online softmax", "kernel fusion", "tensor cores", "causal masks", "grouped-query attention"]
prerequisites = ["matmul_tiled", "softmax"]
languages = ["triton"]
entry = "attention"
bitwise = true
compile_for = ["sm_90a", "sm_100a"]
# Operators of torch that do the exercise by themselves.
library_operations = [
  "aten.scaled_dot_product_attention", "aten._scaled_dot_product_flash_attention",
  "aten._scaled_dot_product_flash_attention_for_cpu", "aten._scaled_dot_product_efficient_attention",
  "aten._scaled_dot_product_cudnn_attention", "aten._scaled_dot_product_attention_math", "aten._softmax", "aten.softmax",
  "aten.mm", "aten.bmm", "aten.baddbmm", "aten.matmul", "aten.logsumexp", "aten.einsum",
]

'''
def arg(name, role, about, **kw):
    t=f'[[argument]]\nname = "{name}"\nrole = "{role}"\n'
    for k,v in kw.items(): t+=f'{k} = {v}\n'
    return t+f'about = "{about}"\n\n'
s=head
s+=arg("q","input","The queries.",shape='["batch", "q_heads", "q_len", "dim"]')
s+=arg("k","input","The keys.",shape='["batch", "kv_heads", "kv_len", "dim"]')
s+=arg("v","input","The values.",shape='["batch", "kv_heads", "kv_len", "dim"]')
s+=arg("out","output","Where the answer goes; 0 in rows that see no key.",shape='["batch", "q_heads", "q_len", "dim"]')
s+=arg("lse","output","The natural logarithm of each row's sum of exponentials, contiguous; -inf in rows that see no key.",shape='["batch", "q_heads", "q_len"]',dtype='"float32"')
s+=arg("batch","size","How many sequences; at least 1.")
s+=arg("q_heads","size","Heads of q and out; a multiple of kv_heads.")
s+=arg("kv_heads","size","Heads of k and v. Query head h reads key head h // (q_heads // kv_heads).")
s+=arg("q_len","size","Rows of q per head; at least 1.")
s+=arg("kv_len","size","Rows of k and v per head; at least 1, and not always q_len.")
s+=arg("dim","size","Elements of a row; 1 to 128.")
s+=arg("causal","scalar","1: row i sees the keys j <= i + kv_len - q_len. 0: it sees all.",dtype='"int64"')
s+=arg("scale","scalar","What a score is multiplied by.",dtype='"float32"')
for t in ("q","k","v","out"):
    s+=arg(f"{t}_row_stride","stride",f"Elements from one row of {t} to the next; heads follow one another without a gap." if t=="q" else f"The same for {t}.",of=f'"{t}"',dim="2")
VIS="(causal * (min(q_len, kv_len) * kv_len - min(q_len, kv_len) * (min(q_len, kv_len) - 1) / 2) + (1 - causal) * q_len * kv_len)"
s+=f'''[tolerance.out]
kind = "bounded"
factor = 1.5
row_factor = 1.0

[tolerance.lse]
kind = "bounded"
factor = 1.5
row_factor = 1.0

[points]
correctness = 55
speed = 40
quiz = 5

[cost]
flops = "4 * batch * q_heads * dim * {VIS}"
bytes = "2 * batch * dim * (q_heads * q_len + kv_heads * kv_len) * e + 4 * batch * q_heads * q_len"

[[requirement]]
name = "wgmma on Hopper"
about = "both products on the tensor cores, by the instruction of a whole warp group"
target = "sm_90a"
case = "gpu_ranked"
wgmma = "> 0"
spills = "<= 32"

[limits]
call_s = 20
total_s = 240
memory_mib = 2048

[lane.cpu]
ranks = true
speed_points = false
pairs = 5
'''
for l in ("h200","h100","b200"):
    s+=f'''
[lane.{l}]
speed_points = true
r_full = 1.25
r_zero = 6.0
pairs = 25
apart = true
'''
def case(name, category, group, size, dist, dtype="float16", extra=""):
    b,hq,hk,q,k,d,c=size
    return f'''
[[case]]
name = "{name}"
category = "{category}"
group = "{group}"
size = {{ batch = {b}, q_heads = {hq}, kv_heads = {hk}, q_len = {q}, kv_len = {k}, dim = {d}, causal = {c} }}
dtype = "{dtype}"
distribution = "{dist}"
{extra}'''
s+=case("one","one row, one key","basics",(1,1,1,1,1,1,1),"decades")
s+=case("readable","all scores equal: a row is the mean of the values it sees","basics",(1,1,1,24,24,16,1),"readable")
s+=case("square","whole tiles only, no mask","basics",(1,2,2,64,64,64,0),"decades")
s+=case("ragged","no length is a multiple of a tile","sizes",(1,2,2,70,200,64,0),"late")
s+=case("causal","causal, a length of no tile","masks",(1,1,1,200,200,64,1),"late")
s+=case("bottom_right","causal, more keys than rows","masks",(1,2,2,65,333,64,1),"late")
s+=case("no_keys","causal, more rows than keys: the first rows see none","masks",(1,2,2,150,70,32,1),"decades")
s+=case("grouped","four query heads share a key head","heads",(2,8,2,40,72,64,1),"decades")
s+=case("sharp","scores fifty times as large","numerics",(1,2,2,80,150,64,0),"sharp")
s+=case("wide","dim 128","numerics",(1,1,1,100,140,128,1),"decades")
s+=case("padded","padded rows","layouts",(1,2,1,50,60,64,0),"decades",extra="layout = { q = { pad = 8 }, k = { pad = 16 }, v = { pad = 24 }, out = { pad = 40 } }\n")
s+=case("ranked_causal","ranked","masks",(1,2,1,128,128,64,1),"decades",extra='ranked = true\nlanes = ["cpu"]\n')
G=f"lanes = {LANES}\n"
s+=case("gpu_ragged","bfloat16, no length is a multiple of a tile","sizes",(2,8,2,1000,1531,128,1),"late","bfloat16",G)
s+=case("gpu_narrow","bfloat16, dim 64","sizes",(1,16,1,777,2050,64,0),"decades","bfloat16",G)
s+=case("gpu_sharp","scores fifty times as large","numerics",(1,4,4,1024,2048,128,1),"sharp","float16",G)
s+=case("gpu_ranked","ranked, causal","masks",(2,16,4,4096,4096,128,1),"decades","bfloat16","ranked = true\n"+G)
s+=case("gpu_ranked_full","ranked, every row sees every key","sizes",(2,16,4,4096,4096,128,0),"decades","bfloat16","ranked = true\n"+G)
open("./assignments/flash_attention_2/assignment.toml","w").write(s)
