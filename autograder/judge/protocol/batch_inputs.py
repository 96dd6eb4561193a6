"""The inputs of one call of a batch: how they lie in what is shared, and what has to stand there byte for byte.

A batch has twenty calls or more, and a call's inputs may take a gigabyte. So inputs are drawn straight into the shared
memory. Only a digest is kept; it is checked when they are read back. A call then takes its inputs once and its outputs
twice, and a batch holds a third more calls of a softmax (docs/decisions/0040).

The digest of 16 KiB is their product, byte by byte, with sixteen secret columns of bytes, Σ key_ij · byte_i in whole
numbers. Where bytes differ, so do digests, but for one key in 2^128 at most: of any difference at i one value of key_ij
in 256 makes up for all others, in each column. (Multilinear hashing: Carter and Wegman, Universal classes of hash
functions, Journal of Computer and System Sciences 18 (2), 1979.) Signed bytes are multiplied by matrix units, nearly
as fast as a GPU reads them. Every batch has a key of its own; nobody outside this process learns a key or a digest.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from autograder.assignment import Argument, Assignment, Case
from autograder.judge.protocol.buffers import (
    GUARD_BYTES,
    Filling,
    draw_filling,
    image_of,
    layout_of,
    overflow_of,
    write_image,
)
from autograder.judge.protocol.tensors import Tensors, dtype_of, same_words
from autograder.protocol import TensorSpec

TensorPlacement = tuple[TensorSpec, Filling]
"""A tensor's layout in its own piece, and what stands around it."""
Scalars = dict[str, int | float]

_COLUMNS = 16
"""Of a key. Eight would do, and cuBLAS is a third slower with them."""
_MIN_ROWS = 17
"""Of what is multiplied: the fewest that torch takes."""
_AT_ONCE = 2**16
"""So many digests: a gibibyte, whatever a product of more bytes than 2^31 may be like."""


@dataclass(frozen=True)
class Changed:
    """An input that is not what the judge wrote.

    Attributes:
        outside: how many elements before the tensor, after it and between its rows; 0 each where only its own were.
    """

    name: str
    outside: tuple[int, int, int]


class Inputs(ABC):
    """What one call is given.

    Attributes:
        layout: of each tensor in a piece of its own, and what stands around it.
        drawn: scalars by argument; known when it was written.
    """

    layout: tuple[TensorPlacement, ...]
    drawn: Scalars

    @abstractmethod
    def write(self, pieces: Sequence[torch.Tensor]) -> None:
        """Write every tensor into its piece, uint8, guards and padding too."""

    @abstractmethod
    def read_back_inputs(self, pieces: Sequence[torch.Tensor]) -> tuple[StoredInputs, list[Changed]]:
        """The same in private memory, and what in the pieces is not as it was written."""


class DrawnInputs(Inputs):
    """Inputs that are drawn when they are written, others each time, and of which nothing but digests is kept.

    Args:
        draw: makes them, scalars among them.
        key: of their digests, where they are drawn.
    """

    def __init__(self, assignment: Assignment, case: Case, draw: Callable[[], Tensors], key: torch.Tensor) -> None:
        self.layout = tuple(place_tensors(assignment.part(case).inputs, assignment, case))
        self.drawn = {}
        self._draw = draw
        self._key = key
        self._scalars: Tensors = {}
        self._digests: list[torch.Tensor] = []

    def write(self, pieces: Sequence[torch.Tensor]) -> None:
        """Draw, and write."""
        made = self._draw()
        self._digests = []
        for (spec, filling), piece in zip(self.layout, pieces, strict=True):
            # Nobody else has it yet: it is revealed when the clock starts.
            write_image(piece, made.pop(spec.name), spec, filling)
            self._digests.append(digest_of(piece, self._key))
        self._scalars, self.drawn = made, _numbers(made)

    def read_back_inputs(self, pieces: Sequence[torch.Tensor]) -> tuple[StoredInputs, list[Changed]]:
        """Private copies; what is not as it was written is what has another digest."""
        images = [piece.clone() for piece in pieces]
        same = [torch.equal(digest_of(image, self._key), one) for image, one in zip(images, self._digests, strict=True)]
        return StoredInputs(self.layout, images, self._scalars), _changed(self.layout, images, same)


class StoredInputs(Inputs):
    """Inputs whose images, the judge's own, are kept: they serve the other side as well, and any number of calls.

    Attributes:
        images: of each tensor in a piece of its own, uint8, in the order of `layout`.
    """

    def __init__(self, layout: Sequence[TensorPlacement], images: Sequence[torch.Tensor], scalars: Tensors) -> None:
        self.layout = tuple(layout)
        self.drawn = _numbers(scalars)
        self.images = images
        self._scalars = scalars

    def write(self, pieces: Sequence[torch.Tensor]) -> None:
        """Write every image."""
        for piece, image in zip(pieces, self.images, strict=True):
            piece.copy_(image)

    def read_back_inputs(self, pieces: Sequence[torch.Tensor]) -> tuple[StoredInputs, list[Changed]]:
        """Itself; the pieces are read where they lie."""
        same = [same_words(piece, image) for piece, image in zip(pieces, self.images, strict=True)]
        return self, _changed(self.layout, pieces, same)

    def tensors(self) -> Tensors:
        """The inputs by name: views of the images, of the case's shapes and strides; and scalars."""
        found = dict(self._scalars)
        for (spec, _), image in zip(self.layout, self.images, strict=True):
            whole = image.view(dtype_of(spec.dtype))
            found[spec.name] = whole.as_strided(spec.shape, spec.stride, spec.offset // whole.element_size())
        return found


def stored_inputs(assignment: Assignment, case: Case, tensors: Tensors) -> StoredInputs:
    """Images of tensors that there are, with guards and padding drawn anew."""
    made = dict(tensors)
    layout = place_tensors(assignment.part(case).inputs, assignment, case)
    images = [image_of(made.pop(spec.name), spec, filling) for spec, filling in layout]
    return StoredInputs(layout, images, made)


def place_tensors(
    arguments: Iterable[Argument], assignment: Assignment, case: Case, *, poison: bool = True
) -> list[TensorPlacement]:
    """Layouts of some tensors of one call, with patterns drawn for each."""
    specs = [layout_of(argument, assignment, case, GUARD_BYTES) for argument in arguments]
    return [(spec, draw_filling(spec, poison=poison)) for spec in specs]


def draw_key(where: torch.device) -> torch.Tensor:
    """A key from the system's random numbers: int8, (16384, 16), on the device `where`, as matrix units like it."""
    secret = torch.frombuffer(bytearray(os.urandom(GUARD_BYTES * _COLUMNS)), dtype=torch.int8)
    return secret.view(_COLUMNS, GUARD_BYTES).to(where).T


def digest_of(image: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Digests of `image`, uint8 of a multiple of 16 KiB: int32, (16 KiB pieces, 16)."""
    rows = image.view(torch.int8).view(-1, GUARD_BYTES)
    return torch.cat([_products(some, key) for some in torch.split(rows, _AT_ONCE)])


def _products(rows: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Of every row with every column of the key."""
    missing = max(0, _MIN_ROWS - len(rows))
    enough = torch.nn.functional.pad(rows, (0, 0, 0, missing)) if missing else rows
    # A sum is 2^28 at most, so exact in int32 in whatever order it is added up. torch has no other product of integers
    # that works on a GPU.
    return torch._int_mm(enough, key)[: len(rows)]  # noqa: SLF001


def _changed(layout: Sequence[TensorPlacement], memory: Sequence[torch.Tensor], same: Sequence[bool]) -> list[Changed]:
    """Those that are not the `same`; what stands around them is known without their image."""
    return [
        Changed(spec.name, overflow_of(one, spec, filling))
        for (spec, filling), one, unchanged in zip(layout, memory, same, strict=True)
        if not unchanged
    ]


def _numbers(scalars: Tensors) -> Scalars:
    return {name: value.item() for name, value in scalars.items() if not value.dim()}
