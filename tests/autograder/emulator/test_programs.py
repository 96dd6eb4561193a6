"""Programs as they are written for GPUs: honest ones run, and what only a GPU has is refused by name, with its line.

Each of `programs/` adds two vectors if all that it uses does what it does on a GPU. nvcc takes every one.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from autograder.emulator import refusals
from autograder.emulator.build import CompileError, build
from autograder.emulator.translate import MalformedError, UnsupportedError, not_here
from tests.autograder.emulated import FORWARD, REVERSE, SHUFFLED

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.cu"))
GO = """
extern "C" void go(const T* x, const T* y, T* out, int n) { vector_add<T>(x, y, out, n, nullptr); }
"""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_honest_program_runs(kernel, program: Path) -> None:
    name, dtype = ("__half", torch.float16) if "half" in program.stem else ("float", torch.float32)
    add = kernel(program.read_text() + GO.replace("T", name))
    for order in (FORWARD, REVERSE, SHUFFLED):
        x, y, out = (
            torch.randn(1001).to(dtype),
            torch.randn(1001).to(dtype),
            torch.full((1001,), torch.nan, dtype=dtype),
        )
        assert add(x, y, out, 1001, order=order, races=True) == ""
        assert torch.equal(out, x + y)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("void f() {\n  cudaGraph_t graph;\n}", "line 2: `cudaGraph_t` (CUDA graphs)"),
        ("void f() { cudaLaunchCooperativeKernel(0, 1, 1, 0); }", "`cudaLaunchCooperativeKernel` (cooperative"),
        ("template <class T>\nvoid f() {\n  cudaGraphLaunch(0, 0);\n}", "line 3: `cudaGraphLaunch` (CUDA graphs)"),
        ("texture<float, 2> image;", "line 1: `texture` (textures"),
        ("__device__ float f(cudaTextureObject_t t) { return tex2D<float>(t, 0); }", "`cudaTextureObject_t` (text"),
        ("__global__ void __cluster_dims__(2, 1, 1) k() {}", "line 1: thread-block clusters"),
        (
            "#include <cooperative_groups.h>\nauto cluster = cooperative_groups::this_cluster();",
            "line 2: `this_cluster` (thread-block clusters)",
        ),
        (
            "#include <cooperative_groups.h>\nusing Memory = cooperative_groups::block_tile_memory<128>;",
            "line 2: `block_tile_memory` (tiles of more than 32 threads)",
        ),
        ("void f() { cuInit(0); }", "line 1: `cuInit` (the driver API)"),
        ("__device__ __nv_fp8_e4m3 small;", "`__nv_fp8_e4m3` (floats of 8"),
        ("#include <cuda_fp8.h>\n__nv_fp8_e5m2 small;", "line 2: `__nv_fp8_e5m2` (floats of 8"),
        ("#include <thrust/scan.h>\nvoid f() { thrust::sort(0, 0); }", "line 2: `thrust` (Thrust)"),
        ("#include <thrust/scan.h>\nusing namespace thrust;", "line 2: `thrust` (Thrust)"),
        ("#include <curand_kernel.h>\n__device__ curandState s;", "line 2: `curandState` (cuRAND)"),
        ("#include <cublasXt.h>\nvoid f() {\n  cublasXtHandle_t h;\n}", "line 3: `cublasXtHandle_t` (cuBLAS)"),
        ("#include <cublasLt.h>\nint f() {\n  return CUBLASLT_ORDER_ROW;\n}", "line 3: `CUBLASLT_ORDER_ROW` (cuBLAS)"),
        ("#include <cudnn.h>\nvoid check(cudnnStatus_t status) {}", "line 2: `cudnnStatus_t` (cuDNN)"),
        ('void f() { nvtxRangePushA("a"); }', "line 1: `nvtxRangePushA` (marks for the profiler)"),
        ("\n#include <cuda/barrier>", "line 2: libcu++ (<cuda/barrier>)"),
        ("__global__ void k() {\n  __shared__ __mbarrier_t bar;\n}", "line 2: `__mbarrier_t` (barriers in shared"),
        ('#define PTX asm\nPTX("nop;");', "line 2: inline PTX"),
        ('#define JOIN(a, b) a##b\nJOIN(__as, m__)("nop;");', "line 2: inline PTX"),
    ],
)  # fmt: skip
def test_what_only_a_gpu_has_is_named(tmp_path, prepared, source: str, says: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        build(source, tmp_path, prepared, filename="mine.cu")
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            "int f() {\n  return 1\uff1b\n}",
            "line 2: the character U+FF1B (fullwidth semicolon) is not valid in C++. Write ;.",
        ),
        ("int a =\u00a01;", "line 1: the character U+00A0 (no-break space) is not valid in C++. Write a space."),
        ("const char* a = \u201cb\u201d;", 'U+201C (left double quotation mark) is not valid in C++. Write ".'),
        ("int a = 2 \u2212 1;", "line 1: the character U+2212 (minus sign) is not valid in C++. Write -."),
        ("fl\u043eat a;", "`fl\u043eat` is not declared. It has letters that are not ASCII: U+043E (cyrillic small"),
        ("int f(int \u0430) {\n  return a;\n}", "line 1: `\u0430` is not `a`: it has letters that are not ASCII: U+"),
        ('#include "helper_math.h"', "line 1: there is no header `helper_math.h` here. A submission is one file"),
        ("\n#include <cub/cubb.cuh>", "line 2: there is no header `cub/cubb.cuh` here"),
        ("#include <thrust/sort>", "line 1: there is no header `thrust/sort` here"),
        ("#include <cub/cub.cuh>\n#include <cub/cub.cuh/cub.cuh>", "line 2: there is no header `cub/cub.cuh/cub.cuh` "),
        ("#include <cub/a>\n#include <cub/a/b>", "line 1: there is no header `cub/a` here"),
        (f"int a;\n#include <cub/{'x' * 300}>", f"line 2: there is no header `cub/{'x' * 300}` here"),
        ("#include <cub/../../kernel.cuh>", "line 1: there is no header `cub/../../kernel.cuh` here"),
        ('\n#pragma GCC pch_preprocess "a"', "the file names a precompiled header"),
    ],
)  # fmt: skip
def test_what_looks_right_and_is_not_is_named(tmp_path, prepared, source: str, says: str) -> None:
    with pytest.raises(MalformedError) as refused:
        build(source, tmp_path, prepared, filename="mine.cu")
    assert says in str(refused.value)


def test_a_librarys_header_may_stand_in_a_file_that_does_not_use_it(kernel) -> None:
    unused = kernel("""#include <cublas_v2.h>
        #include <cub/cub.cuh>
        #include <thrust/device_vector.h>
        #include <cuda_fp8.h>
        #include "curand_kernel.h"
        #if __has_include(<cudnn.h>)
        #error it is not here
        #endif
        __global__ void k(float* out) { *out = 3; }
        extern "C" void go(float* out) { k<<<1, 1>>>(out); }""")
    out = torch.zeros(1)
    assert unused(out) == ""
    assert out.item() == 3


def test_a_file_may_include_32_of_them(tmp_path, prepared) -> None:
    names = sorted(refusals.library_headers())[:33]
    lines = [f"#include <{name}>\n" for name in names]
    for folder in ("few", "many"):
        (tmp_path / folder).mkdir()
    build("".join(lines[:32]) + lines[0], tmp_path / "few", prepared)
    with pytest.raises(UnsupportedError, match=rf"line 33: .*{re.escape(names[32])}"):
        build("".join(lines), tmp_path / "many", prepared)


def test_every_header_of_a_library_that_may_be_included_is_one_of_a_known_library() -> None:
    assert [name for name in refusals.library_headers() if not name.startswith(tuple(refusals.LIBRARIES))] == []
    assert [
        start for start in refusals.LIBRARIES if not any(n.startswith(start) for n in refusals.library_headers())
    ] == []


CUBLAS = """#include <cublasLt.h>
    cublasLtHandle_t light;
    void check(cublasStatus_t status, int line) { if (status != CUBLAS_STATUS_SUCCESS) printf("%d", line); }
    void theirs(cublasHandle_t handle, const float* a, float* out, int n) {
      const float one = 1, zero = 0;
      check(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, a, n, a, n, &zero, out, n), __LINE__);
    }
    __global__ void k(float* out) { *out = 3; }
    // As the harness calls a launcher: only there can one be left before its end.
    extern "C" void cuda_emulator_call(void (*launcher)(void*), void* argument);
    void measure(void* out) {
      cublasHandle_t handle;
      if (light != nullptr) check(cublasLtCreate(&light), __LINE__);
      check(cublasCreate(&handle), __LINE__);
      theirs(handle, static_cast<float*>(out), static_cast<float*>(out), 1);
    }
    extern "C" void go(float* out, int which) {
      if (which) cuda_emulator_call(measure, out);
      else k<<<1, 1>>>(out);
    }"""


def test_a_file_may_hold_a_measurement_of_cublas_beside_its_kernels(kernel) -> None:
    both = kernel(CUBLAS)
    out = torch.zeros(1)
    assert both(out, 0) == ""
    assert out.item() == 3
    assert "`cublasCreate` (cuBLAS) cannot run on the CPU lane" in both(out, 1)
    assert (both.kind, both.line) == ("GpuOnly", 14)


CURAND = """#include <curand.h>
    #define CHECKED(call) { check((call), __FILE__, __LINE__); }
    void check(curandStatus_t status, const char* file, int line) {
      if (status != CURAND_STATUS_SUCCESS) printf("%d %s %d", status, file, line);
    }
    __global__ void k(float* out) { *out = 3; }
    // As the harness calls a launcher: only there can one be left before its end.
    extern "C" void cuda_emulator_call(void (*launcher)(void*), void* argument);
    void fill(void* out) {
      curandGenerator_t generator;
      CHECKED(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
      CHECKED(curandSetPseudoRandomGeneratorSeed(generator, 1234ULL));
      CHECKED(curandGenerateUniform(generator, static_cast<float*>(out), 1));
      CHECKED(curandDestroyGenerator(generator));
    }
    extern "C" void go(float* out, int which) {
      if (which) cuda_emulator_call(fill, out);
      else k<<<1, 1>>>(out);
    }"""


def test_a_file_may_draw_its_inputs_by_curand_where_nobody_reaches_it(kernel) -> None:
    both = kernel(CURAND)
    out = torch.zeros(1)
    assert both(out, 0) == ""
    assert out.item() == 3
    assert "`curandCreateGenerator` (cuRAND) cannot run on the CPU lane" in both(out, 1)
    assert (both.kind, both.line) == ("GpuOnly", 11)


def test_letters_of_other_alphabets_may_stand_where_they_may_in_cuda(kernel) -> None:
    named = kernel("""__global__ void k(float* out) { __shared__ float \u03c3[4]; \u03c3[1] = 2; out[0] = \u03c3[1]; }
        // \uff1b and \u201cso on\u201d
        extern "C" void go(float* out) { const char* text = "\uff1b"; k<<<1, text[0] != 0>>>(out); }""")
    out = torch.zeros(1)
    assert named(out) == ""
    assert out.item() == 2


@pytest.mark.parametrize(
    ("call", "line"),
    [
        ('asm volatile("trap;")', 3),
        ("cooperative_groups::this_grid().sync()", 3),
        ("cooperative_groups::sync(cooperative_groups::this_grid())", 3),
    ],
)
def test_what_only_a_gpu_can_do_is_told_where_it_is_reached(kernel, call: str, line: int) -> None:
    reached = kernel(f"""#include <cooperative_groups.h>
        __device__ void f() {{
          {call};
        }}
        __global__ void k(int n) {{ if (n > 1) f(); }}
        extern "C" void go(int n) {{ k<<<1, 1>>>(n); }}""")
    assert reached(1) == ""
    trouble = reached(2)
    assert trouble.endswith(not_here("")[1:])
    assert (reached.kind, reached.line) == ("GpuOnly", line)


def test_the_lines_that_a_file_says_it_has_are_not_believed(tmp_path, prepared) -> None:
    for directive in ('#line 77 "other.cu"', '# 77 "other.cu" 1', '%:line 77 "other.cu"', '/**/ # /**/ 77 "/x" 3'):
        with pytest.raises(CompileError, match=r"mine\.cu:2:\d+: error: 'missing' was not declared"):
            build(f"{directive}\nint a = missing;", tmp_path, prepared, filename="mine.cu")


def test_what_is_copied_later_is_not_there_before_it_is_waited_for(kernel) -> None:
    copies = kernel("""#include <cuda_pipeline.h>
        __global__ void k(const float* x, float* out, int waits) {
          __shared__ float s[32];
          __pipeline_memcpy_async(&s[threadIdx.x], x + threadIdx.x, sizeof(float));
          __pipeline_commit();
          if (waits) __pipeline_wait_prior(0);
          out[threadIdx.x] = s[threadIdx.x];
        }
        extern "C" void go(const float* x, float* out, int waits) { k<<<1, 32>>>(x, out, waits); }""")
    x, out = torch.randn(32), torch.zeros(32)
    assert copies(x, out, 1) == ""
    assert torch.equal(out, x)
    assert copies(x, out, 0) == ""
    assert (out < -1e6).all()
    assert "reads element 31 of a, which has 31 elements (0 to 30)" in copies(x[:31], out, 1)
    assert copies.line == 4


HEAP = """
    __global__ void k(int* out, int what) {{
      {body}
    }}
    extern "C" void go(int* out, int what) {{ k<<<1, 4>>>(out, what); }}
"""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "volatile int* p = (int*)malloc(16); p[4] = 1; free((void*)p);",
            "writes byte 16 of memory from malloc or new, which has 16",
        ),
        ("int* p = new int[4]; delete[] p; *(volatile int*)p = 1;", "an illegal memory access"),
        (
            "int* p = new int[4]; delete[] p; delete[] p;",
            "frees what no kernel has from malloc or new, or frees it twice",
        ),
        ("free(out);", "frees what no kernel has from malloc or new"),
        ("out[threadIdx.x] = malloc(9 << 20) == nullptr && new char[9 << 20] == nullptr;", ""),
        ("int* p = new int; out[threadIdx.x] = *p != 0; delete p;", ""),
    ],
)
def test_memory_that_a_kernel_made_is_its_own_until_it_is_freed(kernel, body: str, says: str) -> None:
    heap = kernel(HEAP.format(body=body))
    out = torch.zeros(4, dtype=torch.int32)
    trouble = heap(out, 0)
    assert (says in trouble) if says else (trouble == "")
    assert says or out.tolist() == [1, 1, 1, 1]


def test_a_copy_in_a_wrong_direction_is_noticed_once(kernel, capfd) -> None:
    copies = kernel("""extern "C" void go(float* from, float* to, int n) {
          cudaMemcpy(to, from, n * 4, cudaMemcpyHostToDevice);
          cudaMemcpy(to, from, n * 4, cudaMemcpyDeviceToDevice);
        }""")
    x, out = torch.randn(8), torch.zeros(8)
    assert copies(x, out, 8) == copies(x, out, 8) == ""
    assert torch.equal(x, out)
    said = capfd.readouterr().err
    assert said.count("notice: the cudaMemcpy at line 2 copies from device memory and says that it is the host's") == 1
    assert "line 3" not in said


def test_every_name_that_only_a_gpu_has_is_for_something() -> None:
    families = refusals.families()
    assert families["cudaGraphLaunch"] == "CUDA graphs"
    assert len(families) > 900
    assert all(families.values())
