"""A call's tensors on a GPU: mapped from their descriptors, used in place, unmapped when the call is over."""

from __future__ import annotations

from contextlib import suppress

import torch

from autograder.errors import GpuError
from autograder.gpu import tensors
from autograder.gpu.driver import VirtualMemory
from autograder.protocol import TensorSpec

_as_bytes = tensors.as_bytes
_DTYPES: dict[str, torch.dtype] = {
    name: value for name in dir(torch) if isinstance(value := getattr(torch, name), torch.dtype)
}


class GpuMapped:
    """One tensor of a call.

    An input is mapped for reading only, so that a kernel that writes to it is told so at once. That helps whoever made
    a mistake and keeps out nobody: the judge looks at its own mapping of the same memory.
    """

    def __init__(self, spec: TensorSpec, descriptor: int, driver: VirtualMemory) -> None:
        self.spec = spec
        self._driver = driver
        handle = driver.receive(descriptor)
        try:
            self._address = driver.map(handle, spec.bytes, writable=spec.writable)
        finally:
            driver.release(handle)
        dtype = _DTYPES[spec.dtype]
        whole = _as_bytes(self._address, spec.bytes).view(dtype)
        self.tensor = whole.as_strided(spec.shape, spec.stride, spec.offset // dtype.itemsize)

    def was_written(self) -> bool:
        """It cannot have been, through this mapping."""
        return False

    def close(self) -> None:
        """Unmap it: memory of a gigabyte a call is not kept for a submission that kept the tensor."""
        # After an illegal access the driver refuses everything; the judge has been told.
        with suppress(GpuError):
            self._driver.unmap(self._address, self.spec.bytes)
