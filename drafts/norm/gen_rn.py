from gen_manifest import *
def stride(t): return f'''[[argument]]
name = "{t}_row_stride"
role = "stride"
of = "{t}"
dim = 0
about = "Elements from the start of one row of {t} to the start of the next."

'''
head = '''slug = "residual_norm"
title = "Residual addition and norm, fused"
rung = 10
summary = "Add the residual stream and normalise it in one kernel that writes both, and see which bytes fusing saves."
techniques = ["fusion", "row reductions", "rounding", "vector loads", "strides"]
prerequisites = ["layernorm"]
languages = ["triton", "cuda"]
entry = "residual_norm"
bitwise = true
compile_for = ["sm_90a", "sm_100a"]
# Operators of torch that do the exercise, or the part of it that is the point.
library_operations = [
  "aten.add", "aten.add_", "aten.rms_norm", "aten._fused_rms_norm", "aten.mean", "aten.sum", "aten.rsqrt", "aten.native_layer_norm",
  "aten.linalg_vector_norm",
]
# The same, by the names of torch's own kernels on a GPU.
library_kernels = ["layer_norm", "LayerNorm", "RMSNorm"]

[[argument]]
name = "x"
role = "input"
shape = ["rows", "cols"]
about = "What the last layer gave."

[[argument]]
name = "r"
role = "input"
shape = ["rows", "cols"]
about = "The residual stream so far."

[[argument]]
name = "weight"
role = "input"
shape = ["cols"]
about = "By what each column of the norm is multiplied."

[[argument]]
name = "s"
role = "output"
shape = ["rows", "cols"]
about = "Where x + r goes, rounded once."

[[argument]]
name = "out"
role = "output"
shape = ["rows", "cols"]
about = "Where the norm of s goes."

[[argument]]
name = "rows"
role = "size"
about = "How many rows; at least 1."

[[argument]]
name = "cols"
role = "size"
about = "How many columns; at least 1."

''' + stride("x") + stride("r") + stride("s") + stride("out") + '''[[argument]]
name = "eps"
role = "scalar"
dtype = "float32"
about = "What is added to the mean of the squares, under the root. Another one in every call."

[tolerance.s]
kind = "exact"

[tolerance.out]
kind = "bounded"
factor = 1.5
row_factor = 1.0

[points]
correctness = 60
speed = 35
quiz = 5

# Per element: the sum, its square, the sum of squares, two products.
[cost]
flops = "5 * rows * cols"
bytes = "4 * rows * cols * e + cols * e"

[limits]
call_s = 10
total_s = 120
memory_mib = 2048

'''
cases = [
 case("one", "a single element", "basics", rc(1,1), "float32", "decades"),
 case("small", "a few short rows", "basics", rc(4,16), "float32", "decades"),
 case("odd", "an odd number of columns", "basics", rc(3,781), "float32", "peaks"),
 case("cancelling", "a sum that is far smaller than its terms", "numerics", rc(6,200), "float32", "cancelling"),
 case("half", "float16", "numerics", rc(9,259), "float16", "mixed"),
 case("padded", "padded rows, four strides", "layouts", rc(10,100), "float32", "decades", layout="x = { pad = 28 }, r = { pad = 4 }, s = { pad = 12 }, out = { pad = 5 }"),
 case("long", "a long row", "layouts", rc(2,20000), "float32", "decades"),
 case("ranked_odd", "ranked", "basics", rc(48,1021), "float32", "mixed", True, 'lanes = ["cpu"]'),
 case("ranked_half", "ranked", "numerics", rc(40,2048), "float16", "decades", True, 'lanes = ["cpu"]'),
 case("gpu_odd", "an odd number of columns", "basics", rc(1823,781), "float32", "mixed", False, GPU),
 case("gpu_bfloat16", "bfloat16", "numerics", rc(8192,8192), "bfloat16", "mixed", False, GPU),
 case("gpu_ranked", "ranked", "basics", rc(16384,8192), "bfloat16", "mixed", True, GPU),
 case("gpu_ranked_7168", "ranked", "numerics", rc(18731,7168), "bfloat16", "mixed", True, GPU, comment="A row that is no power of two: lanes beyond its end must cost no traffic."),
]
open("assignments/residual_norm/assignment.toml","w").write(head + LANES.replace("%(zero)s","4.0") + "\n" + "\n".join(cases))
