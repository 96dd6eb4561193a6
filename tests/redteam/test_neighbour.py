"""The noise of a neighbour: it is there when something is graded beside it, and gone afterwards."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.redteam import neighbour as noise
from tests.redteam.neighbour import neighbour

TORCH = """
from contextlib import nullcontext
uint8 = "uint8"
class Any:
    def __init__(self, *_, **__): pass
    def copy_(self, _, non_blocking): assert non_blocking
    def synchronize(self): pass
def empty(size, dtype, device=None, pin_memory=False):
    assert size == 2**28 and (device is not None) != pin_memory
    return Any()
def device(kind, number):
    assert (kind, number) == ("cuda", 1)
    return Any()
class cuda:
    Stream = Any
    stream = staticmethod(lambda _: nullcontext())
    @staticmethod
    def device_count():
        import os
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
        return {count}
"""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The process ids of the noise."""
    pids: list[int] = []
    popen = noise.subprocess.Popen

    def counted(*args: object, **kwargs: object) -> object:
        made = popen(*args, **kwargs)  # type: ignore[call-overload]
        pids.append(made.pid)
        return made

    monkeypatch.setattr(noise.subprocess, "Popen", counted)
    return pids


def put_torch(folder: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """A stand-in for the package, of a machine with so many GPUs."""
    (folder / "torch.py").write_text(TORCH.replace("{count}", str(count)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")


def test_where_there_is_a_gpu_something_crosses_the_bus(
    started: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_torch(tmp_path, monkeypatch, count=2)
    with neighbour(pcie=True):
        assert len(started) == 1 + max(1, (os.cpu_count() or 2) - noise.LEFT_ALONE)
        assert all(Path(f"/proc/{pid}").exists() for pid in started)
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)


def test_a_neighbour_that_makes_no_noise_is_an_error(
    started: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_torch(tmp_path, monkeypatch, count=7)
    with pytest.raises(RuntimeError, match="on PCIe ended with status 1"), neighbour(pcie=True):
        pytest.fail("nothing is graded beside it")
    assert len(started) == 1
    assert not Path(f"/proc/{started[0]}").exists()


def test_without_a_gpu_there_is_noise_all_the_same(started: list[int]) -> None:
    with neighbour():
        assert started
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)
