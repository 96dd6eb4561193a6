"""Check and time candidates of rungs 5, 14, 21. Usage: scan_bench.py PART... ; prints a table, leaves scan.json in $OUT."""
import ctypes, functools, importlib.util, json, os, statistics, subprocess, sys, time, traceback, concurrent.futures as cf
from pathlib import Path
import torch, triton, triton.language as tl
import torch.nn.functional as F
from triton.tools.tensor_descriptor import TensorDescriptor
ROOT = Path(__file__).resolve().parents[2]; OUT = Path(os.environ.get("OUT", ".")); TMP = Path("scan_build"); TMP.mkdir(exist_ok=True)
cold = None; RES = {}
def load(path):
    spec = importlib.util.spec_from_file_location("m_" + path.replace("/", "_").replace(".", "_"), ROOT / path); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); return m
def loadsrc(name, src):
    p = TMP / f"{name}.py"; p.write_text(src); spec = importlib.util.spec_from_file_location(name, p); m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m); return m
def timed(calls, rounds=25):
    global cold
    if cold is None: cold = torch.empty(2**28, dtype=torch.uint8, device="cuda")
    ts = {k: [] for k in calls}
    for r in range(rounds + 4):
        for k in sorted(calls, reverse=bool(r % 2)):
            cold.zero_(); s, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            s.record(); calls[k](); e.record(); torch.cuda.synchronize()
            if r >= 4: ts[k].append(s.elapsed_time(e))
    return {k: statistics.median(v) for k, v in ts.items()}
def table(title, times, base, work, unit):
    print(f"== {title}")
    for k, t in times.items(): print(f"  {k:44} {t:9.4f} ms {work / t / 1e9:9.3f} {unit} {times[base] / t:6.3f} of {base}")
    RES[title] = times; (OUT / "scan.json").write_text(json.dumps(RES, indent=1)); sys.stdout.flush()
def attempt(calls, name, make, check):
    try:
        f = make(); f(); torch.cuda.synchronize(); bad = check()
        print(f"  {name:44} {'right' if not bad else f'WRONG {bad}'}"); sys.stdout.flush()
        if not bad: calls[name] = f
    except Exception as e: print(f"  {name:44} refused: {str(e).splitlines()[0][:150] if str(e) else repr(e)}"); sys.stdout.flush()
NV = ["nvcc", "-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC"]
def nvcc(name, src):
    p = TMP / f"{name}.cu"; p.write_text(src); r = subprocess.run([*NV, "-o", TMP / f"{name}.so", p], capture_output=True, text=True)
    return name, (TMP / f"{name}.so") if r.returncode == 0 else r.stderr[-300:]
WRAP = """
extern "C" void f32(void*x,void*k,void*p,void*c,long n,long m,void*s){scan_histogram((const float*)x,(const uint8_t*)k,(float*)p,(int*)c,n,m,(cudaStream_t)s);}
extern "C" void bf16(void*x,void*k,void*p,void*c,long n,long m,void*s){scan_histogram((const __nv_bfloat16*)x,(const uint8_t*)k,(__nv_bfloat16*)p,(int*)c,n,m,(cudaStream_t)s);}
"""
P = lambda t: ctypes.c_void_p(t.data_ptr())
def scan_part():
    base = (ROOT / "reference/scan_histogram/solutions/cuda.cu").read_text() + WRAP
    cu = {}
    for th in (128, 256, 512):
        for per in (8, 16, 24, 32):
            cu[f"cu scan {th}x{per}"] = base.replace("SCAN_THREADS = 256", f"SCAN_THREADS = {th}").replace("PER_THREAD = 16", f"PER_THREAD = {per}")
    for f in sorted((ROOT / "assignments/scan_histogram/milestones").glob("*.cu")): cu["cu " + f.stem] = f.read_text() + WRAP
    with cf.ThreadPoolExecutor(14) as ex: built = dict(ex.map(lambda kv: (kv[0], nvcc(kv[0].replace(" ", "_"), kv[1])[1]), cu.items()))
    for dt, n in ((torch.float32, 2**27), (torch.bfloat16, 2**28)):
        x = torch.rand(n, device="cuda").sub_(0.3).to(dt); p = torch.empty_like(x); keys = torch.randint(0, 256, (1,), dtype=torch.uint8, device="cuda"); c = torch.empty(256, dtype=torch.int32, device="cuda")
        want = x.double().cumsum(0); absum = x.double().abs().cumsum(0); eps = torch.finfo(dt).eps; idx = torch.arange(1, n + 1, device="cuda", dtype=torch.float64)
        tol = 1.5 * (0.5 * eps * want.abs() + (32 + (idx / 1024).sqrt()) * 2**-23 * absum); del absum, idx
        def check():
            err = (p.double() - want).abs(); bad = int((~(err <= tol)).sum()); used = float((err / tol).max()); p.fill_(float("nan")); print(f"    worst error {used:.3f} of what is allowed", end=""); return bad
        calls = {}
        s = torch.cuda.current_stream().cuda_stream
        for name, so in built.items():
            def make(so=so):
                if isinstance(so, str): raise RuntimeError(so)
                lib = ctypes.CDLL(str(so)); fn = lib.f32 if dt == torch.float32 else lib.bf16
                return lambda: fn(P(x), P(keys), P(p), P(c), ctypes.c_long(n), ctypes.c_long(1), ctypes.c_void_p(s))
            attempt(calls, name, make, check)
        src = (ROOT / "reference/scan_histogram/solutions/triton.py").read_text()
        for tile, warps, window in ((2048, 4, 32), (4096, 4, 32), (4096, 8, 32), (8192, 8, 32), (4096, 4, 128), (8192, 16, 32), (8192, 8, 128)):
            mod = loadsrc(f"ts{tile}_{warps}_{window}", src.replace("tile, window, warps, block = 4096, 32, 4, 4096", f"tile, window, warps, block = {tile}, {window}, {warps}, 4096"))
            attempt(calls, f"triton {tile} w{warps} window {window}", lambda: (lambda: mod.scan_histogram(x, keys, p, c, n, 1)) if False else functools.partial(mod.scan_histogram, x, keys, p, c, n, 1), check)
        for f in sorted((ROOT / "assignments/scan_histogram/milestones").glob("*.py")): attempt(calls, "triton " + f.stem, lambda: functools.partial(load(f"assignments/scan_histogram/milestones/{f.name}").scan_histogram, x, keys, p, c, n, 1), check)
        calls["torch.cumsum"] = lambda: torch.cumsum(x, 0, out=p); calls["copy"] = lambda: p.copy_(x)
        slow = {k: v for k, v in calls.items() if "1_" in k}; fast = {k: v for k, v in calls.items() if k not in slow}
        times = timed(fast, 20); times |= timed(slow, 3) if slow else {}
        table(f"scan {dt} {n}", times, "copy", 2 * n * x.element_size(), "TB/s"); del want, tol, x, p
def hist_part():
    m = 2**28; name, so = nvcc("hist", (ROOT / "var/device/scan_hist.cu").read_text())
    base = (ROOT / "reference/scan_histogram/solutions/cuda.cu").read_text() + WRAP
    _, stso = nvcc("hist_staff", base)
    src = (ROOT / "reference/scan_histogram/solutions/triton.py").read_text()
    mods = {f"triton block {b} w{w}": loadsrc(f"th{b}_{w}", src.replace("tile, window, warps, block = 4096, 32, 4, 4096", f"tile, window, warps, block = 4096, 32, {w}, {b}")) for b, w in ((2048, 4), (4096, 4), (8192, 8), (16384, 8))}
    for f in sorted((ROOT / "assignments/scan_histogram/milestones").glob("*.py")): mods["triton " + f.stem] = load(f"assignments/scan_histogram/milestones/{f.name}")
    sos = {"cu staff": stso}
    for f in sorted((ROOT / "assignments/scan_histogram/milestones").glob("*.cu")): sos["cu " + f.stem] = nvcc("h" + f.stem, f.read_text() + WRAP)[1]
    for kind in ("uniform", "zipf", "same"):
        keys = torch.randint(0, 256, (m,), dtype=torch.uint8, device="cuda") if kind == "uniform" else (torch.rand(m, device="cuda").pow(4) * 256).to(torch.uint8) if kind == "zipf" else torch.full((m,), 77, dtype=torch.uint8, device="cuda")
        c = torch.empty(256, dtype=torch.int32, device="cuda"); want = sum(torch.bincount(part.int(), minlength=256) for part in keys.chunk(16)); x = torch.rand(1, device="cuda"); p = torch.empty_like(x)
        def check():
            bad = int((c != want).sum()); c.fill_(-7); return bad
        calls = {}; s = torch.cuda.current_stream().cuda_stream
        if not isinstance(so, str):
            lib = ctypes.CDLL(str(so))
            for which, label, pers in ((1, "bank 256", (2, 4, 6)), (2, "bank 512", (2, 4)), (3, "bank 1024", (1, 2)), (4, "warp copies 256", (4, 8)), (5, "warp copies 512+1", (2, 4)), (6, "half 256", (4, 8)), (7, "half 512", (2, 4)), (8, "private bytes 256", (3,)), (9, "private bytes 128", (6,)), (11, "bank 256 u2", (4, 6)), (12, "bank 256 u4", (4, 6)), (13, "bank 512 u2", (4,)), (14, "one copy", (4,)), (15, "private halves 128", (3,)), (16, "private halves 64", (6,))):
                for per in pers:
                    if kind != "uniform" and which > 7: continue
                    attempt(calls, f"{label} x{per}", lambda which=which, per=per: (lambda: lib.hist(which, P(keys), P(c), ctypes.c_long(m), per, ctypes.c_void_p(s))), check)
            calls["read only"] = lambda: lib.hist(10, P(keys), P(c), ctypes.c_long(m), 8, ctypes.c_void_p(s))
        else: print(so)
        for label, path in sos.items():
            if not isinstance(path, str):
                l2 = ctypes.CDLL(str(path)); attempt(calls, label, lambda l2=l2: (lambda: l2.f32(P(x), P(keys), P(p), P(c), ctypes.c_long(1), ctypes.c_long(m), ctypes.c_void_p(s))), check)
            else: print(label, path)
        for label, mod in mods.items():
            if kind == "uniform" or "4096" in label: attempt(calls, label, lambda mod=mod: functools.partial(mod.scan_histogram, x, keys, p, c, 1, m), check)
        half = keys[: m // 2]; other = torch.empty_like(half); calls["copy of as many bytes"] = lambda: other.copy_(half)
        slow = {k: v for k, v in calls.items() if "1_" in k or "2_" in k}; fast = {k: v for k, v in calls.items() if k not in slow}
        times = timed(fast, 12); times |= timed(slow, 2) if slow else {}
        table(f"histogram {kind} {m}", times, "read only" if "read only" in times else "copy of as many bytes", m, "TB/s")
def err_ok(c, want, tol=2e-2): 
    e = (c.float() - want).abs(); bad = int((~(e <= tol * want.abs() + tol * want.abs().mean())).sum()); c.fill_(float("nan")); return bad
def gemm_part():
    src = (ROOT / "reference/gemm_tensor_core/solutions/triton.py").read_text()
    cfg = "block_m, block_n, block_k, group, stages = 128, 256, 64, 16, 4"
    assert cfg in src
    vs = {"staff": src}
    for label, new in (("group 8", "128, 256, 64, 8, 4"), ("3 stages", "128, 256, 64, 16, 3"), ("256x128", "256, 128, 64, 16, 4"), ("group 4", "128, 256, 64, 4, 4"), ("group 32", "128, 256, 64, 32, 4")): vs[label] = src.replace(cfg, "block_m, block_n, block_k, group, stages = " + new)
    vs["not flattened"] = src.replace("flatten=True", "flatten=False")
    vs["pointers"] = src.replace("if all(_has_descriptor(matrix) for matrix in (a, b, c)):", "if False:")
    mods = {k: loadsrc("g_" + k.replace(" ", "_"), v) for k, v in vs.items()}
    for f in sorted((ROOT / "assignments/gemm_tensor_core/milestones").glob("*.py")): mods["milestone " + f.stem] = load(f"assignments/gemm_tensor_core/milestones/{f.name}")
    for size, dt in ((4096, torch.float16), (4096, torch.bfloat16), (8192, torch.float16), (8192, torch.bfloat16)):
        a = torch.randn(size, size, device="cuda").to(dt); b = torch.randn(size, size, device="cuda").to(dt); c = torch.empty(size, size, device="cuda", dtype=dt)
        want = torch.mm(a, b.t()).float(); calls = {}
        for k, mod in mods.items(): attempt(calls, k, lambda mod=mod: functools.partial(mod.gemm, a, b, c, size, size, size, size, size, size), lambda: err_ok(c, want))
        calls["cuBLAS"] = lambda: torch.mm(a, b.t(), out=c)
        slow = {k: v for k, v in calls.items() if "milestone" in k}; fast = {k: v for k, v in calls.items() if k not in slow}
        times = timed(fast, 25 if size == 4096 else 12); times |= timed(slow, 4) if slow else {}
        table(f"gemm {dt} {size}", times, "cuBLAS", 2 * size**3, "Tflop/s"); del a, b, c, want
def epilogue_part():
    src = (ROOT / "reference/gemm_epilogue/solutions/triton.py").read_text(); vs = {"staff": src}
    cfg = "block_m, block_k, group, stages, part = 128, 64, 16, 4, 64"
    assert cfg in src
    vs["group 8"] = src.replace(cfg, "block_m, block_k, group, stages, part = 128, 64, 8, 4, 64")
    vs["3 stages"] = src.replace(cfg, "block_m, block_k, group, stages, part = 128, 64, 16, 3, 64")
    vs["not flattened"] = src.replace("flatten=True", "flatten=False")
    vs["bias at the end"] = src.replace("dtype=tl.float32) + bias[None, :]", "dtype=tl.float32)").replace("left, right = _halves(accumulator)", "left, right = _halves(accumulator + bias[None, :])")
    vs["no activation (for the cost of it)"] = src.replace("    return h * _sigmoid(1.59", "    return h\n    return h * _sigmoid(1.59").replace("    return h * _sigmoid(h)", "    return h")
    vs["no residual (for the cost of it)"] = src.replace("    part += residual_matrix.load([row, column]).to(tl.float32)\n", "")
    vs["fast division"] = src.replace("return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))", "return tl.inline_asm_elementwise('rcp.approx.ftz.f32 $0, $1;', '=f,f', [1.0 + tl.exp2(x * -1.4426950408889634)], dtype=tl.float32, is_pure=True, pack=1)")
    vs["tanh.approx (for its cost)"] = src.replace("return 1.0 / (1.0 + tl.exp2(x * -1.4426950408889634))", "return 0.5 + 0.5 * tl.inline_asm_elementwise('tanh.approx.f32 $0, $1;', '=f,f', [0.5 * x], dtype=tl.float32, is_pure=True, pack=1)")
    mods = {k: loadsrc("e_" + k.split(" (")[0].replace(" ", "_").replace(".", "_"), v) for k, v in vs.items()}
    for f in sorted((ROOT / "assignments/gemm_epilogue/milestones").glob("*.py")): mods["milestone " + f.stem] = load(f"assignments/gemm_epilogue/milestones/{f.name}")
    plain = load("reference/gemm_tensor_core/solutions/triton.py")
    for dt, m, n, p, k in ((torch.float16, 4096, 4096, 4096, 4096), (torch.bfloat16, 8192, 8192, 8192, 8192), (torch.bfloat16, 8192, 4096, 8192, 8192), (torch.bfloat16, 4096, 2048, 4096, 4096), (torch.bfloat16, 8192, 14336, 28672, 8192)):
        big = p > 10000
        a = (torch.randn(m, k, device="cuda") / 8).to(dt); b = (torch.randn(p, k, device="cuda") / k**0.5 * 8).to(dt); bias = torch.randn(p, device="cuda").to(dt); r = torch.randn(m, n, device="cuda").to(dt)
        out = torch.empty(m, n, device="cuda", dtype=dt); h = torch.empty(m, p, device="cuda", dtype=dt)
        hf = torch.mm(a, b.t()).float() + bias.float(); want = (F.gelu(hf, approximate="tanh") if p == n else F.silu(hf[:, :n]) * hf[:, n:]) + r.float(); del hf
        calls = {}
        for name, mod in mods.items():
            cost = "cost" in name
            if big and name not in ("staff", "fast division", "3 stages"): continue
            attempt(calls, name, lambda mod=mod: functools.partial(mod.gemm_epilogue, a, b, bias, r, out, m, n, p, k, k, k, n, n), (lambda: 0) if cost else (lambda: err_ok(out, want)))
        calls["our plain product"] = lambda: plain.gemm(a, b, h, m, p, k, k, k, p); calls["cuBLAS plain product"] = lambda: torch.mm(a, b.t(), out=h)
        def unfused():
            t = F.linear(a, b, bias); torch.add(F.gelu(t, approximate="tanh") if p == n else F.silu(t[:, :n]) * t[:, n:], r, out=out)
        calls["torch unfused"] = unfused
        if p == n: calls["cuBLASLt gelu fused + add"] = lambda: torch.add(torch._addmm_activation(bias, a, b.t(), use_gelu=True), r, out=out)
        slow = {q: v for q, v in calls.items() if "milestone" in q}; fast = {q: v for q, v in calls.items() if q not in slow}
        times = timed(fast, 5 if big else 15); times |= timed(slow, 3) if slow else {}
        table(f"epilogue {dt} {m}x{n} p {p} k {k}", times, "our plain product", 2 * m * p * k, "Tflop/s"); del a, b, bias, r, out, h, want
print(torch.cuda.get_device_name(), torch.__version__, triton.__version__)
for part in sys.argv[1:]:
    t = time.time()
    try: globals()[part + "_part"]()
    except Exception: traceback.print_exc()
    print(f"-- {part} took {time.time() - t:.0f} s"); sys.stdout.flush(); torch.cuda.empty_cache()
