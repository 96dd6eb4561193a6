"""Inputs of a batch: not kept, and known again to the last bit when they are copied back."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from autograder.assignment import Case, load_assignment
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol import batch_inputs
from autograder.judge.protocol.batch_buffer import BatchMemory, bytes_of, max_bytes_held
from autograder.judge.protocol.batch_inputs import (
    Changed,
    DrawnInputs,
    Inputs,
    StoredInputs,
    digest_of,
    draw_key,
    stored_inputs,
)
from autograder.judge.protocol.buffers import GUARD_BYTES
from autograder.judge.protocol.host import HOST, HostDevice, HostMemory

ADD = load_assignment(Path(__file__).parents[4] / "assignments" / "vector_add")
CASE = Case("odd", {"n": 5000}, "float32")
PAGE = GUARD_BYTES
KEY = draw_key(HOST.where)


def draw() -> dict[str, torch.Tensor]:
    return {name: torch.randn(5000) for name in ("x", "y")} | {"alpha": torch.tensor(0.5)}


def written(inputs: Inputs) -> list[torch.Tensor]:
    """Pieces of shared memory with the inputs in them."""
    pieces = [torch.zeros(spec.bytes, dtype=torch.uint8) for spec, _ in inputs.layout]
    inputs.write(pieces)
    return pieces


@pytest.fixture
def inputs() -> Inputs:
    return DrawnInputs(ADD, CASE, draw, KEY)


def test_what_is_copied_back_is_what_was_drawn(inputs: Inputs) -> None:
    made = draw()
    inputs._draw = lambda: dict(made)
    pieces = written(inputs)
    back, changed = inputs.read_back_inputs(pieces)
    assert changed == []
    assert inputs.drawn == back.drawn == {"alpha": 0.5}
    assert {name: value.tolist() for name, value in back.tensors().items()} == {
        name: value.tolist() for name, value in made.items()
    }
    for piece in pieces:
        piece.zero_()
    assert back.tensors()["x"].equal(made["x"]), "the copies are the judge's own"


def test_what_was_drawn_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a call of gigabytes there would be no room for a batch."""
    alive: list[StorageWeakRef] = []
    write_image = batch_inputs.write_image

    def watched(piece: torch.Tensor, values: torch.Tensor, *more: Any) -> None:
        write_image(piece, values, *more)
        alive.append(StorageWeakRef(values.untyped_storage()))

    monkeypatch.setattr(batch_inputs, "write_image", watched)
    inputs = DrawnInputs(ADD, CASE, draw, KEY)
    written(inputs)
    gc.collect()
    assert [one.expired() for one in alive] == [True] * 2


@pytest.mark.parametrize("place", [0, GUARD_BYTES + 1, GUARD_BYTES + 4 * 5000 - 1, -1])
def test_one_bit_anywhere_is_seen(inputs: Inputs, place: int) -> None:
    """Of the guard bands too."""
    outside = {0: (1, 0, 0), -1: (0, 1, 0)}.get(place, (0, 0, 0))
    for bit in range(8):
        pieces = written(inputs)
        pieces[1][place] ^= 1 << bit
        _, changed = inputs.read_back_inputs(pieces)
        assert changed == [Changed("y", outside)], f"bit {bit}"


def test_what_changes_while_it_is_looked_at_changes_nothing(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner has it mapped, and what it has queued on a GPU goes on while it is stopped."""
    pieces = written(inputs)
    before = [piece.clone() for piece in pieces]

    def late(image: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        for piece in pieces:
            piece.zero_()
        return digest_of(image, key)

    monkeypatch.setattr("autograder.judge.protocol.batch_inputs.digest_of", late)
    back, changed = inputs.read_back_inputs(pieces)
    assert changed == []
    assert all(image.equal(piece) for image, piece in zip(back.images, before, strict=True))


def test_pages_that_change_places_are_seen() -> None:
    image = torch.randint(256, (8 * PAGE,), dtype=torch.uint8)
    swapped = torch.cat([image[PAGE : 2 * PAGE], image[:PAGE], image[2 * PAGE :]])
    assert not torch.equal(digest_of(image, KEY), digest_of(swapped, KEY))


def test_words_whose_sum_stays_the_same_are_seen() -> None:
    image = torch.zeros(PAGE, dtype=torch.uint8).view(torch.int32)
    image[7], image[9] = 5, -5
    other = image.roll(1)
    assert int(image.sum()) == int(other.sum())
    assert not torch.equal(digest_of(image.view(torch.uint8), KEY), digest_of(other.view(torch.uint8), KEY))


@pytest.mark.parametrize("pages", [1, 16, 17, 2051])
def test_there_is_a_print_of_every_page_however_many_there_are(pages: int) -> None:
    image = torch.randint(256, (pages * PAGE,), dtype=torch.uint8)
    whole = digest_of(image, KEY)
    assert whole.shape == (pages, 16)
    for page in {0, pages // 2, pages - 1}:
        assert digest_of(image[page * PAGE : (page + 1) * PAGE], KEY).equal(whole[page : page + 1])


@pytest.mark.parametrize("at_once", [1, 20, 40])
def test_prints_are_the_same_however_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    image = torch.randint(256, (41 * PAGE,), dtype=torch.uint8)
    whole = digest_of(image, KEY)
    monkeypatch.setattr(batch_inputs, "_AT_ONCE", at_once)
    assert digest_of(image, KEY).equal(whole)


@pytest.mark.parametrize("extreme", [-128, 127])
def test_a_print_is_sixteen_sums_of_products_in_whole_numbers(extreme: int) -> None:
    """And none that saturates, or goes by way of floats: the claim of one key in 2^128 is about these numbers."""
    image = torch.full((2, PAGE), extreme, dtype=torch.int8)
    image[1] = torch.randint(-128, 128, (PAGE,), dtype=torch.int8)
    key = KEY.clone()
    key[:, 0], key[:, 1] = -128, 127
    expected = [
        [sum(k * b for k, b in zip(column, page, strict=True)) for column in key.T.tolist()] for page in image.tolist()
    ]
    assert digest_of(image.view(-1).view(torch.uint8), key).tolist() == expected


def test_each_column_of_a_key_sees_by_itself() -> None:
    """One byte, by any difference: a column that does not see it has a zero there, which one in 256 is."""
    image = torch.zeros(PAGE, dtype=torch.uint8)
    for place, difference in ((0, 1), (5, 255), (PAGE - 1, 128)):
        other = image.clone()
        other[place] = difference
        seen = (digest_of(image, KEY) != digest_of(other, KEY))[0]
        assert seen.equal(KEY[place] != 0)


def test_every_batch_has_a_key_of_its_own() -> None:
    keys = [draw_key(HOST.where) for _ in range(2)]
    assert keys[0].shape == (PAGE, 16)
    assert keys[0].dtype == torch.int8
    alike = int((keys[0] == keys[1]).sum())
    assert alike < 2 * keys[0].numel() / 256, "as many as chance makes"
    columns = [tuple(column) for key in keys for column in key.T.tolist()]
    assert len(set(columns)) == 32
    for column in columns:
        assert len(set(column)) == 256, "all values are drawn"


def test_images_that_are_kept_serve_any_number_of_calls() -> None:
    made = draw()
    one = stored_inputs(ADD, CASE, made)
    first, second = written(one), written(one)
    assert all(a.equal(b) for a, b in zip(first, second, strict=True))
    back, changed = one.read_back_inputs(second)
    assert isinstance(back, StoredInputs)
    assert back is one
    assert changed == []
    second[0][GUARD_BYTES] ^= 1
    assert one.read_back_inputs(second)[1] == [Changed("x", (0, 0, 0))]
    assert made.keys() == {"x", "y", "alpha"}, "whoever asks has his own still"


def test_rows_that_are_padded_come_back_with_their_strides() -> None:
    softmax = load_assignment(Path(__file__).parents[4] / "assignments" / "softmax")
    padded = next(case for case in softmax.cases if case.layout and case.layout["x"].pad)
    case = dataclasses.replace(padded, size={"rows": 3, "cols": 5}, dtype="float32")
    made = torch.randn(3, 5)
    inputs = DrawnInputs(softmax, case, lambda: {"x": made.clone()}, KEY)
    back, changed = inputs.read_back_inputs(written(inputs))
    assert changed == []
    assert back.tensors()["x"].stride(0) > 5
    assert back.tensors()["x"].equal(made)


def test_what_is_written_between_rows_is_told_apart() -> None:
    softmax = load_assignment(Path(__file__).parents[4] / "assignments" / "softmax")
    padded = next(case for case in softmax.cases if case.layout and case.layout["x"].pad)
    padded = dataclasses.replace(padded, dtype="float32")
    inputs = DrawnInputs(softmax, padded, lambda: {"x": torch.randn(padded.size["rows"], padded.size["cols"])}, KEY)
    pieces = written(inputs)
    ((spec, _),) = inputs.layout
    pieces[0].view(torch.float32)[spec.offset // 4 + spec.shape[1]] = 1.0
    assert inputs.read_back_inputs(pieces)[1] == [Changed("x", (0, 0, 1))]


class CountingHost(HostDevice):
    """Counts what is shared."""

    granularity = 1

    def __init__(self) -> None:
        self.made: list[HostMemory] = []
        self.waited = 0

    def memory(self, size: int) -> HostMemory:
        self.made.append(super().memory(size))
        return self.made[-1]

    def wait_until_idle(self) -> None:
        self.waited += 1

    def shared_bytes(self) -> int:
        return sum(one.view.numel() for one in self.made if one.descriptor >= 0)


@pytest.mark.parametrize("calls_per_buffer", [1, 2, 3, 6])
def test_while_inputs_are_copied_back_a_batch_takes_no_more_than_is_counted_on(calls_per_buffer: int) -> None:
    """One slab after the other is let go, and the outputs before: or there would be no room for the copies."""
    device, calls = CountingHost(), 6
    inputs, outputs = bytes_of(ADD, CASE)
    memory = BatchMemory(
        ADD,
        CASE,
        device,
        [DrawnInputs(ADD, CASE, draw, KEY) for _ in range(calls)],
        ALL_ON,
        calls_per_buffer=calls_per_buffer,
    )
    try:
        memory.fill()
        assert device.shared_bytes() == calls * (inputs + outputs)
        held = []
        for number, (back, changed) in enumerate(memory.read_back_inputs(), 1):
            assert changed == []
            assert back.drawn == {"alpha": 0.5}
            # The judge's copies: of all outputs, and of the inputs so far.
            held.append(device.shared_bytes() + calls * outputs + number * inputs)
        assert device.shared_bytes() == 0
        assert (
            max(held)
            == calls * (inputs + outputs) + calls_per_buffer * inputs
            <= max_bytes_held(inputs, outputs, calls, calls_per_buffer)
        )
        assert memory.drawn == ({"alpha": 0.5},) * calls
    finally:
        memory.close()


def test_whatever_takes_memory_waits_once_until_what_was_given_back_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    device, write, read_back_inputs, empty = (
        CountingHost(),
        DrawnInputs.write,
        DrawnInputs.read_back_inputs,
        torch.empty,
    )
    failed: list[weakref.ref[torch.Tensor]] = []

    def written_then(self: DrawnInputs, pieces: list[torch.Tensor]) -> None:
        if device.waited < 2:
            some = torch.zeros(1)
            failed.append(weakref.ref(some))
            raise torch.OutOfMemoryError("CUDA out of memory")
        assert failed[0]() is None, "what was made before it failed is let go before the next try"
        write(self, pieces)

    def full_at_first(self: Inputs, pieces: list[torch.Tensor]) -> Any:
        if device.waited < 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return read_back_inputs(self, pieces)

    def empty_at_first(*size: Any, **options: Any) -> torch.Tensor:
        if device.waited < 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return empty(*size, **options)

    monkeypatch.setattr(DrawnInputs, "read_back_inputs", full_at_first)
    monkeypatch.setattr(DrawnInputs, "write", written_then)
    monkeypatch.setattr(torch, "empty", empty_at_first)
    memory = BatchMemory(ADD, CASE, device, [DrawnInputs(ADD, CASE, draw, KEY)], ALL_ON)
    try:
        memory.fill()
        assert [changed for _, changed in memory.read_back_inputs()] == [[]]
        assert device.waited == 3
    finally:
        memory.close()
