"""What wakes a device before a batch, on a device that is not there."""

from __future__ import annotations

import pytest
import torch

from autograder.runner.languages import touch


class Launches:
    """In place of the kernel: keeps what it is launched on."""

    def __init__(self) -> None:
        self.on: list[torch.Tensor] = []

    def __getitem__(self, grid: tuple[int, ...]) -> object:
        assert grid == (1,)
        return self.on.append


def test_every_time_it_clears_scratch_memory_by_the_function_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, made = Launches(), []

    def zeros(size: int, *, dtype: torch.dtype, device: str) -> torch.Tensor:
        assert device == "cuda"
        made.append(torch.full((size,), 0, dtype=dtype))
        return made[-1]

    monkeypatch.setattr(touch, "_touch", kernel)
    monkeypatch.setattr(torch, "zeros", zeros)
    wake = touch.Touch()
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: pytest.fail("a submission's own function was called"))
    wake()
    wake()
    assert [id(one) for one in kernel.on] == [id(one) for one in made]
    assert len(made) == 3
