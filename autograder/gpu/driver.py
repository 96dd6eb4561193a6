"""CUDA's virtual-memory API, as far as it is used here, with errors instead of return codes.

Every function of the driver is looked up once, when the object is made: a runner makes its own before it loads a
submission.
"""

from __future__ import annotations

import importlib
from typing import Any

from autograder.errors import GpuError, GpuMemoryError


def load_driver() -> Any:
    """The bindings of the CUDA driver.

    Raises:
        GpuError: they are not installed.
    """
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise GpuError(f"cuda-bindings cannot be imported ({error}); install the `gpu` extra") from None


class VirtualMemory:
    """Allocations of one device, in whole pages of `granularity` bytes.

    A process that uses it has a context of that device current, torch's for one.

    Args:
        ordinal: the device's number among those that this process sees.
        driver: the bindings, `cuda.bindings.driver`.

    Attributes:
        granularity: bytes; every size is a multiple of it.
    """

    def __init__(self, ordinal: int, driver: Any) -> None:
        kind = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        device = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._ok = driver.CUresult.CUDA_SUCCESS
        self._kind = kind
        self._property = driver.CUmemAllocationProp()
        self._property.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._property.location.type = device
        self._property.location.id = ordinal
        self._property.requestedHandleTypes = kind
        flags = driver.CUmemAccess_flags
        self._access = {
            writable: _access(driver.CUmemAccessDesc(), device, ordinal, flag)
            for writable, flag in (
                (True, flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                (False, flags.CU_MEM_ACCESS_FLAGS_PROT_READ),
            )
        }
        self._create = driver.cuMemCreate
        self._export = driver.cuMemExportToShareableHandle
        self._import = driver.cuMemImportFromShareableHandle
        self._release = driver.cuMemRelease
        self._reserve = driver.cuMemAddressReserve
        self._map = driver.cuMemMap
        self._set_access = driver.cuMemSetAccess
        self._unmap = driver.cuMemUnmap
        self._free = driver.cuMemAddressFree
        least = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self.granularity = int(self._done(driver.cuMemGetAllocationGranularity(self._property, least)))

    def create(self, size: int) -> Any:
        """A handle of `size` bytes of device memory, mapped nowhere."""
        return self._done(self._create(size, self._property, 0))

    def export(self, handle: Any) -> int:
        """A descriptor of it, which is the caller's to close."""
        return int(self._done(self._export(handle, self._kind, 0)))

    def receive(self, descriptor: int) -> Any:
        """A handle of what another process exported."""
        return self._done(self._import(descriptor, self._kind))

    def release(self, handle: Any) -> None:
        """Give a handle up; what is mapped stays until it is unmapped."""
        self._done(self._release(handle))

    def map(self, handle: Any, size: int, *, writable: bool) -> int:
        """Map it; its address. The mapping keeps the memory, whatever becomes of the handle."""
        address = self.reserve(size)
        try:
            self.attach(address, handle, size, writable=writable)
        except GpuError:
            self._free(address, size)
            raise
        return address

    def unmap(self, address: int, size: int) -> None:
        """Undo `map`; nothing may be using it."""
        try:
            self.detach(address, size)
        finally:
            self.free(address, size)

    def reserve(self, size: int) -> int:
        """Addresses with nothing behind them."""
        return int(self._done(self._reserve(size, 0, 0, 0)))

    def attach(self, address: int, handle: Any, size: int, *, writable: bool) -> None:
        """Map it at addresses that were reserved."""
        self._done(self._map(address, size, 0, handle, 0))
        try:
            self._done(self._set_access(address, size, [self._access[writable]], 1))
        except GpuError:
            self._unmap(address, size)
            raise

    def detach(self, address: int, size: int) -> None:
        """Undo `attach`; the addresses stay reserved."""
        self._done(self._unmap(address, size))

    def free(self, address: int, size: int) -> None:
        """Undo `reserve`."""
        self._done(self._free(address, size))

    def _done(self, returned: tuple[Any, ...]) -> Any:
        """The value of a call that went well."""
        status, *values = returned
        if status != self._ok:
            name = str(getattr(status, "name", status))
            kind = GpuMemoryError if name.endswith("OUT_OF_MEMORY") else GpuError
            raise kind(f"the CUDA driver says {name}")
        return values[0] if values else None


class PersistingCache:
    """The part of the L2 cache that may be set aside for lines that persist: this context sets none aside."""

    def __init__(self, driver: Any) -> None:
        self._reset = driver.cuCtxResetPersistingL2Cache
        driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0)

    def reset(self) -> None:
        """Make all lines that persist ordinary ones."""
        self._reset()


def _access(made: Any, kind: Any, ordinal: int, flag: Any) -> Any:
    made.location.type = kind
    made.location.id = ordinal
    made.flags = flag
    return made
