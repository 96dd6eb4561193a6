"""Writes machine code over `cudaEventElapsedTime` and `cuEventElapsedTime` in the loaded libraries: every event is a microsecond long.

Class A2. Nothing in that process can prevent it; the sealed clock bounds what comes of it."""

import ctypes
import platform
import struct

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


# mov dword [rdi], 1e-3f; xor eax, eax; ret
CODE = b"\xc7\x07" + struct.pack("<f", 1e-3) + b"\x31\xc0\xc3"
NAMES = ("cudaEventElapsedTime", "cudaEventElapsedTime_v2", "cuEventElapsedTime", "cuEventElapsedTime_v2")


def _libraries():
    with open("/proc/self/maps") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if len(line.split(None, 5)) > 5}
    return [path for path in paths if "libcudart" in path or "libcuda.so" in path]


def _overwrite(address):
    page = address & ~0xFFF
    if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(8192), 7) == 0:
        ctypes.memmove(address, CODE, len(CODE))
        return True
    return False


libc = ctypes.CDLL(None, use_errno=True)
done = []
if platform.machine() == "x86_64":
    for path in _libraries():
        library = ctypes.CDLL(path)
        for name in NAMES:
            if hasattr(library, name) and _overwrite(ctypes.cast(getattr(library, name), ctypes.c_void_p).value):
                done.append(name)
print("detoured", done)


def vector_add(x, y, out, n):
    _honest(x, y, out, n)
