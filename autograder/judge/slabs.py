"""Memory for a batch: for every call one slab of inputs and one of outputs, so that a call costs two descriptors.

    | tensor with its guard bands | next tensor … | in outputs, guard to the end of the page |

Outputs hold nothing yet and may be mapped before the clock starts; inputs are revealed when it does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from autograder.assignment import Argument, Assignment, Case
from autograder.judge.buffers import GUARD_BYTES, Filling, SharedTensor, Snapshot, draw_filling, image_of, layout_of
from autograder.judge.defences import Defences
from autograder.judge.devices import Device, Memory
from autograder.judge.problem import Tensors
from autograder.protocol import TensorSpec


@dataclass
class Part:
    """One tensor's piece of a slab; the slab is what is shared, sealed and closed."""

    view: torch.Tensor
    descriptor: int = -1

    def seal(self, *, size: bool, writing: bool) -> None:
        """The slab is sealed."""

    def close(self) -> None:
        """The slab is closed."""


@dataclass(frozen=True)
class Given:
    """One input of one call: how it lies in its piece of the slab, and what stands there byte for byte."""

    spec: TensorSpec
    filling: Filling
    image: torch.Tensor


class Slab:
    """All inputs, or all outputs, of one call.

    Attributes:
        tensors: with their layouts inside their own pieces.
        specs: as a runner is told: `bytes` of the slab, `offset` from its start.
    """

    def __init__(self, device: Device, parts: Sequence[tuple[TensorSpec, Filling, torch.Tensor | None]]) -> None:
        used = sum(spec.bytes for spec, _, _ in parts)
        self.bytes = -(-used // device.granularity) * device.granularity
        self.memory: Memory = device.memory(self.bytes)
        self.tensors: list[SharedTensor] = []
        self.specs: list[TensorSpec] = []
        start = 0
        for number, (wanted, filling, image) in enumerate(parts, 1):
            to_the_end = image is None and number == len(parts)
            spec = dataclasses.replace(wanted, bytes=self.bytes - start) if to_the_end else wanted
            piece = Part(self.memory.view[start : start + spec.bytes])
            self.tensors.append(SharedTensor(spec, piece, filling, image))
            self.specs.append(dataclasses.replace(spec, offset=start + spec.offset, bytes=self.bytes))
            start += spec.bytes

    def fill(self) -> None:
        """Write inputs, or guards and poison."""
        for tensor in self.tensors:
            tensor.fill()

    def snapshots(self, memory: torch.Tensor) -> tuple[Snapshot, ...]:
        """The tensors in a private copy of the slab."""
        found, start = [], 0
        for tensor in self.tensors:
            found.append(Snapshot(tensor, memory[start : start + tensor.spec.bytes]))
            start += tensor.spec.bytes
        return tuple(found)

    def close(self) -> None:
        """Let the memory go."""
        for tensor in self.tensors:
            tensor.memory = Part(torch.empty(0))
        self.memory.close()


class BatchMemory:
    """Memory of one batch on one side; nothing of it is used again.

    Args:
        given: the inputs by call; their images are the judge's own and may serve the other side as well.
    """

    def __init__(
        self, assignment: Assignment, case: Case, device: Device, given: Sequence[Sequence[Given]], defences: Defences
    ) -> None:
        self._device = device
        self._defences = defences
        self.inputs: list[Slab] = []
        self.outputs: list[Slab] = []
        self._taken: list[torch.Tensor] = []
        try:
            for call in given:
                self.inputs.append(Slab(device, [(one.spec, one.filling, one.image) for one in call]))
                self.outputs.append(Slab(device, _outputs(assignment, case, defences)))
                self._taken.append(torch.empty(self.outputs[-1].bytes, dtype=torch.uint8, device=device.where))
        except BaseException:
            self.close()
            raise

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """Of one call."""
        return (*self.inputs[0].specs, *self.outputs[0].specs)

    def fill(self) -> None:
        """Write all of it, and seal it."""
        for slab in (*self.inputs, *self.outputs):
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
        return tuple(slab.snapshots(private) for slab, private in zip(self.outputs, self._taken, strict=True))

    def rewritten(self, number: int) -> list[str]:
        """Names of the inputs of a call that are not what the judge wrote, read where they lie."""
        tensors = self.inputs[number].tensors
        return [tensor.spec.name for tensor in tensors if Snapshot(tensor, tensor.memory.view).rewritten()]

    def close(self) -> None:
        """Let it go; what was taken stays as long as somebody has it."""
        for slab in (*self.inputs, *self.outputs):
            slab.close()
        self._taken = []


def given(assignment: Assignment, case: Case, inputs: Tensors) -> tuple[Given, ...]:
    """The inputs of one call with their images; `inputs` themselves become views of the images, to save memory."""
    found = []
    for argument in assignment.inputs:
        spec = layout_of(argument, assignment, case, GUARD_BYTES)
        filling = draw_filling(spec, poison=True)
        image = image_of(inputs[argument.name], spec, filling)
        whole = image.view(inputs[argument.name].dtype)
        inputs[argument.name] = whole.as_strided(spec.shape, spec.stride, spec.offset // whole.element_size())
        found.append(Given(spec, filling, image))
    return tuple(found)


def bytes_of(assignment: Assignment, case: Case) -> tuple[int, int]:
    """Bytes of one call's inputs and of its outputs, guard bands included."""

    def total(arguments: Sequence[Argument]) -> int:
        return sum(layout_of(argument, assignment, case, GUARD_BYTES).bytes for argument in arguments)

    return total(assignment.inputs), total(assignment.outputs)


def _outputs(
    assignment: Assignment, case: Case, defences: Defences
) -> list[tuple[TensorSpec, Filling, torch.Tensor | None]]:
    specs = [layout_of(argument, assignment, case, GUARD_BYTES) for argument in assignment.outputs]
    return [(spec, draw_filling(spec, poison=defences.poison), None) for spec in specs]
