"""Prints of inputs on a GPU: the same numbers as on the host, whatever the words."""

from __future__ import annotations

import pytest
import torch

from autograder.judge.buffers import GUARD_BYTES
from autograder.judge.inputs import draw_key, print_of

pytestmark = pytest.mark.gpu


def test_a_print_is_the_same_on_the_device_and_on_the_host() -> None:
    key = draw_key(torch.device("cuda"))
    image = torch.randint(256, (1030 * GUARD_BYTES,), dtype=torch.uint8)
    image[: GUARD_BYTES // 2] = 255
    image[GUARD_BYTES // 2 : GUARD_BYTES] = torch.tensor([0, 0, 0, 128], dtype=torch.uint8).repeat(GUARD_BYTES // 8)
    assert print_of(image.cuda(), key).cpu().equal(print_of(image, key.cpu()))


@pytest.mark.parametrize("bit", range(32))
def test_one_bit_on_the_device_is_seen(bit: int) -> None:
    key = draw_key(torch.device("cuda"))
    image = torch.randint(256, (3 * GUARD_BYTES,), dtype=torch.uint8, device="cuda")
    before = print_of(image, key)
    image[GUARD_BYTES + bit // 8] ^= 1 << (bit % 8)
    assert (print_of(image, key) != before).tolist() == [False, True, False]
