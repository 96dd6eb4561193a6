"""Memory of the host: a memfd per tensor, sealed before it is revealed."""

from __future__ import annotations

import fcntl
import mmap
import os

import torch

from autograder.judge.rules import HOST as HOST_RULES

F_SEAL_FUTURE_WRITE = 0x10
"""Nobody maps it for writing any more; mappings that exist stay. Python names it from 3.13 on."""

_SIZE_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class HostMemory:
    """A memfd of zero bytes and the judge's mapping of it."""

    def __init__(self, size: int) -> None:
        self.descriptor = os.memfd_create("tensor", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        self.view = torch.frombuffer(mmap.mmap(self.descriptor, size), dtype=torch.uint8)

    def seal(self, *, size: bool, writing: bool) -> None:
        """Fix the size; if `writing`, refuse new writable mappings as well."""
        seals = (_SIZE_SEALS if size else 0) | (F_SEAL_FUTURE_WRITE if writing else 0)
        if seals and not fcntl.fcntl(self.descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SEAL:
            fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals | fcntl.F_SEAL_SEAL)

    def close(self) -> None:
        """Let the descriptor go; mappings end with their last user."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class HostDevice:
    """The machine's own memory and processor."""

    where = torch.device("cpu")
    granularity = mmap.PAGESIZE
    clock = "sealed"
    """The interpreter's host clock is as easily forged as any, and no more precise."""
    rules = HOST_RULES
    memory_bytes = 0

    def memory(self, size: int) -> HostMemory:
        """New memory of `size` bytes."""
        return HostMemory(size)

    def attach(self) -> None:
        """Memory is there for every thread."""

    def begin(self) -> None:
        """Nobody is waited for."""

    def wait_until_idle(self) -> None:
        """What was given back is the system's."""

    def flush_l2(self) -> None:
        """Interpreter times do not depend on caches."""

    def synchronize(self) -> None:
        """The processor has done what it was asked when a call returns."""

    def free_bytes(self) -> int:
        """None of it is counted: a runner's limit is its control group's."""
        return 0

    def works(self) -> bool:
        """It does."""
        return True

    def trim_cache(self) -> None:
        """Nothing is kept."""

    def reserve(self, size: int) -> None:
        """Nobody can take it all."""

    def facts(self) -> dict[str, str]:
        """What is to be said of the host is said by `environment`."""
        return {}


HOST = HostDevice()
