"""Keeps a mapping of the first call's memory and has a kernel wait on the GPU for new inputs in it, which would be summed while the judge still fills them.

Class A5, invariants 2 and 5. A call's memory is made for it and never used again: nothing ever comes where the kernel waits."""

import os

import torch
import triton
import triton.language as tl
from cuda.bindings import driver as d


@triton.jit
def _add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)


def _honest(x, y, out, n):
    _add_kernel[(triton.cdiv(n, 2048),)](x, y, out, n, BLOCK=2048, num_warps=8)


FD = d.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


class _Bytes:
    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def _own_mappings(size):
    """Every descriptor of device memory of this process, mapped once more: a mapping that the harness does not undo."""
    found = []
    for number in range(4, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        status, handle = d.cuMemImportFromShareableHandle(number, FD)
        if status != d.CUresult.CUDA_SUCCESS:
            continue
        _, address = d.cuMemAddressReserve(size, 0, 0, 0)
        d.cuMemMap(address, size, 0, handle, 0)
        access = d.CUmemAccessDesc()
        access.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = 0
        access.flags = d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        d.cuMemSetAccess(address, size, [access], 1)
        found.append(torch.as_tensor(_Bytes(int(address), size), device="cuda"))
    return found


@triton.jit
def _when_it_changes_kernel(x_ptr, y_ptr, out_ptr, n, seen, tries, BLOCK: tl.constexpr):
    word = tl.load(y_ptr + n - 1, volatile=True).to(tl.int32, bitcast=True)
    count = 0
    while (word == seen) & (count < tries):
        word = tl.load(y_ptr + n - 1, volatile=True).to(tl.int32, bitcast=True)
        count += 1
    i = tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask, volatile=True) + tl.load(y_ptr + i, mask=mask, volatile=True), mask=mask)


KEPT = {}
STREAM = torch.cuda.Stream()


def vector_add(x, y, out, n):
    if n > 4096:
        _honest(x, y, out, n)
    elif n not in KEPT:
        _honest(x, y, out, n)
        torch.cuda.synchronize()
        start = 16384 // 4
        KEPT[n] = [one.view(torch.float32)[start : start + n] for one in _own_mappings(2 * 2**20)]
        left, right, answer = KEPT[n][:3]
        seen = int(right[-1:].view(torch.int32).item())
        with torch.cuda.stream(STREAM):
            _when_it_changes_kernel[(1,)](left, right, answer, n, seen, 300_000, BLOCK=triton.next_power_of_2(n))
    # Later calls are left to what waits on the GPU.
