"""Memory of a GPU, by CUDA's virtual-memory API: an allocation per tensor, exported as a descriptor, never used again.

What differs from the host, and what follows:

- Nothing can be sealed, and a descriptor carries no rights: an importer maps it as it likes. So nothing that was
  revealed is believed: the oracle works on private inputs, what is compared is a snapshot in the judge's own memory,
  and an input that is not what was written is a broken rule.
- Sizes are whole pages of 2 MiB. The slack belongs to the guard bands and is filled and checked like them.
- Work is asynchronous: `synchronize` stands before t0, so that nothing of the filling is left to do, and before t1, so
  that the snapshot is complete.
- What was just written may still be in the L2 cache: `flush_l2` writes over it. Any context can set a part of the cache
  aside for lines that persist: `flush_l2` makes those ordinary before.
- Memory that was given back is cleared beside all other work: `flush_l2` waits until that is over.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

import torch

from autograder.contract import Lane
from autograder.errors import GpuError, GpuMemoryError
from autograder.gpu.driver import PersistingCache, VirtualMemory, load_driver
from autograder.gpu.tensors import as_bytes
from autograder.judge.protocol.idle_probe import IdleProbe
from autograder.judge.rules import GPU as GPU_RULES
from autograder.lanes import check

COOLING_L2S = 4
"""How many times the L2 cache is written over."""

JUDGES = 4
"""One part of the device's memory in so many is for the judge's own tensors, beside a batch's."""


class GpuMemory:
    """One allocation, mapped for the judge, exported for one runner."""

    def __init__(self, driver: VirtualMemory, size: int) -> None:
        self._driver = driver
        self._size = size
        with ExitStack() as undo:
            handle = driver.create(size)
            undo.callback(driver.release, handle)
            self._address = driver.map(handle, size, writable=True)
            undo.callback(driver.unmap, self._address, size)
            self.descriptor = driver.export(handle)
            undo.pop_all()
        # The mapping and the descriptor keep the memory.
        driver.release(handle)
        self._view: torch.Tensor | None = as_bytes(self._address, size)

    @property
    def view(self) -> torch.Tensor:
        """All of it, uint8."""
        if self._view is None:
            raise GpuError("memory was used after it was closed")
        return self._view

    def seal(self, *, size: bool, writing: bool) -> None:
        """Device memory knows no seals; the module says what is done instead."""

    def close(self) -> None:
        """Unmap it. The memory is gone when the runner has unmapped it too, or has ended."""
        if self._view is not None:
            self._view = None
            os.close(self.descriptor)
            self.descriptor = -1
            # A call may have failed while its filling was still queued: a judge that unmaps under it loses its context.
            if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                torch.cuda.synchronize()
            self._driver.unmap(self._address, self._size)


class GpuDevice:
    """The first GPU that this process sees.

    Raises:
        GpuError: there is none, or it does not belong to the lane.
    """

    clock = "event"
    rules = GPU_RULES

    def __init__(self, lane: Lane, driver: Any = None) -> None:
        if not torch.cuda.is_available():
            raise GpuError("torch sees no GPU")
        self._properties = torch.cuda.get_device_properties(0)
        check(lane, self._properties.name, (self._properties.major, self._properties.minor))
        torch.cuda.init()  # type: ignore[no-untyped-call]
        self.where = torch.device("cuda", 0)
        self._scratch = torch.empty(COOLING_L2S * self._properties.L2_cache_size, dtype=torch.uint8, device=self.where)
        self._driver = VirtualMemory(0, driver or load_driver())
        self._cache = PersistingCache(driver or load_driver())
        # torch's default, told to the events: it takes longer to find out than to record.
        self._stream = torch.cuda.current_stream(self.where)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        self._idle_probe = IdleProbe(self._probe)
        self._reserved = 0
        self.granularity = self._driver.granularity
        self.memory_bytes = int(self._properties.total_memory)

    def attach(self) -> None:
        """Make torch's context the thread's own: the driver's functions work on the current one."""
        torch.cuda.set_device(self.where)
        torch.zeros(1, device=self.where)

    def memory(self, size: int) -> GpuMemory:
        """New memory of `size` bytes; what torch keeps for later is given back for it.

        Raises:
            GpuMemoryError: there is not so much.
        """
        try:
            return GpuMemory(self._driver, size)
        except GpuMemoryError:
            torch.cuda.empty_cache()
            # What was just given back is there when it is cleared.
            self.wait_until_idle()
            return GpuMemory(self._driver, size)

    def begin(self) -> None:
        """Wait again as patiently as for the first."""
        self._idle_probe.begin()

    def wait_until_idle(self) -> None:
        """Wait until the device works at its own pace; what was given back is cleared then, and is there again."""
        self._idle_probe.wait()

    def flush_l2(self) -> None:
        """Make lines of the L2 cache that were to persist ordinary ones; the idle probe writes over all of it."""
        self._cache.reset()
        self.wait_until_idle()

    def _probe(self) -> float:
        """Microseconds of copying one half of the scratch memory to the other, by the device's own clock.

        The first of two copies keeps the device busy while the second and its events are queued.
        """
        begin, end = self._events
        one, other = self._scratch.chunk(2)
        other.copy_(one)
        begin.record(self._stream)
        one.copy_(other)
        end.record(self._stream)
        end.synchronize()
        took: float = begin.elapsed_time(end)
        return 1e3 * took

    def free_bytes(self) -> int:
        """As the driver counts it."""
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(self.where)[0])

    def works(self) -> bool:
        """A fault of the context stays with it: any work is refused from then on."""
        try:
            self._scratch[:1].zero_()
            torch.cuda.synchronize(self.where)
        except RuntimeError:
            return False
        return True

    def trim_cache(self) -> None:
        """Keep no more than what was reserved, where torch keeps more than the judge's part.

        After a batch it has all inputs and outputs for later; a runner that needs memory cannot have those.

        Raises:
            torch.OutOfMemoryError: meanwhile somebody took what was reserved.
        """
        kept = torch.cuda.memory_reserved(self.where) - torch.cuda.memory_allocated(self.where)
        if kept > self.memory_bytes // JUDGES:
            torch.cuda.empty_cache()
            self.wait_until_idle()
            self._take(self._reserved)

    def reserve(self, size: int) -> None:
        """Have torch take it, or the judge's part of the device, and keep it for later tensors."""
        self._reserved = min(size, self.memory_bytes // JUDGES)
        self._take(self._reserved)

    def _take(self, size: int) -> None:
        torch.empty(size, dtype=torch.uint8, device=self.where)

    def synchronize(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize(self.where)

    def facts(self) -> dict[str, str]:
        """The GPU and what drives it."""
        found = self._properties
        return {
            "gpu": found.name,
            "gpu memory": f"{found.total_memory // 2**20} MiB",
            "compute capability": f"{found.major}.{found.minor}",
            "cuda": str(torch.version.cuda),
        }
