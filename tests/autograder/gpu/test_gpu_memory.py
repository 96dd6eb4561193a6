"""Device memory as descriptors, on a driver without a device: what is made is undone, whatever fails on the way."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograder.contract import Lane, Verdict
from autograder.errors import GpuError, GpuMemoryError, SandboxError
from autograder.gpu.driver import PersistingCache, VirtualMemory
from autograder.judge.correctness.seeds import generator
from autograder.judge.protocol import devices
from autograder.judge.protocol import gpu as judge_gpu
from autograder.judge.protocol.failure import from_raised
from autograder.judge.protocol.gpu import GpuMemory, check
from autograder.judge.protocol.host import HOST
from autograder.protocol import Raised, TensorSpec
from autograder.runner import gpu as runner_gpu
from autograder.runner.gpu import GpuSlab, Rehearsal
from autograder.sandbox import gpu as nodes_of
from tests.autograder.fake_driver import PAGE, FakeDriver


@pytest.fixture(autouse=True)
def _tensors_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_gpu, "as_bytes", lambda _, size: torch.zeros(size, dtype=torch.uint8))


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_memory_is_mapped_and_exported_and_gone_when_it_is_closed() -> None:
    driver, before = FakeDriver(), descriptors()
    memory = GpuMemory(VirtualMemory(0, driver), 3 * PAGE)
    assert os.fstat(memory.descriptor)
    assert memory.view.numel() == 3 * PAGE
    assert list(driver.writable.values()) == [True]
    assert not driver.handles, "the mapping and the descriptor keep the memory"
    memory.close()
    memory.close()
    assert driver.nothing_left()
    assert descriptors() == before


@pytest.mark.parametrize("step", ["create", "reserve", "map", "access", "export"])
def test_what_fails_half_way_leaves_nothing(step: str) -> None:
    driver, before = FakeDriver(fails_at=step), descriptors()
    with pytest.raises(GpuError, match="OUT_OF_MEMORY"):
        GpuMemory(VirtualMemory(0, driver), PAGE)
    assert driver.nothing_left()
    assert descriptors() == before


def test_nothing_is_unmapped_while_the_device_may_work_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver()
    memory = GpuMemory(VirtualMemory(0, driver), PAGE)
    mapped_when_waited: list[int] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: mapped_when_waited.append(len(driver.mapped)))
    memory.close()
    assert mapped_when_waited == [1]
    assert driver.nothing_left()


def test_closed_memory_is_not_used_again() -> None:
    memory = GpuMemory(VirtualMemory(0, FakeDriver()), PAGE)
    memory.close()
    assert memory.descriptor == -1
    with pytest.raises(GpuError, match="after it was closed"):
        memory.view.sum()


def test_an_importer_says_itself_what_it_may() -> None:
    driver = FakeDriver()
    memory = VirtualMemory(0, driver)
    descriptor = memory.export(memory.create(PAGE))
    handle = memory.receive(descriptor)
    address = memory.map(handle, PAGE, writable=False)
    memory.release(handle)
    assert driver.writable[address] is False
    memory.unmap(address, PAGE)
    assert not driver.mapped
    os.close(descriptor)


@pytest.mark.parametrize(
    ("lane", "name", "capability"),
    [
        (Lane.h200, "NVIDIA H200", (9, 0)),
        (Lane.h100, "NVIDIA H100 80GB HBM3", (9, 0)),
        (Lane.b200, "NVIDIA B200", (10, 0)),
    ],
)
def test_a_device_belongs_to_its_lane(lane: Lane, name: str, capability: tuple[int, int]) -> None:
    check(lane, name, capability)
    for other in {Lane.h100, Lane.h200, Lane.b200} - {lane}:
        with pytest.raises(GpuError, match=f"no device of the lane {other}"):
            check(other, name, capability)
    with pytest.raises(GpuError):
        check(lane, name, (8, 0))


def test_the_cpu_lane_needs_no_gpu() -> None:
    assert devices.of(Lane.cpu) is HOST


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_machine_without_a_gpu_says_so() -> None:
    with pytest.raises(GpuError, match="torch sees no GPU"):
        devices.of(Lane.h200)


def test_inputs_are_drawn_where_they_are_needed() -> None:
    assert generator(2**63 + 5).device == torch.device("cpu")


@pytest.mark.parametrize(
    "message", ["CUDA error: an illegal memory access was encountered", "CUDA error: misaligned address"]
)
def test_a_fault_of_the_device_is_an_illegal_access_after_which_the_runner_is_of_no_use(message: str) -> None:
    found = from_raised(Raised(1, "call", "AcceleratorError", message))
    assert (found.verdict, found.ended) == (Verdict.illegal_access, True)


def gpus(folder: Path, *minors: int) -> Path:
    for minor in minors:
        (folder / f"0000:0{minor}:00.0").mkdir()
        text = f"Model: \t NVIDIA H200\nGPU UUID: \t GPU-{minor}aaa\nDevice Minor: \t {minor}\n"
        (folder / f"0000:0{minor}:00.0" / "information").write_text(text)
    return folder


def test_a_runner_gets_the_nodes_of_one_gpu(tmp_path: Path) -> None:
    one = gpus(tmp_path, 3)
    wanted = ("/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert nodes_of.nodes({}, one) == nodes_of.nodes({"CUDA_VISIBLE_DEVICES": "0"}, one) == wanted


def test_of_several_gpus_one_has_to_be_named(tmp_path: Path) -> None:
    many = gpus(tmp_path, 0, 1, 2)
    assert nodes_of.nodes({"CUDA_VISIBLE_DEVICES": "GPU-2aaa"}, many)[0] == "/dev/nvidia2"
    for unclear in ({}, {"CUDA_VISIBLE_DEVICES": "1"}, {"CUDA_VISIBLE_DEVICES": "GPU-9"}):
        with pytest.raises(SandboxError, match="UUID"):
            nodes_of.nodes(unclear, many)


def test_a_machine_without_a_driver_has_no_nodes(tmp_path: Path) -> None:
    with pytest.raises(SandboxError):
        nodes_of.nodes({}, tmp_path / "nothing")


@pytest.fixture
def _runner_tensors_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_gpu, "_as_bytes", lambda _, size: torch.zeros(size, dtype=torch.uint8))


def spec(name: str, offset: int, *, writable: bool) -> TensorSpec:
    return TensorSpec(name, "float32", (4, 2), (2, 1), offset, 2 * PAGE, writable=writable)


@pytest.mark.usefixtures("_runner_tensors_of_the_host")
@pytest.mark.parametrize("writable", [True, False])
def test_a_slab_is_there_before_its_memory_and_gone_with_it(writable: bool) -> None:
    driver, before = FakeDriver(), descriptors()
    memory = VirtualMemory(0, driver)
    handle = memory.create(2 * PAGE)
    descriptor = memory.export(handle)
    memory.release(handle)
    slab = GpuSlab([spec("x", 16384, writable=writable), spec("y", 65536, writable=writable)], memory)
    assert {name: tuple(tensor.shape) for name, tensor in slab.tensors.items()} == {"x": (4, 2), "y": (4, 2)}
    assert not driver.mapped, "the page that torch looked at is taken away"
    slab.attach(descriptor)
    assert list(driver.mapped.values()) == [2 * PAGE]
    assert list(driver.writable.values())[-1] is writable
    slab.close()
    os.close(descriptor)
    assert driver.nothing_left()
    assert descriptors() == before


@pytest.mark.usefixtures("_runner_tensors_of_the_host")
def test_a_slab_that_was_never_revealed_is_closed_too() -> None:
    driver = FakeDriver()
    GpuSlab([spec("x", 16384, writable=False)], VirtualMemory(0, driver)).close()
    assert driver.nothing_left()


def test_a_rehearsal_leaves_its_page_unmapped() -> None:
    driver = FakeDriver()
    rehearsal = Rehearsal(VirtualMemory(0, driver))
    for _ in range(3):
        rehearsal.run()
    assert not driver.mapped
    assert not driver.handles


def test_lines_that_persist_are_forbidden_here_and_reset_wherever_they_were_made() -> None:
    called: list[object] = []
    driver = SimpleNamespace(
        cuCtxResetPersistingL2Cache=lambda: called.append("reset"),
        cuCtxSetLimit=lambda limit, size: called.append((limit, size)),
        CUlimit=SimpleNamespace(CU_LIMIT_PERSISTING_L2_CACHE_SIZE="persisting"),
    )
    PersistingCache(driver).reset()
    assert called == [("persisting", 0), "reset"]


def test_memory_that_runs_out_has_an_error_of_its_own() -> None:
    with pytest.raises(GpuMemoryError):
        VirtualMemory(0, FakeDriver(fails_at="create")).create(PAGE)
