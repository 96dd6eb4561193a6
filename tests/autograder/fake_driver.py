"""A CUDA driver without a device: handles, descriptors, addresses and mappings, with every rule it keeps checked.

It stands in where a machine has no GPU, under `autograder.gpu.driver` and `autograder.judge.protocol.gpu`, which are
what is tested; that a real driver behaves so is for `tests/gpu`.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

PAGE = 2 * 2**20
OK, REFUSED = SimpleNamespace(name="CUDA_SUCCESS"), SimpleNamespace(name="CUDA_ERROR_OUT_OF_MEMORY")


@dataclass
class FakeDriver:
    """What is alive: handles and reserved, mapped and accessible addresses. `fails_at` refuses a call by its name."""

    fails_at: str = ""
    handles: set[int] = field(default_factory=set)
    reserved: dict[int, int] = field(default_factory=dict)
    mapped: dict[int, int] = field(default_factory=dict)
    writable: dict[int, bool] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    CUresult = SimpleNamespace(CUDA_SUCCESS=OK)
    CUmemAllocationHandleType = SimpleNamespace(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR="fd")
    CUmemLocationType = SimpleNamespace(CU_MEM_LOCATION_TYPE_DEVICE="device")
    CUmemAllocationType = SimpleNamespace(CU_MEM_ALLOCATION_TYPE_PINNED="pinned")
    CUmemAccess_flags = SimpleNamespace(CU_MEM_ACCESS_FLAGS_PROT_READWRITE="rw", CU_MEM_ACCESS_FLAGS_PROT_READ="r")
    CUmemAllocationGranularity_flags = SimpleNamespace(CU_MEM_ALLOC_GRANULARITY_MINIMUM="least")

    @staticmethod
    def CUmemAllocationProp() -> Any:  # noqa: N802 -- the driver's name.
        return SimpleNamespace(location=SimpleNamespace())

    @staticmethod
    def CUmemAccessDesc() -> Any:  # noqa: N802
        return SimpleNamespace(location=SimpleNamespace())

    def nothing_left(self) -> bool:
        return not (self.handles or self.reserved or self.mapped)

    def _answer(self, name: str, *values: Any) -> tuple[Any, ...]:
        return (REFUSED, *(None for _ in values)) if name == self.fails_at else (OK, *values)

    def cuMemGetAllocationGranularity(self, prop: Any, _: Any) -> Any:  # noqa: N802
        assert (prop.location.type, prop.requestedHandleTypes) == ("device", "fd")
        return OK, PAGE

    def cuMemCreate(self, size: int, *_: Any) -> Any:  # noqa: N802
        assert size % PAGE == 0
        if self.fails_at == "create":
            return REFUSED, None
        handle = next(self._numbers)
        self.handles.add(handle)
        return OK, handle

    def cuMemExportToShareableHandle(self, handle: int, kind: str, _: int) -> Any:  # noqa: N802
        assert handle in self.handles
        assert kind == "fd"
        return self._answer("export") if self.fails_at == "export" else (OK, os.memfd_create("exported"))

    def cuMemImportFromShareableHandle(self, descriptor: int, _: str) -> Any:  # noqa: N802
        os.fstat(descriptor)
        handle = next(self._numbers)
        self.handles.add(handle)
        return OK, handle

    def cuMemRelease(self, handle: int) -> Any:  # noqa: N802
        self.handles.remove(handle)
        return (OK,)

    def cuMemAddressReserve(self, size: int, *_: Any) -> Any:  # noqa: N802
        if self.fails_at == "reserve":
            return REFUSED, None
        address = next(self._numbers) * 2**32
        self.reserved[address] = size
        return OK, address

    def cuMemMap(self, address: int, size: int, _: int, handle: int, __: int) -> Any:  # noqa: N802
        # A part may be mapped: a real driver was seen to allow it.
        assert self.reserved[address] >= size
        assert handle in self.handles
        if self.fails_at != "map":
            self.mapped[address] = size
        return self._answer("map")

    def cuMemSetAccess(self, address: int, size: int, access: list[Any], count: int) -> Any:  # noqa: N802
        assert self.mapped[address] == size
        assert count == len(access) == 1
        self.writable[address] = access[0].flags == "rw"
        return self._answer("access")

    def cuMemUnmap(self, address: int, size: int) -> Any:  # noqa: N802
        assert self.mapped.pop(address) == size
        return (OK,)

    def cuMemAddressFree(self, address: int, size: int) -> Any:  # noqa: N802
        assert address not in self.mapped
        assert self.reserved.pop(address) == size
        return (OK,)
