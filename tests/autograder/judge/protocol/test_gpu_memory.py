"""What the judge keeps of a GPU's memory for later, on a GPU that is not there."""

from __future__ import annotations

import pytest
import torch

from autograder.judge.protocol.gpu import JUDGES, GpuDevice

PART = 1000
CPU = torch.device("cpu")


class Kept(GpuDevice):
    """A device whose torch keeps so many bytes, and that notes what is done."""

    def __init__(self, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.where = CPU
        self.memory_bytes = JUDGES * PART
        self.done: list[str | int] = []
        self._reserved = 0
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: kept + 50)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 50)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: self.done.append("emptied"))

    def wait_until_idle(self) -> None:
        self.done.append("waited")

    def _take(self, size: int) -> None:
        self.done.append(size)


@pytest.mark.parametrize(("asked", "reserved"), [(300, 300), (PART, PART), (5000, PART)])
def test_more_than_the_judges_part_is_given_back_and_what_was_reserved_is_kept(
    monkeypatch: pytest.MonkeyPatch, asked: int, reserved: int
) -> None:
    """Or a submission with less scratch memory than is allowed would find none, and be told that it took too much."""
    device = Kept(PART + 1, monkeypatch)
    device.reserve(asked)
    device.trim_cache()
    assert device.done == [reserved, "emptied", "waited", reserved]


def test_what_is_the_judges_part_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Kept(PART, monkeypatch)
    device.trim_cache()
    assert device.done == []
