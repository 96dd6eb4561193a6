"""Memory for a batch: for every call, or for a few short ones together, one buffer of inputs and one of outputs.

    | call | next call of the buffer … |      a call is whole pages:
    | tensor with its guard bands | next tensor … | in outputs, guard to the end of the page |

A buffer costs one descriptor, and its inputs one mapping while the clock runs. Outputs hold nothing yet and may be
mapped before it starts; inputs are revealed when it does.
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
from autograder.judge.protocol.batch_inputs import Changed, Inputs, StoredInputs, TensorPlacement, place_tensors
from autograder.judge.protocol.buffers import GUARD_BYTES, Part, SharedTensor, Snapshot, layout_of
from autograder.judge.protocol.devices import Device, Memory
from autograder.protocol import TensorSpec

Made = TypeVar("Made")


class BatchBuffer:
    """All inputs, or all outputs, of the calls that share it.

    Args:
        calls: the tensors of each call, laid out alike.

    Attributes:
        calls: by call, the tensors with their layouts inside their own pieces.
        specs: of the first call, as a runner is told: `bytes` of the buffer, `offset` from its start.
    """

    def __init__(self, device: Device, calls: Sequence[Sequence[TensorPlacement]]) -> None:
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

    def _placed(self, number: int, parts: Sequence[TensorPlacement]) -> list[SharedTensor]:
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
        """By call, the tensors in a private copy of the buffer."""
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
        calls_per_buffer: calls of one buffer, a divisor of their number.

    Attributes:
        calls: how many.
    """

    def __init__(
        self, assignment: Assignment, case: Case, device: Device, inputs: Sequence[Inputs], defences: Defences,
        *, calls_per_buffer: int = 1,
    ) -> None:  # fmt: skip
        if len(inputs) % calls_per_buffer:
            raise ValueError(f"{len(inputs)} calls are no buffers of {calls_per_buffer}")
        self.calls = len(inputs)
        self.function = case.function
        self.calls_per_buffer = calls_per_buffer
        self._given = inputs
        self._device = device
        self._defences = defences
        self.inputs: list[BatchBuffer] = []
        self.outputs: list[BatchBuffer] = []
        self._copies: list[torch.Tensor] = []
        outputs = assignment.part(case).outputs
        try:
            for first in range(0, len(inputs), calls_per_buffer):
                calls = inputs[first : first + calls_per_buffer]
                self.inputs.append(BatchBuffer(device, [call.layout for call in calls]))
                written = [place_tensors(outputs, assignment, case, poison=defences.poison) for _ in calls]
                self.outputs.append(BatchBuffer(device, written))
                private = partial(torch.empty, self.outputs[-1].bytes, dtype=torch.uint8, device=device.where)
                self._copies.append(self._patiently(private))
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
        for buffer in self.outputs:
            buffer.fill()
        for buffer in self.inputs:
            buffer.memory.seal(size=self._defences.seals, writing=self._defences.private_inputs)
        for buffer in self.outputs:
            buffer.memory.seal(size=self._defences.seals, writing=False)

    def copy_outputs(self) -> None:
        """Queue the copies of all outputs to private memory that was made before."""
        for buffer, private in zip(self.outputs, self._copies, strict=True):
            # By a kernel: a copy engine could work beside what a runner has still queued, a kernel waits its turn.
            torch.bitwise_or(buffer.memory.view.view(torch.int64), 0, out=private.view(torch.int64))

    def snapshots(self) -> tuple[tuple[Snapshot, ...], ...]:
        """By call, what was taken."""
        buffers = zip(self.outputs, self._copies, strict=True)
        return tuple(call for buffer, private in buffers for call in buffer.snapshots(private))

    @property
    def drawn(self) -> tuple[dict[str, int | float], ...]:
        """By call, what was drawn for it beside tensors; nothing where no call has any."""
        drawn = tuple(call.drawn for call in self._given)
        return drawn if any(drawn) else ()

    def read_back_inputs(self) -> Iterator[tuple[StoredInputs, list[Changed]]]:
        """By call, its inputs in private memory, and those that are not what the judge wrote.

        They are copied first and looked at then: a runner may have them mapped. One buffer after the other is let go
        for it, and those of the outputs before.
        """
        for buffer in self.outputs:
            buffer.close()
        for number, call in enumerate(self._given):
            yield self._patiently(partial(call.read_back_inputs, self._pieces(number)))
            if (number + 1) % self.calls_per_buffer == 0:
                self.inputs[number // self.calls_per_buffer].close()

    def _patiently(self, made: Callable[[], Made]) -> Made:
        """What takes memory of torch's; where there is none, once more when the device has cleared what it got back."""
        with suppress(torch.OutOfMemoryError):
            return made()
        # Out here, where the error no longer holds on to what was made before it.
        self._device.wait_until_idle()
        return made()

    def _pieces(self, number: int) -> list[torch.Tensor]:
        return self.inputs[number // self.calls_per_buffer].pieces(number % self.calls_per_buffer)

    def close(self) -> None:
        """Let it go; what was taken stays as long as somebody has it."""
        for buffer in (*self.inputs, *self.outputs):
            buffer.close()
        self._copies = []


PARTS = 4
"""In so many of about the same length the reference is called on a batch's inputs: only its outputs are wanted, and for
all of those at once a batch would have to be shorter."""


def part_of(calls: int, calls_per_buffer: int) -> int:
    """How many calls a part has: whole buffers."""
    return calls_per_buffer * math.ceil(calls / calls_per_buffer / PARTS)


def max_bytes_held(inputs: int, outputs: int, calls: int, calls_per_buffer: int) -> int:
    """Bytes of a batch when it takes most, with so many bytes of one call's `inputs` and `outputs`.

    While the submission has it, there are shared inputs and outputs, and copies of these; then come copies of the
    inputs, buffer by buffer; and while the reference has a part of it, its own beside all copies. What is drawn, and
    what is compared, takes memory for one call beside that, of the judge's own quarter.
    """
    shared = calls * (inputs + 2 * outputs)
    copied = calls * (inputs + outputs) + calls_per_buffer * inputs
    parted = calls * (inputs + outputs) + part_of(calls, calls_per_buffer) * (inputs + 2 * outputs)
    return max(shared, copied, parted)


def bytes_of(assignment: Assignment, case: Case) -> tuple[int, int]:
    """Bytes of one call's inputs and of its outputs, guard bands included."""

    def total(arguments: Sequence[Argument]) -> int:
        return sum(layout_of(argument, assignment, case, GUARD_BYTES).bytes for argument in arguments)

    part = assignment.part(case)
    return total(part.inputs), total(part.outputs)
