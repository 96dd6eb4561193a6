"""Several calls as one exchange: everything that is no secret is done when the judge arms the runner.

Each call's inputs are mapped right before it is made. On a GPU the call before is still running then, so that mapping
takes no time of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from autograder.protocol import Arm, TensorSpec

Scalars = Mapping[str, int | float]


class Slab(Protocol):
    """All inputs, or all outputs, of one call."""

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


class Prepared:
    """The calls of one batch, their outputs mapped."""

    def __init__(self, maker: SlabMaker, arm: Arm, order: Sequence[str], outputs: Sequence[int]) -> None:
        written = [spec for spec in arm.tensors if spec.writable]
        read = [spec for spec in arm.tensors if not spec.writable]
        self._order = tuple(order)
        self._scalars = arm.scalars
        self._outputs = [maker.slab(written) for _ in range(arm.calls)]
        self._inputs = [maker.slab(read) for _ in range(arm.calls)]
        for slab, descriptor in zip(self._outputs, outputs, strict=True):
            slab.attach(descriptor)
        # Where the tensors are made beforehand, so are the lists of arguments.
        self._ready = [self._arguments(number, {}) for number in range(arm.calls)] if self._known(read) else []

    def calls(self, inputs: Sequence[int], drawn: Sequence[Scalars]) -> Iterator[list[Any]]:
        """The arguments of one call after the other; its inputs are mapped when it is asked for."""
        for number, descriptor in enumerate(inputs):
            self._inputs[number].attach(descriptor)
            yield self._ready[number] if self._ready else self._arguments(number, drawn[number] if drawn else {})

    def _known(self, read: Sequence[TensorSpec]) -> bool:
        """Whether every argument is known before the inputs come."""
        names = {*self._inputs[0].tensors, *self._outputs[0].tensors, *self._scalars}
        return bool(read) and names >= set(self._order)

    def _arguments(self, number: int, drawn: Scalars) -> list[Any]:
        values = {**self._inputs[number].tensors, **self._outputs[number].tensors, **self._scalars, **drawn}
        return [values[name] for name in self._order]

    def close(self) -> None:
        """Let go of all memory."""
        for slab in (*self._inputs, *self._outputs):
            slab.close()
