"""A call's tensors on a GPU: mapped from their descriptors, used in place, unmapped when the call is over.

In a batch the judge's clock runs while inputs are mapped. So addresses are reserved and tensors made before, over a
page that is then taken away, and a few calls of the driver are left to do for each call of the batch, while the one
before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import torch

from autograder.errors import GpuError
from autograder.gpu import tensors
from autograder.gpu.driver import VirtualMemory, load_driver
from autograder.protocol import TensorSpec

REHEARSALS = 4
"""A process that was stopped finds all caches cold: the first mapping and launch take five times as long."""

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
        self.tensor = _tensor(self._address, spec)

    def was_written(self) -> bool:
        """It cannot have been, through this mapping."""
        return False

    def close(self) -> None:
        """Unmap it: memory of a gigabyte a call is not kept for a submission that kept the tensor."""
        # After an illegal access the driver refuses everything; the judge has been told.
        with suppress(GpuError):
            self._driver.unmap(self._address, self.spec.bytes)


class GpuSlab:
    """All inputs, or all outputs, of one call of a batch, in one allocation; `tensors` by name.

    Args:
        specs: `bytes` is the size of the slab, and `offset` counts from its start.
    """

    def __init__(self, specs: Sequence[TensorSpec], driver: VirtualMemory) -> None:
        self._driver = driver
        self._size = specs[0].bytes
        self._writable = specs[0].writable
        self._address = driver.reserve(self._size)
        self._attached = False
        self.tensors = self._made(specs)

    def _made(self, specs: Sequence[TensorSpec]) -> dict[str, torch.Tensor]:
        """Tensors over the addresses; torch asks the driver about the first of them, so a page is there meanwhile."""
        page = self._driver.create(self._driver.granularity)
        self._driver.attach(self._address, page, self._driver.granularity, writable=False)
        self._driver.release(page)
        try:
            return {spec.name: _tensor(self._address, spec) for spec in specs}
        finally:
            self._driver.detach(self._address, self._driver.granularity)

    def attach(self, descriptor: int) -> None:
        """Map the memory behind it."""
        handle = self._driver.receive(descriptor)
        self._driver.attach(self._address, handle, self._size, writable=self._writable)
        self._attached = True
        self._driver.release(handle)

    def close(self) -> None:
        """Unmap it."""
        self.tensors = {}
        with suppress(GpuError):
            if self._attached:
                self._driver.detach(self._address, self._size)
            self._driver.free(self._address, self._size)


class Rehearsal:
    """What comes first when a batch is revealed, done once on a page of one's own: mapping memory from a descriptor.

    A process that was stopped finds its caches cold, and the judge's clock would run while they fill.
    """

    def __init__(self, driver: VirtualMemory) -> None:
        self._driver = driver
        handle = driver.create(driver.granularity)
        self._descriptor = driver.export(handle)
        driver.release(handle)
        self._address = driver.reserve(driver.granularity)

    def run(self) -> None:
        """Map the page and unmap it."""
        handle = self._driver.receive(self._descriptor)
        self._driver.attach(self._address, handle, self._driver.granularity, writable=False)
        self._driver.release(handle)
        self._driver.detach(self._address, self._driver.granularity)


class GpuMemory:
    """What the loaders of a GPU lane have in common: a call's tensors in the device's memory.

    What wakes the device before a batch is each language's own: the first call of a batch waits for other things.
    """

    _driver: VirtualMemory
    _rehearsal: Rehearsal

    def begin(self) -> None:
        """Get ready to map; the caller has taken a context."""
        self._driver = VirtualMemory(0, load_driver())
        self._rehearsal = Rehearsal(self._driver)

    def rehearse(self, launch: Callable[[], object]) -> None:
        """Map a page and launch something, a few times: what comes first in a batch, so that its code is at hand."""
        for _ in range(REHEARSALS):
            self._rehearsal.run()
            launch()

    def map(self, spec: TensorSpec, descriptor: int) -> GpuMapped:
        """Map device memory."""
        return GpuMapped(spec, descriptor, self._driver)

    def slab(self, specs: Sequence[TensorSpec]) -> GpuSlab:
        """An allocation for each."""
        return GpuSlab(specs, self._driver)


def _tensor(address: int, spec: TensorSpec) -> torch.Tensor:
    """The tensor in memory at an address."""
    dtype = _DTYPES[spec.dtype]
    whole = _as_bytes(address, spec.bytes).view(dtype)
    return whole.as_strided(spec.shape, spec.stride, spec.offset // dtype.itemsize)
