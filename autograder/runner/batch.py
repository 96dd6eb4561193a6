"""Several calls as one exchange: everything that is no secret is done when the judge arms the runner.

Each slab's inputs are mapped right before its first call is made. On a GPU the call before is still running then, so
that mapping takes no time of its own; short calls share a slab, as none of them runs as long as a mapping takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from autograder.protocol import Arm, TensorSpec

Scalars = Mapping[str, int | float]


class Slab(Protocol):
    """All inputs, or all outputs, of the calls that share it."""

    @property
    def tensors(self) -> Mapping[str, Any]:
        """By name, as the entry gets them; of use once it is attached."""

    def attach(self, descriptor: int) -> None:
        """Map the memory behind a descriptor."""

    def close(self) -> None:
        """The batch is over."""


class SlabMaker(Protocol):
    """What makes slabs: a language's loader."""

    def slab(self, specs: Sequence[TensorSpec]) -> Slab:
        """Room for the tensors of one slab."""


class BatchPlan:
    """The calls of one batch, their outputs mapped."""

    def __init__(self, maker: SlabMaker, arm: Arm, order: Sequence[str], outputs: Sequence[int]) -> None:
        written = [spec for spec in arm.tensors if spec.writable]
        read = [spec for spec in arm.tensors if not spec.writable]
        self._order = tuple(order)
        self._scalars = arm.scalars
        self._together = arm.together
        slabs = range(arm.calls // arm.together)
        self._outputs = [maker.slab(_of_all(written, arm.together)) for _ in slabs]
        self._inputs = [maker.slab(_of_all(read, arm.together)) for _ in slabs]
        self._names = [[_named(spec.name, number) for spec in arm.tensors] for number in range(arm.together)]
        self._tensors = [spec.name for spec in arm.tensors]
        self._calls = range(arm.calls)
        for slab, descriptor in zip(self._outputs, outputs, strict=True):
            slab.attach(descriptor)
        # Where the tensors are made beforehand, so are the lists of arguments.
        self._ready = [self._arguments(number, {}) for number in self._calls] if self._known(read) else []

    def calls(self, inputs: Sequence[int], drawn: Sequence[Scalars]) -> Iterator[list[Any]]:
        """The arguments of one call after the other; its inputs are mapped when it is asked for."""
        for number in self._calls:
            slab, within = divmod(number, self._together)
            if not within:
                self._inputs[slab].attach(inputs[slab])
            yield self._ready[number] if self._ready else self._arguments(number, drawn[number] if drawn else {})

    def _known(self, read: Sequence[TensorSpec]) -> bool:
        """Whether every argument is known before the inputs come."""
        made = {*self._inputs[0].tensors, *self._outputs[0].tensors}
        names = {*self._tensors, *self._scalars}
        return bool(read) and made >= set(self._names[0]) and names >= set(self._order)

    def _arguments(self, number: int, drawn: Scalars) -> list[Any]:
        slab, within = divmod(number, self._together)
        read, written = self._inputs[slab].tensors, self._outputs[slab].tensors
        values: dict[str, Any] = {**self._scalars, **drawn}
        for name, key in zip(self._tensors, self._names[within], strict=True):
            values[name] = read[key] if key in read else written[key]
        return [values[name] for name in self._order]

    def close(self) -> None:
        """Let go of all memory."""
        for slab in (*self._inputs, *self._outputs):
            slab.close()


def _of_all(specs: Sequence[TensorSpec], together: int) -> list[TensorSpec]:
    """The tensors of all calls of a slab, from those of its first."""
    call_bytes = specs[0].bytes // together if specs else 0
    return [
        replace(spec, name=_named(spec.name, number), offset=spec.offset + number * call_bytes)
        for number in range(together)
        for spec in specs
    ]


def _named(name: str, number: int) -> str:
    """A tensor of one call of a slab."""
    return f"{name} {number}"
