"""Memory for one call: fresh for every tensor, guarded, poisoned, sealed, and copied before it is believed.

    | guard, 16 KiB | offset | first element … last element | guard, ≥ 16 KiB, to the end of the page |

It is the same on every device; a page is 4 KiB of the host or 2 MiB of a GPU (`autograder.judge.protocol.devices`).

The padding between rows is guard too. Guards are NaN for floating types, so that a load past the end shows in the
result; outputs have other bits than inputs, so that a copied input guard shows in an output's. Drawn per tensor.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from autograder.assignment import DTYPE_BYTES, Argument, Assignment, Case, Layout
from autograder.judge.defences import Defences
from autograder.judge.protocol.devices import Device, Memory
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.tensors import Tensors, bits, dtype_of, same_words
from autograder.protocol import TensorSpec

GUARD_BYTES = 16 * 1024
"""On either side of a tensor; a multiple of every alignment that a kernel may count on."""

_PATTERNS = random.SystemRandom()
_QUIET_NAN = {
    "float64": (0x7FF8 << 48, 51),
    "float32": (0x7FC0 << 16, 22),
    "float16": (0x7E00, 9),
    "bfloat16": (0x7FC0, 6),
}
"""Bits of a quiet NaN and how many bits of payload are free."""


@dataclass(frozen=True)
class Filling:
    """Bit patterns around a tensor and in an output that is not written yet, as integers of its width."""

    guard: int
    poison: int


@dataclass
class Part:
    """One tensor's piece of something larger, which is what is shared, sealed and closed."""

    view: torch.Tensor
    descriptor: int = -1

    def seal(self, *, size: bool, writing: bool) -> None:
        """The whole is sealed."""

    def close(self) -> None:
        """The whole is closed."""


@dataclass
class SharedTensor:
    """One tensor in memory that a runner will map.

    Attributes:
        image: for an input, what has to stand there, byte for byte, in private memory.
    """

    spec: TensorSpec
    memory: Memory
    filling: Filling
    image: torch.Tensor | None

    @property
    def descriptor(self) -> int:
        """What lets a runner map it."""
        return self.memory.descriptor

    def fill(self) -> None:
        """Write an input's bytes, or an output's guards and poison."""
        if self.image is not None:
            self.memory.view.copy_(self.image)
        else:
            view = typed(self.memory.view, self.spec)
            _guard(view, self.spec, self.filling)
            elements(view, self.spec).fill_(self.filling.poison)

    def seal(self, *, size: bool, writing: bool) -> None:
        """Fix the size; if `writing`, refuse new writable mappings as well."""
        self.memory.seal(size=size, writing=writing)

    def snapshot(self) -> Snapshot:
        """All of it in private memory: a copy, or the image itself where an input still is what the judge wrote."""
        if self.image is not None and same_words(self.memory.view, self.image):
            return Snapshot(self, self.image)
        return Snapshot(self, self.memory.view.clone())

    def close(self) -> None:
        """Let the memory go."""
        self.memory.close()


@dataclass
class Snapshot:
    """What stood in a tensor's memory when the runner was stopped; private."""

    source: SharedTensor
    memory: torch.Tensor

    @property
    def as_written(self) -> bool:
        """Whether it is an input in which nothing was changed."""
        return self.memory is self.source.image

    def values(self) -> torch.Tensor:
        """The tensor itself, contiguous: where its rows are not padded, in this memory."""
        spec = self.source.spec
        return elements(self.memory.view(dtype_of(spec.dtype)), spec).contiguous()

    def untouched(self) -> torch.Tensor:
        """Which elements still have the poison's bits, bool, contiguous."""
        spec = self.source.spec
        return (elements(typed(self.memory, spec), spec) == self.source.filling.poison).contiguous()

    def touched(self) -> torch.Tensor:
        """Whether anything around its elements was changed: bool, of shape ()."""
        spec = self.source.spec
        first, last = _extent(spec)
        if last - first > math.prod(spec.shape):
            return self.overflow().any()
        memory = typed(self.memory, spec)
        return (torch.cat([memory[:first], memory[last:]]) != self.source.filling.guard).any()

    def overflow(self) -> torch.Tensor:
        """Guard elements that were changed before the tensor, after it, and between its rows: int64, of shape (3,)."""
        spec = self.source.spec
        first, last = _extent(spec)
        before, after = self._changed(0, first).sum(), self._changed(last, None).sum()
        between = torch.zeros_like(before)
        if last - first > math.prod(spec.shape):
            padding = self._changed(first, last)
            padding.as_strided(spec.shape, spec.stride, 0).fill_(False)
            between = padding.sum()
        return torch.stack([before, after, between])

    def rewritten(self) -> int:
        """How many elements of an input are not what the judge wrote."""
        if self.as_written:
            return 0
        return int(elements(self._changed(0, None), self.source.spec).sum())

    def _changed(self, first: int, last: int | None) -> torch.Tensor:
        """Element by element from `first` to `last`, whether the memory differs from what the judge wrote."""
        spec, image = self.source.spec, self.source.image
        wanted = typed(image, spec)[first:last] if image is not None else self.source.filling.guard
        return typed(self.memory, spec)[first:last] != wanted


def overflows(snapshots: Sequence[Snapshot]) -> list[tuple[int, int, int]]:
    """What `Snapshot.overflow` counts in each: a device is asked once whether there is anything to count."""
    asked = [snapshot.touched() for snapshot in snapshots if not snapshot.as_written]
    touched = iter(torch.stack(asked).tolist() if asked else ())
    return [(0, 0, 0) if one.as_written or not next(touched) else _counted(one) for one in snapshots]


def _counted(snapshot: Snapshot) -> tuple[int, int, int]:
    before, after, between = snapshot.overflow().tolist()
    return before, after, between


def overflow_of(memory: torch.Tensor, spec: TensorSpec, filling: Filling) -> tuple[int, int, int]:
    """What `Snapshot.overflow` counts in memory of such a tensor, uint8."""
    return overflows([Snapshot(SharedTensor(spec, Part(memory), filling, None), memory)])[0]


class Buffers:
    """Makes a call's memory, and in a test without fresh buffers keeps it."""

    def __init__(self, assignment: Assignment, defences: Defences, device: Device = HOST) -> None:
        self._assignment = assignment
        self._defences = defences
        self._device = device
        self._kept: dict[tuple[str, int], SharedTensor] = {}

    def make(self, case: Case, inputs: Tensors, *, poison: bool = True) -> tuple[SharedTensor, ...]:
        """Memory for every tensor of `case` in the entry's order, not filled yet; without poison outputs are zeros."""
        of_case = self._assignment.part(case).arguments
        arguments = [argument for argument in of_case if argument.role in {"input", "output"}]
        made: list[SharedTensor] = []
        try:
            # What was made before one fails is in the list.
            made.extend(self._one(argument, case, inputs.get(argument.name), poison=poison) for argument in arguments)
        except BaseException:
            self.release(made)
            raise
        return tuple(made)

    def release(self, tensors: Iterable[SharedTensor]) -> None:
        """A call is over: its memory is never used again."""
        if self._defences.fresh_buffers:
            for tensor in tensors:
                tensor.close()

    def close(self) -> None:
        """Let go of what was kept."""
        for tensor in self._kept.values():
            tensor.close()
        self._kept.clear()

    def _one(self, argument: Argument, case: Case, values: torch.Tensor | None, *, poison: bool) -> SharedTensor:
        spec = layout_of(argument, self._assignment, case, self._device.granularity)
        filling = draw_filling(spec, poison=poison and self._defences.poison)
        image = image_of(values, spec, filling) if values is not None else None
        key = (argument.name, spec.bytes)
        if (kept := self._kept.get(key)) is not None:
            return SharedTensor(spec, kept.memory, filling, image)
        made = SharedTensor(spec, self._device.memory(spec.bytes), filling, image)
        if not self._defences.fresh_buffers:
            self._kept[key] = made
        return made


def layout_of(argument: Argument, assignment: Assignment, case: Case, page: int = HOST.granularity) -> TensorSpec:
    """Where the elements of a tensor lie in its memory, which is whole pages of `page` bytes."""
    layout = case.layout.get(argument.name, Layout())
    dtype = assignment.dtype_of(argument, case)
    shape = assignment.shape_of(argument, case)
    stride = _strides(shape, layout.pad)
    offset = GUARD_BYTES + layout.offset * DTYPE_BYTES[dtype]
    used = offset + _span(shape, stride) * DTYPE_BYTES[dtype] + GUARD_BYTES
    size = -(-used // page) * page
    return TensorSpec(argument.name, dtype, shape, stride, offset, size, writable=argument.role == "output")


def image_of(values: torch.Tensor, spec: TensorSpec, filling: Filling) -> torch.Tensor:
    """An input's whole memory as bytes: guards, padding and values."""
    image = torch.empty(spec.bytes, dtype=torch.uint8, device=values.device)
    write_image(image, values, spec, filling)
    return image


def write_image(memory: torch.Tensor, values: torch.Tensor, spec: TensorSpec, filling: Filling) -> None:
    """The same, in memory that there is: uint8, `spec.bytes` of them."""
    view = typed(memory, spec)
    _guard(view, spec, filling)
    elements(view, spec).copy_(bits(values))


def _guard(view: torch.Tensor, spec: TensorSpec, filling: Filling) -> None:
    """Write all that is not an element; elements too where rows are padded, as they are written next."""
    first, last = _extent(spec)
    if last - first > math.prod(spec.shape):
        view.fill_(filling.guard)
    else:
        view[:first].fill_(filling.guard)
        view[last:].fill_(filling.guard)


def draw_filling(spec: TensorSpec, *, poison: bool) -> Filling:
    """Patterns for one tensor; an output's NaNs are negative, an input's positive."""
    guard = _pattern(spec.dtype, negative=spec.writable)
    while (filling := _pattern(spec.dtype, negative=spec.writable)) == guard:
        pass
    return Filling(guard, filling if poison else 0)


def typed(memory: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """Bytes as integers of the tensor's width."""
    return bits(memory.view(dtype_of(spec.dtype)))


def elements(view: torch.Tensor, spec: TensorSpec) -> torch.Tensor:
    """The tensor's elements in a flat view of its memory, which may be a piece of something larger."""
    first = view.storage_offset() + spec.offset // DTYPE_BYTES[spec.dtype]
    return view.as_strided(spec.shape, spec.stride, first)


def strides_of(tensors: Iterable[SharedTensor]) -> dict[str, tuple[int, ...]]:
    """Strides in elements by tensor."""
    return {tensor.spec.name: tensor.spec.stride for tensor in tensors}


def _strides(shape: tuple[int, ...], pad: int) -> tuple[int, ...]:
    """Row-major, with `pad` elements after each row of a matrix."""
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1] + (pad if dim == len(shape) - 2 else 0)
    return tuple(strides)


def _extent(spec: TensorSpec) -> tuple[int, int]:
    """Where the elements begin in the tensor's memory and where they end, in elements; padding is between them."""
    first = spec.offset // DTYPE_BYTES[spec.dtype]
    return first, first + _span(spec.shape, spec.stride)


def _span(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last, both included."""
    if 0 in shape:
        return 0
    return sum((length - 1) * step for length, step in zip(shape, stride, strict=True)) + 1


def _pattern(dtype: str, *, negative: bool) -> int:
    """A NaN with a drawn payload, or a drawn non-zero integer, as a signed integer of the dtype's width."""
    width = 8 * DTYPE_BYTES[dtype]
    if dtype in _QUIET_NAN:
        base, free = _QUIET_NAN[dtype]
        number = base | _PATTERNS.randrange(1, 1 << free) | (negative << (width - 1))
    else:
        number = _PATTERNS.randrange(2, 1 << width)
    signed = width > 8  # noqa: PLR2004 - bytes are kept as uint8, the other widths as signed integers
    return number - (1 << width) if signed and number >= 1 << (width - 1) else number
