"""What of a worker's configuration concerns the node itself, apart from server and broker.

`ladder node accept` reads this alone: it needs neither.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder import toolchain
from autograder.contract import Lane, Work
from worker.node_errors import UnfitError

REPOSITORY = Path(__file__).resolve().parent.parent
SANDBOXES = {
    "process": "autograder.sandbox.process:ProcessSandbox",
    "docker": "autograder.sandbox.docker:DockerSandbox",
}
"""Drivers by their names, each as the judge is told it."""
AUTO = "auto"


@dataclass(frozen=True)
class SandboxConfig:
    """Where runners live.

    Attributes:
        driver: `process` or `docker`.
        accepted: promises that its owner serves without.
        settings: of the driver, by the names of their variables; the judge's process gets them.
    """

    driver: str = "process"
    accepted: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def dotted(self) -> str:
        """The driver as the judge is told it."""
        return SANDBOXES[self.driver]


@dataclass(frozen=True)
class LifeConfig:
    """How the node looks after itself.

    Attributes:
        self_test: try known jobs and escapes before any work is taken.
        canary_every_s: the golden kernel is measured again after so long, when nothing else runs; 0 for never.
        canary_every_jobs: and after so many jobs, whatever else; 0 for never.
        cool_down_s: between a failure of the golden kernel and its second chance.
        gradings: how many measurements of it the noise floor begins with.
    """

    self_test: bool = False
    canary_every_s: float = 0.0
    canary_every_jobs: int = 0
    cool_down_s: float = 60.0
    gradings: int = 5


@dataclass(frozen=True)
class NodeConfig:
    """What a node works on, and how.

    Attributes:
        work: its folder: attempts, claims, bundles, the judge's log.
        judge: the command that serves as the judge's process.
        foreign: that command is not ours, so which device it works on, and that nobody else does, is its own affair.
        lanes: what it grades; empty for what its GPU belongs to, or `cpu` where there is none.
        works: what of a grading it does.
        gpu: UUID of the one GPU it serves, or its beginning; `""` where there is one at most.
        locks: folder of the GPUs' locks, the same for all workers of this machine.
        secrets: files that no submission may read; the self-test tries.
        sandbox, life: see there.
    """

    work: Path
    judge: tuple[str, ...]
    foreign: bool = False
    lanes: tuple[Lane, ...] = ()
    works: tuple[Work, ...] = tuple(Work)
    gpu: str = ""
    locks: Path = Path("/run/lock/kernel-ladder")
    secrets: tuple[Path, ...] = ()
    sandbox: SandboxConfig = field(default_factory=SandboxConfig)
    life: LifeConfig = field(default_factory=LifeConfig)


def load_node_config(environ: Mapping[str, str], *, secrets: tuple[Path, ...] = ()) -> NodeConfig:
    """Read the environment.

    Raises:
        ValueError: a variable cannot be read; the message names it.
        UnfitError: the node must not serve so.
    """
    sandbox = _sandbox(environ)
    judge = environ.get("LADDER_JUDGE")
    work = Path(environ.get("LADDER_WORK", home_of(environ) / "work")).resolve()
    _refuse_shown({"The node's folder": (work,), "The node's secret": secrets})
    return NodeConfig(
        work=work,
        judge=tuple(shlex.split(judge)) if judge else judge_command(sandbox.dotted),
        foreign=bool(judge),
        lanes=_lanes(environ.get("LADDER_LANES", "cpu")),
        works=_works(environ.get("LADDER_STAGES", ",".join(Work))),
        gpu=environ.get("LADDER_GPU", ""),
        locks=Path(environ.get("LADDER_GPU_LOCKS", "/run/lock/kernel-ladder")),
        secrets=secrets,
        sandbox=sandbox,
        life=_life(environ),
    )


def _refuse_shown(places: Mapping[str, tuple[Path, ...]]) -> None:
    """Where submissions could read the staff's part of an assignment, or what opens something, nothing is graded."""
    for what, paths in places.items():
        for path in paths:
            if said := toolchain.shown_sentence(what, path):
                raise UnfitError(said)


def home_of(environ: Mapping[str, str]) -> Path:
    """Where everything of an installation is that has no place of its own."""
    return Path(environ.get("LADDER_HOME", REPOSITORY / "var")).resolve()


def judge_command(sandbox: str) -> tuple[str, ...]:
    """The command that serves as the judge's process, with the driver of its sandbox."""
    return (sys.executable, "-P", "-m", "autograder.judge", "--sandbox", sandbox, "serve")


def _sandbox(environ: Mapping[str, str]) -> SandboxConfig:
    driver = environ.get("LADDER_SANDBOX", "process")
    if driver not in SANDBOXES:
        raise ValueError(f"LADDER_SANDBOX has to be one of {', '.join(SANDBOXES)}, it is {driver!r}")
    if is_set(environ, "LADDER_UNTRUSTED") and driver == "process":
        # It shares the kernel, and on a GPU the driver, with whoever wrote the code (design §4, invariant 12).
        raise UnfitError(
            "the process sandbox must not serve a node that takes untrusted code: set LADDER_SANDBOX=docker"
        )
    accepted = tuple(name.strip() for name in environ.get("LADDER_SANDBOX_WAIVE", "").split(",") if name.strip())
    settings = {name: text for name, text in environ.items() if name.startswith("LADDER_SANDBOX_")}
    return SandboxConfig(driver, accepted, settings)


def _life(environ: Mapping[str, str]) -> LifeConfig:
    return LifeConfig(
        self_test=is_set(environ, "LADDER_SELF_TEST"),
        canary_every_s=number_in(environ, "LADDER_CANARY_EVERY_S", 0.0),
        canary_every_jobs=int(number_in(environ, "LADDER_CANARY_EVERY_JOBS", 0)),
        cool_down_s=number_in(environ, "LADDER_COOL_DOWN_S", 60.0),
        gradings=int(number_in(environ, "LADDER_CALIBRATION_GRADINGS", 5)),
    )


def is_set(environ: Mapping[str, str], name: str) -> bool:
    """Whether a switch is on: anything but nothing and 0."""
    return environ.get(name, "") not in {"", "0"}


def _lanes(text: str) -> tuple[Lane, ...]:
    if text.strip() == AUTO:
        return ()
    try:
        return tuple(Lane(name.strip()) for name in text.split(","))
    except ValueError:
        raise ValueError(f"LADDER_LANES has to be some of {', '.join(Lane)}, or {AUTO}; it is {text!r}") from None


def _works(text: str) -> tuple[Work, ...]:
    try:
        return tuple(Work(name.strip()) for name in text.split(","))
    except ValueError:
        raise ValueError(f"LADDER_STAGES has to be some of {', '.join(Work)}, it is {text!r}") from None


def number_in(environ: Mapping[str, str], name: str, default: float) -> float:
    """A variable as a finite number from 0.

    Raises:
        ValueError: it is none; the message names the variable.
    """
    text = environ.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} has to be a number from 0, it is {text!r}")
    return number
