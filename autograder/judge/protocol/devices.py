"""Where the judge's tensors live: the one seam between grading on a CPU and on a GPU.

    host    memfds, sealed; any page of them is there for whoever has the descriptor
    gpu     CUDA's virtual-memory API; an allocation per tensor, exported as a descriptor

Buffers, calls, checks and clocks are written against `Device` and `Memory` and know no more.
"""

from __future__ import annotations

import functools
from typing import Protocol

import torch

from autograder.contract import Lane
from autograder.judge.protocol.host import HOST
from autograder.judge.rules import Rules


class Memory(Protocol):
    """One tensor's memory: the judge's own mapping, and the descriptor with which a runner maps it too."""

    @property
    def descriptor(self) -> int:
        """To be sent at t0 and not before; -1 once it is closed."""

    @property
    def view(self) -> torch.Tensor:
        """All of it, uint8, contiguous, until it is closed."""

    def seal(self, *, size: bool, writing: bool) -> None:
        """Fix the size and refuse new writable mappings, as far as this kind of memory can."""

    def close(self) -> None:
        """Let it go; it is never used again. May be called again."""


class Device(Protocol):
    """One kind of memory and the device that computes on it."""

    @property
    def where(self) -> torch.device:
        """For tensors of the judge's own."""

    @property
    def granularity(self) -> int:
        """Bytes; memory is made in multiples of it."""

    @property
    def clock(self) -> str:
        """Which clock ranks: `event` or `sealed`."""

    @property
    def rules(self) -> Rules:
        """How it measures."""

    def attach(self) -> None:
        """Have the calling thread be able to use it."""

    def memory(self, size: int) -> Memory:
        """New memory of `size` bytes, a multiple of `granularity`; nothing is known of its contents."""

    def begin(self) -> None:
        """Another submission comes, whose disturbances are waited for as long as any other's."""

    def wait_until_idle(self) -> None:
        """Wait until nothing disturbs the device, and memory that was given back can be had again."""

    def flush_l2(self) -> None:
        """Have no cache hold what was just written, and wait until nothing disturbs the device."""

    def synchronize(self) -> None:
        """Wait until everything that was asked of the device is done; before a clock is read."""

    def free_bytes(self) -> int:
        """Memory that nobody has, after the judge has given back what it does not use."""

    @property
    def memory_bytes(self) -> int:
        """All of its memory; 0 where it is not the judge's to hand out."""

    def works(self) -> bool:
        """Whether the judge can still use it: after a fault of its own it never can again in the same process."""

    def trim_cache(self) -> None:
        """Let go of memory that the judge keeps for later, where that is more than its part of the device."""

    def reserve(self, size: int) -> None:
        """Take so many bytes for the judge's own tensors, before a submission is loaded."""

    def facts(self) -> dict[str, str]:
        """Names and versions, for the result."""


@functools.cache
def of(lane: Lane) -> Device:
    """The device of a lane.

    Raises:
        GpuError: there is none in this machine, or it is of another kind.
    """
    if lane is Lane.cpu:
        return HOST
    # A machine without a GPU need not have its bindings.
    from autograder.judge.protocol.gpu import GpuDevice  # noqa: PLC0415

    return GpuDevice(lane)
