"""Inputs of a batch: not kept, and known again to the last bit when they are copied back."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from autograder.assignment import Case, load_assignment
from autograder.judge.buffers import GUARD_BYTES
from autograder.judge.host import HOST
from autograder.judge.inputs import Inputs, Kept, kept, print_of

ADD = load_assignment(Path(__file__).parents[3] / "assignments" / "vector_add")
CASE = Case("odd", {"n": 5000}, "float32")
PAGE = GUARD_BYTES


def draw() -> dict[str, torch.Tensor]:
    return {name: torch.randn(5000) for name in ("x", "y")} | {"alpha": torch.tensor(0.5)}


def written(inputs: Inputs) -> list[torch.Tensor]:
    """Pieces of shared memory with the inputs in them."""
    pieces = [torch.zeros(spec.bytes, dtype=torch.uint8) for spec, _ in inputs.layout]
    inputs.write(pieces)
    return pieces


@pytest.fixture
def inputs() -> Inputs:
    return Inputs(ADD, CASE, draw)


def test_what_is_copied_back_is_what_was_drawn(inputs: Inputs) -> None:
    made = draw()
    inputs._draw = lambda: dict(made)
    pieces = written(inputs)
    back, changed = inputs.taken_back(pieces)
    assert changed == []
    assert inputs.drawn == back.drawn == {"alpha": 0.5}
    assert {name: value.tolist() for name, value in back.tensors().items()} == {
        name: value.tolist() for name, value in made.items()
    }
    for piece in pieces:
        piece.zero_()
    assert back.tensors()["x"].equal(made["x"]), "the copies are the judge's own"


def test_what_was_drawn_is_not_kept(inputs: Inputs) -> None:
    pieces = written(inputs)
    held = [value for one in vars(inputs).values() for value in (one if isinstance(one, list) else [one])]
    tensors = [value for value in held if isinstance(value, torch.Tensor)]
    assert tensors
    assert sum(one.numel() for one in tensors) * 1000 < sum(one.numel() for one in pieces)


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("place", [0, GUARD_BYTES + 1, GUARD_BYTES + 4 * 5000 - 1, -1])
def test_one_bit_anywhere_is_seen(inputs: Inputs, place: int, bit: int) -> None:
    """The highest of a word too: its difference, 2^31, leaves least of a key's bits in the product."""
    pieces = written(inputs)
    pieces[1][place] ^= 1 << bit
    _, changed = inputs.taken_back(pieces)
    assert changed == ["y"]


def test_what_changes_while_it_is_looked_at_changes_nothing(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner has it mapped, and what it has queued on a GPU goes on while it is stopped."""
    pieces = written(inputs)
    before = [piece.clone() for piece in pieces]

    def late(image: torch.Tensor) -> torch.Tensor:
        for piece in pieces:
            piece.zero_()
        return print_of(image)

    monkeypatch.setattr("autograder.judge.inputs.print_of", late)
    back, changed = inputs.taken_back(pieces)
    assert changed == []
    assert all(image.equal(piece) for image, piece in zip(back._images, before, strict=True))


def test_pages_that_change_places_are_seen() -> None:
    image = torch.randint(256, (8 * PAGE,), dtype=torch.uint8)
    swapped = torch.cat([image[PAGE : 2 * PAGE], image[:PAGE], image[2 * PAGE :]])
    assert not torch.equal(print_of(image), print_of(swapped))


def test_words_whose_sum_stays_the_same_are_seen() -> None:
    image = torch.zeros(PAGE, dtype=torch.uint8).view(torch.int32)
    image[7], image[9] = 5, -5
    other = image.roll(1)
    assert int(image.sum()) == int(other.sum())
    assert not torch.equal(print_of(image.view(torch.uint8)), print_of(other.view(torch.uint8)))


def test_there_is_a_print_of_every_page_however_many_there_are() -> None:
    image = torch.randint(256, (4099 * PAGE,), dtype=torch.uint8)
    whole = print_of(image)
    assert whole.shape == (4099,)
    for page in (0, 4095, 4096, 4098):
        assert print_of(image[page * PAGE : (page + 1) * PAGE]).equal(whole[page : page + 1])


def test_every_process_has_a_key_of_its_own() -> None:
    program = (
        "import torch\nfrom autograder.judge.inputs import print_of\n"
        f"print(int(print_of(torch.ones({PAGE}, dtype=torch.uint8))[0]))"
    )
    root = Path(__file__).parents[3]
    found = {
        subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(found) == 2


def test_images_that_are_kept_serve_any_number_of_calls() -> None:
    made = draw()
    one = kept(ADD, CASE, made)
    first, second = written(one), written(one)
    assert all(a.equal(b) for a, b in zip(first, second, strict=True))
    back, changed = one.taken_back(second)
    assert isinstance(back, Kept)
    assert back is one
    assert changed == []
    second[0][GUARD_BYTES] ^= 1
    assert one.taken_back(second)[1] == ["x"]
    assert made.keys() == {"x", "y", "alpha"}, "whoever asks has his own still"


def test_rows_that_are_padded_come_back_with_their_strides() -> None:
    softmax = load_assignment(Path(__file__).parents[3] / "assignments" / "softmax")
    padded = next(case for case in softmax.cases if case.layout and case.layout["x"].pad)
    case = dataclasses.replace(padded, size={"rows": 3, "cols": 5}, dtype="float32")
    made = torch.randn(3, 5)
    inputs = Inputs(softmax, case, lambda: {"x": made.clone()})
    back, changed = inputs.taken_back(written(inputs))
    assert changed == []
    assert back.tensors()["x"].stride(0) > 5
    assert back.tensors()["x"].equal(made)
    assert HOST.granularity <= GUARD_BYTES
