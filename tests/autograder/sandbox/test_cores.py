"""Who is kept on which cores where a node's owner says nothing: by a machine's own files, made up."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.contract import Lane, Language
from autograder.errors import SandboxError
from autograder.sandbox import Purpose, RunnerLimits, Side
from autograder.sandbox.docker import DockerConfig, DockerSandbox, cores, load_config
from autograder.sandbox.docker import container as docker_container
from autograder.sandbox.docker import sandbox as driver
from autograder.sandbox.docker.container import Container
from autograder.sandbox.docker.cores import ANY, Cores, apart, by_the_machine, numbers
from autograder.sandbox.docker.settings import Kind

BUS = "0000:{:02X}:00.0"


class Machine:
    """A folder like /sys and one like the driver's.

    Args:
        siblings: cores of one physical core, as the system lists them.
        near: by GPU, the cores of its side; `None` where the system does not tell.
    """

    def __init__(self, folder: Path, siblings: Sequence[str], near: Sequence[str | None]) -> None:
        self.system, self.gpus = folder / "sys", folder / "gpus"
        for text in siblings:
            for core in numbers(text):
                write(self.system / f"devices/system/cpu/cpu{core}/topology/thread_siblings_list", text)
        for place, near_by in enumerate(near):
            bus = BUS.format(10 + place)
            write(self.gpus / bus / "information", f"GPU UUID: \t GPU-{place}aa\nDevice Minor: \t {place}\n")
            if near_by is not None:
                write(self.system / "bus/pci/devices" / bus.lower() / "local_cpulist", near_by)
        self.cores = frozenset(core for text in siblings for core in numbers(text))

    def suggests(self, gpu: int = 0, allowed: frozenset[int] | None = None) -> Cores:
        environ = {"CUDA_VISIBLE_DEVICES": f"GPU-{gpu}aa"}
        return by_the_machine(environ, gpus=self.gpus, system=self.system, allowed=allowed or self.cores)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="ascii")


def all_of(cores: Cores) -> list[int]:
    """Each core once for every one of judge, sides and those who wait."""
    assert cores.submission == cores.reference, "none has the faster ones"
    return sorted(core for text in (cores.judge, cores.submission, cores.warm) for core in numbers(text))


def test_judge_sides_and_those_who_wait_share_no_core(tmp_path: Path) -> None:
    found = Machine(tmp_path, [str(core) for core in range(16)], ["0-15"]).suggests()
    assert found == Cores("0,1", "2,3,4,5,6,7", "2,3,4,5,6,7", "8,9,10,11,12,13,14,15")
    assert all_of(found) == list(range(16))


def test_whoever_is_not_timed_has_all_but_the_judges_cores() -> None:
    assert Cores("0,1", "2-4", "2-4", "8,9").untimed == "2,3,4,8,9"
    assert Cores(judge="0").untimed == ANY.untimed == ""


@pytest.mark.parametrize(
    ("purpose", "side", "expected"),
    [
        (Purpose.call, Side.submission, "2"),
        (Purpose.call, Side.reference, "3"),
        (Purpose.call, Side.untimed, "2,3,4"),
        (Purpose.compile, Side.untimed, "2,3,4"),
    ],
)
def test_a_container_gets_the_cores_of_its_side(purpose: Purpose, side: Side, expected: str) -> None:
    container = Container.__new__(Container)
    limits = RunnerLimits(1, 1, 1, 1)
    container.kind = Kind(Language.triton, Lane.h200, purpose, limits)
    making: Any = SimpleNamespace(config=DockerConfig(cores=Cores("0", "2", "3", "4")))
    container._making = making
    assert container._cores(side) == expected


class Updates:
    """As much of the engine as changes limits."""

    def __init__(self, *, gone: bool) -> None:
        self._gone = gone
        self.asked: list[dict[str, Any]] = []

    def update(self, _: str, **limits: Any) -> None:
        self.asked.append(limits)
        if self._gone:
            raise SandboxError("could not change a container's limits: it is not running")


def kept_on(own: str, *, gone: bool = False) -> tuple[Container, list[dict[str, Any]]]:
    """A container and what its engine is asked."""
    container, engine = Container.__new__(Container), Updates(gone=gone)
    container._own_cores, container._turn, container._id, container._first = own, 0, "made", -1
    making: Any = SimpleNamespace(engine=engine)
    container._making = making
    return container, engine.asked


def test_who_moves_is_on_the_next_physical_core_and_then_on_all_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, ["0,4", "1,5", "2,6", "3,7"], [None])
    monkeypatch.setattr(docker_container, "apart", lambda text: apart(text, machine.system))
    container, asked = kept_on("1-3,5-7")
    for turn in (0, 1, 2, 3, 4, 0, 0):
        container.pin_core(turn)
    assert [limits["cpuset_cpus"] for limits in asked] == ["1,5", "2,6", "3,7", "1,5", "1-3,5-7"]


def test_a_move_that_is_refused_is_no_error_and_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that has ended by itself must not be an error of ours: it would be graded again for nothing. And a
    reference that is kept for long must not stay on one core for a daemon that did not answer once."""
    machine = Machine(tmp_path, ["0,4", "1,5"], [None])
    monkeypatch.setattr(docker_container, "apart", lambda text: apart(text, machine.system))
    container, asked = kept_on("0-1,4-5", gone=True)
    # An answer that was lost: perhaps it is on that core.
    for turn in (1, 0, 0):
        container.pin_core(turn)
    assert [limits["cpuset_cpus"] for limits in asked] == ["0,4", "0-1,4-5", "0-1,4-5"]


@pytest.mark.parametrize("own", ["", "3,7"])
def test_who_has_no_other_core_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    machine = Machine(tmp_path, ["3,7"], [None])
    monkeypatch.setattr(docker_container, "apart", lambda text: apart(text, machine.system))
    container, asked = kept_on(own)
    container.pin_core(1)
    assert asked == []


def test_siblings_stay_together(tmp_path: Path) -> None:
    found = Machine(tmp_path, [f"{core},{core + 4}" for core in range(4)], ["0-7"]).suggests()
    assert found == Cores("0,4", "1,5", "1,5", "2,3,6,7")


def test_gpus_of_one_side_share_its_cores_and_leave_the_others_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [str(core) for core in range(24)], ["0-15", "0-15", "16-23"])
    first, second, third = (all_of(machine.suggests(gpu)) for gpu in range(3))
    assert (first, second, third) == (list(range(8)), list(range(8, 16)), list(range(16, 24)))


def test_only_what_this_process_may_use_is_given_away(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [str(core) for core in range(16)], [None])
    assert all_of(machine.suggests(allowed=frozenset(range(4, 10)))) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("cores", [1, 3])
def test_a_small_machine_has_none_to_give_away(tmp_path: Path, cores: int) -> None:
    assert Machine(tmp_path, [str(core) for core in range(cores)], ["0-1"]).suggests() == ANY


def test_without_a_gpu_nobody_is_kept_anywhere(tmp_path: Path) -> None:
    assert by_the_machine({}, gpus=tmp_path / "none", system=tmp_path, allowed=range(16)) == ANY


def test_a_system_that_tells_nothing_has_as_many_physical_cores_as_it_numbers(tmp_path: Path) -> None:
    machine = Machine(tmp_path, [], [None])
    assert all_of(machine.suggests(allowed=frozenset(range(8)))) == list(range(8))


def test_what_the_owner_says_of_one_stands_for_all() -> None:
    assert load_config({"LADDER_SANDBOX_CPUS_JUDGE": "0-1, 4"}).cores == Cores(judge="0-1,4")
    assert load_config({"LADDER_SANDBOX_CPUS_WARM": ""}).cores == ANY


@pytest.mark.parametrize("text", ["2-", "1,,2", "-3", ",", "1-2-3", " 1"])
def test_a_list_that_is_none_is_refused(text: str) -> None:
    """Docker and the kernel would refuse it later, or take it for something else."""
    with pytest.raises(ValueError, match="0-3,8"):
        numbers(text)


class Daemon:
    """As much of the engine as is asked where everybody is kept."""

    def __init__(self, *, keeps: bool) -> None:
        self.keeps = keeps

    def keeps_to_cores(self) -> bool:
        return self.keeps


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """Where this process was to be kept, and is not."""
    asked: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: asked.append(set(cores)))
    monkeypatch.setattr(driver, "by_the_machine", lambda: Cores("0", "1", "1", "2-3"))
    return asked


def placed(config: DockerConfig, *, keeps: bool = True) -> DockerConfig:
    made = DockerSandbox.__new__(DockerSandbox)
    made._engine = Daemon(keeps=keeps)  # type: ignore[assignment]
    return made._placed(config)


def test_the_judge_is_kept_on_its_cores(pinned: list[set[int]]) -> None:
    assert placed(DockerConfig()).cores == Cores("0", "1", "1", "2-3")
    own = replace(DockerConfig(), cores=Cores(judge="4-5"))
    assert placed(own) == own
    assert pinned == [{0}, {4, 5}]


def test_cores_that_are_not_there_are_named() -> None:
    with pytest.raises(SandboxError, match="cores 4000"):
        placed(replace(DockerConfig(), cores=Cores(judge="4000")))


def test_a_second_sandbox_of_a_process_shares_out_all_of_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has kept this process on the judge's own."""
    monkeypatch.setattr(cores, "FEWEST", 1)
    before = os.sched_getaffinity(0)
    machine = Machine(tmp_path, [str(core) for core in before], [None])
    shared = by_the_machine({}, gpus=machine.gpus, system=machine.system)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert by_the_machine({}, gpus=machine.gpus, system=machine.system) == shared
    finally:
        os.sched_setaffinity(0, before)
    assert shared != ANY


def test_a_daemon_that_keeps_nobody_on_cores_is_asked_for_none(pinned: list[set[int]]) -> None:
    assert placed(DockerConfig(), keeps=False).cores == ANY
    assert pinned == []
