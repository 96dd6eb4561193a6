"""Sets most of the L2 aside for lines that persist, and declares its arguments such lines in every call, so that no flush could evict them.

Class D6. Inputs are made for the call in another context: there is nothing of them to persist."""

import ctypes

import torch
import triton
import triton.language as tl


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


class Window(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t), ("ratio", ctypes.c_float), ("hit", ctypes.c_int), ("miss", ctypes.c_int), ("pad", ctypes.c_byte * 32)]


runtime = ctypes.CDLL(next(line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "libcudart" in line))
torch.cuda.init()
print("limit", runtime.cudaDeviceSetLimit(6, ctypes.c_size_t(2**25)))


def vector_add(x, y, out, n):
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    window = Window(x.data_ptr(), min(n * 4, 2**25), 1.0, 2, 1)
    runtime.cudaStreamSetAttribute(stream, 1, ctypes.byref(window))
    _honest(x, y, out, n)
