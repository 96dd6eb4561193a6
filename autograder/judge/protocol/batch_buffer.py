"""Memory for a batch: for every call, or for a few short ones together, one slab of inputs and one of outputs.

    | call | next call of the slab … |      a call is whole pages:
    | tensor with its guard bands | next tensor … | in outputs, guard to the end of the page |

A slab costs one descriptor, and its inputs one mapping while the clock runs. Outputs hold nothing yet and may be mapped
before it starts; inputs are revealed when it does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import torch

from autograder.assignment import Argument, Assignment, Case
from autograder.judge.defences import Defences
from autograder.judge.protocol.batch_inputs import Changed, Inputs, Kept, Wanted, wanted
from autograder.judge.protocol.buffers import GUARD_BYTES, Part, SharedTensor, Snapshot, layout_of
from autograder.judge.protocol.devices import Device, Memory
from autograder.protocol import TensorSpec

Made = TypeVar("Made")


class Slab:
    """All inputs, or all outputs, of the calls that share it.

    Args:
        calls: the tensors of each call, laid out alike.

    Attributes:
        calls: by call, the tensors with their layouts inside their own pieces.
        specs: of the first call, as a runner is told: `bytes` of the slab, `offset` from its start.
    """

    def __init__(self, device: Device, calls: Sequence[Sequence[Wanted]]) -> None:
        used = sum(spec.bytes for spec, _ in calls[0])
        self._call_bytes = -(-used // device.granularity) * device.granularity
        self.bytes = self._call_bytes * len(calls)
        self.memory: Memory = device.memory(self.bytes)
        self.calls = [self._placed(number, parts) for number, parts in enumerate(calls)]
        self.specs: list[TensorSpec] = []
        start = 0
        for tensor in self.calls[0]:
            self.specs.append(dataclasses.replace(tensor.spec, offset=start + tensor.spec.offset, bytes=self.bytes))
            start += tensor.spec.bytes

    def _placed(self, number: int, parts: Sequence[Wanted]) -> list[SharedTensor]:
        """The tensors of one call, each in its piece."""
        start, end = number * self._call_bytes, (number + 1) * self._call_bytes
        placed: list[SharedTensor] = []
        for own, filling in parts:
            to_the_end = own.writable and len(placed) == len(parts) - 1
            spec = dataclasses.replace(own, bytes=end - start) if to_the_end else own
            placed.append(SharedTensor(spec, Part(self.memory.view[start : start + spec.bytes]), filling, None))
            start += spec.bytes
        return placed

    def fill(self) -> None:
        """Write an output's guards and poison."""
        for tensor in (tensor for call in self.calls for tensor in call):
            tensor.fill()

    def pieces(self, number: int) -> list[torch.Tensor]:
        """Memory of the tensors of one call, in their order."""
        return [tensor.memory.view for tensor in self.calls[number]]

    def snapshots(self, memory: torch.Tensor) -> tuple[tuple[Snapshot, ...], ...]:
        """By call, the tensors in a private copy of the slab."""
        found = []
        for number, call in enumerate(self.calls):
            start, own = number * self._call_bytes, []
            for tensor in call:
                own.append(Snapshot(tensor, memory[start : start + tensor.spec.bytes]))
                start += tensor.spec.bytes
            found.append(tuple(own))
        return tuple(found)

    def close(self) -> None:
        """Let the memory go."""
        for tensor in (tensor for call in self.calls for tensor in call):
            tensor.memory = Part(torch.empty(0))
        self.memory.close()


class BatchMemory:
    """Memory of one batch on one side; nothing of it is used again.

    Args:
        inputs: by call.
        together: calls of one slab, a divisor of their number.

    Attributes:
        calls: how many.
    """

    def __init__(
        self, assignment: Assignment, case: Case, device: Device, inputs: Sequence[Inputs], defences: Defences,
        *, together: int = 1,
    ) -> None:  # fmt: skip
        if len(inputs) % together:
            raise ValueError(f"{len(inputs)} calls are no slabs of {together}")
        self.calls = len(inputs)
        self.function = case.function
        self.together = together
        self._given = inputs
        self._device = device
        self._defences = defences
        self.inputs: list[Slab] = []
        self.outputs: list[Slab] = []
        self._taken: list[torch.Tensor] = []
        outputs = assignment.part(case).outputs
        try:
            for first in range(0, len(inputs), together):
                calls = inputs[first : first + together]
                self.inputs.append(Slab(device, [call.layout for call in calls]))
                written = [wanted(outputs, assignment, case, poison=defences.poison) for _ in calls]
                self.outputs.append(Slab(device, written))
                private = partial(torch.empty, self.outputs[-1].bytes, dtype=torch.uint8, device=device.where)
                self._taken.append(self._patiently(private))
        except BaseException:
            self.close()
            raise

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Of one call."""
        return (*self.inputs[0].specs, *self.outputs[0].specs)

    def fill(self) -> None:
        """Write all of it, and seal it."""
        for number, call in enumerate(self._given):
            self._patiently(partial(call.write, self._pieces(number)))
        for slab in self.outputs:
            slab.fill()
        for slab in self.inputs:
            slab.memory.seal(size=self._defences.seals, writing=self._defences.private_inputs)
        for slab in self.outputs:
            slab.memory.seal(size=self._defences.seals, writing=False)

    def take(self) -> None:
        """Queue the copies of all outputs to private memory that was made before."""
        for slab, private in zip(self.outputs, self._taken, strict=True):
            # By a kernel: a copy engine could work beside what a runner has still queued, a kernel waits its turn.
            torch.bitwise_or(slab.memory.view.view(torch.int64), 0, out=private.view(torch.int64))

    def snapshots(self) -> tuple[tuple[Snapshot, ...], ...]:
        """By call, what was taken."""
        slabs = zip(self.outputs, self._taken, strict=True)
        return tuple(call for slab, private in slabs for call in slab.snapshots(private))

    @property
    def drawn(self) -> tuple[dict[str, int | float], ...]:
        """By call, what was drawn for it beside tensors; nothing where no call has any."""
        drawn = tuple(call.drawn for call in self._given)
        return drawn if any(drawn) else ()

    def taken_back(self) -> Iterator[tuple[Kept, list[Changed]]]:
        """By call, its inputs in private memory, and those that are not what the judge wrote.

        They are copied first and looked at then: a runner may have them mapped. One slab after the other is let go for
        it, and those of the outputs before.
        """
        for slab in self.outputs:
            slab.close()
        for number, call in enumerate(self._given):
            yield self._patiently(partial(call.taken_back, self._pieces(number)))
            if (number + 1) % self.together == 0:
                self.inputs[number // self.together].close()

    def _patiently(self, made: Callable[[], Made]) -> Made:
        """What takes memory of torch's; where there is none, once more when the device has cleared what it got back."""
        with suppress(torch.OutOfMemoryError):
            return made()
        # Out here, where the error no longer holds on to what was made before it.
        self._device.quiet()
        return made()

    def _pieces(self, number: int) -> list[torch.Tensor]:
        return self.inputs[number // self.together].pieces(number % self.together)

    def close(self) -> None:
        """Let it go; what was taken stays as long as somebody has it."""
        for slab in (*self.inputs, *self.outputs):
            slab.close()
        self._taken = []


PARTS = 4
"""In so many of about the same length the reference is called on a batch's inputs: only its outputs are wanted, and for
all of those at once a batch would have to be shorter."""


def part_of(calls: int, together: int) -> int:
    """How many calls a part has: whole slabs."""
    return together * math.ceil(calls / together / PARTS)


def most_held(inputs: int, outputs: int, calls: int, together: int) -> int:
    """Bytes of a batch when it takes most, with so many bytes of one call's `inputs` and `outputs`.

    While the submission has it, there are shared inputs and outputs, and copies of these; then come copies of the
    inputs, slab by slab; and while the reference has a part of it, its own beside all copies. What is drawn, and what
    is compared, takes memory for one call beside that, of the judge's own quarter.
    """
    shared = calls * (inputs + 2 * outputs)
    copied = calls * (inputs + outputs) + together * inputs
    parted = calls * (inputs + outputs) + part_of(calls, together) * (inputs + 2 * outputs)
    return max(shared, copied, parted)


def bytes_of(assignment: Assignment, case: Case) -> tuple[int, int]:
    """Bytes of one call's inputs and of its outputs, guard bands included."""

    def total(arguments: Sequence[Argument]) -> int:
        return sum(layout_of(argument, assignment, case, GUARD_BYTES).bytes for argument in arguments)

    part = assignment.part(case)
    return total(part.inputs), total(part.outputs)
