"""The judge's memory in the runner: control words, and tensors over mapped descriptors."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from contextlib import suppress

import torch

from autograder.protocol import WORD_BYTES, TensorSpec

_READ = mmap.PROT_READ
_BOTH = mmap.PROT_READ | mmap.PROT_WRITE
_map = mmap.mmap
_from_buffer = torch.frombuffer
_as_strided = torch.as_strided
_equal = torch.equal
_DTYPES: dict[str, torch.dtype] = {
    name: value for name in dir(torch) if isinstance(value := getattr(torch, name), torch.dtype)
}


class Words:
    """The two control words: the judge's to read, the runner's to write."""

    def __init__(self, judges: int, runners: int) -> None:
        self._judges = memoryview(_map(judges, WORD_BYTES, mmap.MAP_SHARED, _READ)).cast("Q")
        self._runners = memoryview(_map(runners, WORD_BYTES, mmap.MAP_SHARED, _BOTH)).cast("Q")

    def allowed(self) -> int:
        """The nonce of the call that may be worked on."""
        return self._judges[0]

    def finish(self, nonce: int, event_ns: int) -> None:
        """Say that a call is over; the nonce is written last."""
        self._runners[1] = event_ns
        self._runners[0] = nonce


class Mapped:
    """One tensor of a call.

    What the judge sealed against writing is mapped copy-on-write: writing to it hurts nobody, and is found by comparing
    with the judge's memory.
    """

    def __init__(self, spec: TensorSpec, descriptor: int) -> None:
        self.spec = spec
        self._descriptor = descriptor
        self._memory = _map_writable(descriptor, spec)
        dtype = _DTYPES[spec.dtype]
        elements = (spec.bytes - spec.offset) // dtype.itemsize
        base = _from_buffer(self._memory, dtype=dtype, count=elements, offset=spec.offset)
        self.tensor = _as_strided(base, spec.shape, spec.stride)

    def was_written(self) -> bool:
        """Whether an input differs from what the judge gave."""
        if self.spec.writable:
            return False
        given = _map(self._descriptor, self.spec.bytes, mmap.MAP_PRIVATE, _BOTH)
        return not _equal(_from_buffer(self._memory, dtype=torch.int8), _from_buffer(given, dtype=torch.int8))

    def close(self) -> None:
        """The mapping ends with its last user, who may be the submission."""


class HostSlab:
    """All inputs, or all outputs, of one call of a batch, in one memfd; `tensors` by name, once it is attached."""

    def __init__(self, specs: Sequence[TensorSpec]) -> None:
        self._specs = tuple(specs)
        self.tensors: dict[str, torch.Tensor] = {}

    def attach(self, descriptor: int) -> None:
        """Map the memory behind it."""
        for spec in self._specs:
            self.tensors[spec.name] = Mapped(spec, descriptor).tensor

    def close(self) -> None:
        """The mappings end with their last user."""
        self.tensors = {}


class HostMemory:
    """What the loaders of a CPU lane have in common: a call's tensors in the host's memory."""

    def map(self, spec: TensorSpec, descriptor: int) -> Mapped:
        """Map a memfd."""
        return Mapped(spec, descriptor)

    def slab(self, specs: Sequence[TensorSpec]) -> HostSlab:
        """A memfd for each."""
        return HostSlab(specs)

    def awake(self) -> None:
        """The processor is."""


def _map_writable(descriptor: int, spec: TensorSpec) -> mmap.mmap:
    if not spec.writable:
        with suppress(PermissionError):
            return _map(descriptor, spec.bytes, mmap.MAP_SHARED, _BOTH)
        return _map(descriptor, spec.bytes, mmap.MAP_PRIVATE, _BOTH)
    return _map(descriptor, spec.bytes, mmap.MAP_SHARED, _BOTH)
