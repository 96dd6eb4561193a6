"""Right, and not in the rung's language: a kernel of CUDA C++, compiled by NVRTC and launched through the driver.

Class E4."""

import ctypes

import torch
from cuda.bindings import driver, nvrtc

SOURCE = """
extern "C" __global__ void add_float32(const float *x, const float *y, float *out, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
#define HALF(NAME, TYPE) extern "C" __global__ void add_##NAME( \\
    const unsigned short *x, const unsigned short *y, unsigned short *out, long long n) { \\
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; \\
    if (i < n) asm("add.rn." TYPE " %0, %1, %2;" : "=h"(out[i]) : "h"(x[i]), "h"(y[i])); \\
}
HALF(float16, "f16")
HALF(bfloat16, "bf16")
"""
FUNCTIONS = {}


def _checked(answer):
    assert int(answer[0]) == 0, answer[0]
    return answer[1] if len(answer) > 1 else None


def _load():
    major, minor = torch.cuda.get_device_capability()
    program = _checked(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"add.cu", 0, [], []))
    option = f"--gpu-architecture=sm_{major}{minor}".encode()
    _checked(nvrtc.nvrtcCompileProgram(program, 1, [option]))
    code = b" " * _checked(nvrtc.nvrtcGetCUBINSize(program))
    _checked(nvrtc.nvrtcGetCUBIN(program, code))
    module = _checked(driver.cuModuleLoadData(code))
    for name in ("float32", "float16", "bfloat16"):
        FUNCTIONS[name] = _checked(driver.cuModuleGetFunction(module, f"add_{name}".encode()))


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    if not FUNCTIONS:
        _load()
    values = (x.data_ptr(), y.data_ptr(), out.data_ptr(), n)
    types = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_longlong)
    function = FUNCTIONS[str(x.dtype).removeprefix("torch.")]
    stream = torch.cuda.current_stream().cuda_stream
    _checked(driver.cuLaunchKernel(function, -(-n // 256), 1, 1, 256, 1, 1, 0, stream, (values, types), 0))
