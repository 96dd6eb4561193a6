"""Prints of inputs on a GPU: the same numbers as on the host, whatever the words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from autograder.assignment import Case, load_assignment
from autograder.contract import Lane
from autograder.judge import ALL_ON
from autograder.judge.protocol import devices
from autograder.judge.protocol.batch_buffer import BatchMemory
from autograder.judge.protocol.batch_inputs import Changed, DrawnInputs, digest_of, draw_key
from autograder.judge.protocol.buffers import GUARD_BYTES

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("pages", [2, 17, 1030])
def test_a_print_is_the_same_on_the_device_and_on_the_host(pages: int) -> None:
    key = draw_key(torch.device("cuda"))
    image = torch.randint(256, (pages * GUARD_BYTES,), dtype=torch.uint8)
    image[:GUARD_BYTES], image[GUARD_BYTES : 2 * GUARD_BYTES] = 128, 127
    key[:, 0], key[:, 1] = -128, 127
    assert digest_of(image.cuda(), key).cpu().equal(digest_of(image, key.cpu()))


@pytest.mark.parametrize("bit", range(32))
def test_one_bit_on_the_device_is_seen(bit: int) -> None:
    key = draw_key(torch.device("cuda"))
    image = torch.randint(256, (3 * GUARD_BYTES,), dtype=torch.uint8, device="cuda")
    before = digest_of(image, key)
    image[GUARD_BYTES + bit // 8] ^= 1 << (bit % 8)
    assert (digest_of(image, key) != before).any(dim=1).tolist() == [False, True, False]


@pytest.mark.parametrize("calls_per_buffer", [1, 3])
def test_inputs_come_back_from_memory_that_is_shared(lane: Lane, calls_per_buffer: int) -> None:
    """The driver's own memory, in whole slabs; of the second call one word is not as it was, and one beside it."""
    assignment, case = load_assignment(ROOT / "assignments" / "vector_add"), Case("odd", {"n": 2**20 + 7}, "float32")
    device = devices.of(lane)
    device.attach()
    made: list[dict[str, torch.Tensor]] = []

    def draw() -> dict[str, torch.Tensor]:
        made.append({name: torch.randn(case.size["n"], device=device.where) for name in ("x", "y")})
        return dict(made[-1])

    key = draw_key(device.where)
    inputs = [DrawnInputs(assignment, case, draw, key) for _ in range(3)]
    memory = BatchMemory(assignment, case, device, inputs, ALL_ON, calls_per_buffer=calls_per_buffer)
    try:
        memory.fill()
        x, y = memory._pieces(1)
        x[GUARD_BYTES + 400] ^= 1
        y[GUARD_BYTES - 1] ^= 128
        found = list(memory.read_back_inputs())
    finally:
        memory.close()
    assert [changed for _, changed in found] == [[], [Changed("x", (0, 0, 0)), Changed("y", (1, 0, 0))], []]
    for number in (0, 2):
        back = found[number][0].tensors()
        assert all(back[name].equal(made[number][name]) for name in ("x", "y"))
