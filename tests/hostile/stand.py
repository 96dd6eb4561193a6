"""Where hostile files are graded: the real judge and a real sandbox, on a small copy of `vector_add`.

The copy has the assignment's own `problem.py`, entry and staff solution, fewer and smaller cases, and limits that are
reached in a second or two.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from autograder import codec
from autograder.assignment import EXTENSIONS
from autograder.contract import FIRST_LANGUAGE, Event, GradeRequest, GradeResult, Lane, Language, Mode, Work
from autograder.judge import References, grade
from autograder.judge.compile import cross_compile
from autograder.judge.defences import ALL_ON, Defences
from autograder.lanes import expanded
from autograder.sandbox import Promise, Runner, Sandbox, cgroups
from autograder.sandbox.plan import Namespaces
from autograder.sandbox.probe import Machine, machine
from autograder.sandbox.process import ProcessSandbox
from autograder.sandbox.zygote import environment_of

ROOT = Path(__file__).parents[2]
LIMITS = {
    "import_s": 4,
    "call_s": 4,
    "total_s": 60,
    "memory_mib": 640,
    "processes": 48,
    "output_kib": 256,
    "tmp_mib": 64,
}
CASES = [
    {"name": "thousand", "group": "basics", "size": {"n": 1000}, "dtype": "float32", "distribution": "decades"},
    {
        "name": "ranked",
        "group": "basics",
        "size": {"n": 2048},
        "dtype": "float32",
        "distribution": "decades",
        "ranked": True,
    },
]
FAMILIES = [
    {
        "category": "prime sizes",
        "group": "hidden",
        "size": {"n": {"prime": [2100, 3000]}},
        "dtype": "float32",
        "distributions": ["decades"],
    }
]
ZEROS = """

_DISTRIBUTIONS["zeros"] = lambda generator, n: tuple(torch.zeros(n, device=generator.device) for _ in range(2))
"""
SCALED = "\n\ndef error_scale(*, x, y):\n    return {'out': x.double().abs() + y.double().abs()}\n"


@dataclass(frozen=True)
class Folders:
    """One assignment, as the judge is given it."""

    assignment: Path
    reference: Path


def write_assignment(
    root: Path, *, limits: dict[str, float], inputs: str, lane: Lane = Lane.cpu, ranked: int = 2048, pairs: int = 2
) -> Folders:
    """A small `vector_add` under `root`.

    Args:
        limits: over those of `LIMITS`.
        inputs: `""`, `"zeros"` (so is the answer), or `"bounded"` (the tolerance leaves room for a rounding).
        lane: whose policy it has.
        ranked: elements of the ranked case.
        pairs: how often that is timed.
    """
    folders = Folders(root / "assignments" / "vector_add", root / "reference" / "vector_add")
    shutil.copytree(ROOT / "assignments" / "vector_add", folders.assignment)
    shutil.copytree(ROOT / "reference" / "vector_add", folders.reference)
    manifest = expanded(tomllib.loads((folders.assignment / "assignment.toml").read_text(encoding="utf-8")))
    cases = [{**case, "size": {"n": ranked}} if case.get("ranked") else case for case in CASES]
    manifest |= {
        "limits": {**LIMITS, **limits},
        "case": cases,
        "requirement": [{**one, "case": "ranked"} for one in manifest["requirement"]],
        "lane": {str(lane): {**manifest["lane"][lane], "pairs": pairs}},
    }
    if inputs == "zeros":
        manifest["case"] = [{**case, "distribution": "zeros"} for case in cases]
        _append(folders.assignment / "problem.py", ZEROS)
    if inputs == "bounded":
        manifest["tolerance"] = {"out": {"kind": "bounded", "factor": 4}}
        _append(folders.assignment / "problem.py", SCALED)
    (folders.assignment / "assignment.toml").write_text(to_toml(manifest), encoding="utf-8")
    (folders.reference / "hidden.toml").write_text(to_toml({"family": FAMILIES}), encoding="utf-8")
    return folders


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + text, encoding="utf-8")


def to_toml(data: dict[str, Any]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in data.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value)


@contextmanager
def nothing_compiled() -> Iterator[None]:
    """What is launched is not compiled for GPUs: two runners fewer, with a toolchain each, where they decide nothing."""
    with mock.patch.object(cross_compile, "is_compiled", lambda _: False):
        yield


class Watched:
    """A sandbox that remembers what it started, so that a test can look for what is left."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.inner = sandbox
        self.started: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def promises(self) -> frozenset[Promise]:
        return self.inner.promises

    def start(self, *args: Any, **keywords: Any) -> Runner:
        runner = self.inner.start(*args, **keywords)
        self.started.append(runner)
        return runner

    def close(self) -> None:
        self.inner.close()


class Stand:
    """Grades sources and looks at what they leave behind.

    Args:
        lane: where; its device has to be there.
        pairs: how often a ranked case is timed.
        warm: keep the reference's runners from grading to grading, as a node does.
    """

    def __init__(
        self, sandbox: Sandbox, root: Path, *, lane: Lane = Lane.cpu, pairs: int = 2, warm: bool = False
    ) -> None:
        self.sandbox = Watched(sandbox)
        self.lane = lane
        self.root = root
        self._pairs = pairs
        self._folders: dict[str, Folders] = {}
        self._references = References(self.sandbox.inner) if warm else None

    def grade(
        self,
        source: str,
        *,
        mode: str = "submission",
        limits: dict[str, float] | None = None,
        inputs: str = "",
        defences: Defences = ALL_ON,
        work: Work = Work.all,
        ranked: int = 2048,
        remeasured: int = 0,
        language: Language = Language("triton"),
    ) -> GradeResult:
        """Grade one source as a whole job would."""
        folders = self.folders(limits or {}, inputs, ranked)
        request = GradeRequest(
            slug="vector_add",
            bundle="",
            language=language,
            lane=self.lane,
            mode=Mode(mode),
            source=source,
            filename=f"submission.{EXTENSIONS[language]}",
            work=work,
            remeasured=remeasured,
        )
        self.sandbox.started.clear()
        result = grade(
            request,
            assignment_folder=folders.assignment,
            reference_folder=folders.reference,
            sandbox=self.sandbox,
            emit=_travels,
            defences=defences,
            references=self._references,
        )
        _travels(Event(result=result))
        return result

    def folders(self, limits: dict[str, float], inputs: str, ranked: int = 2048) -> Folders:
        """The assignment with these limits and inputs, written once."""
        key = json.dumps([limits, inputs, ranked])
        if key not in self._folders:
            self._folders[key] = write_assignment(
                self.root / str(len(self._folders)),
                limits=limits, inputs=inputs, lane=self.lane, ranked=ranked, pairs=self._pairs,
            )  # fmt: skip
        return self._folders[key]

    def close(self) -> None:
        if self._references is not None:
            self._references.close()
        self.sandbox.close()


def _travels(event: Event) -> None:
    """Everything that the judge says has to survive the way to the server."""
    codec.loads(Event, codec.dumps(event))


def bare_sandbox() -> ProcessSandbox:
    """A process sandbox that has only what any user of a current kernel has: Landlock and seccomp."""
    features = dataclasses.replace(machine().features, namespaces=Namespaces.none, own_uid=False)
    return ProcessSandbox(on=Machine(features, cgroups.Layout()))


def unshut_stand(without: tuple[str, ...], root: Path, *, inherits: bool = False) -> Stand:
    """A stand whose sandbox does not keep these promises, or hands its own environment down."""
    environment = {**os.environ, **environment_of(FIRST_LANGUAGE, Lane.cpu)} if inherits else None
    return Stand(ProcessSandbox(without=frozenset(map(Promise, without)), environment=environment), root)


def processes_left(stand: Stand) -> list[str]:
    """Processes of the runners that the last grading started: theirs by user id, by control group, or by name."""
    plans = [runner._plan for runner in stand.sandbox.started if hasattr(runner, "_plan")]
    uids = {plan.uid for plan in plans} - {None}
    ours = {runner.pid for runner in stand.sandbox.started if hasattr(runner, "_plan")}
    return _until_none(lambda: list(_processes(uids, ours)))


def folders_left(stand: Stand) -> list[str]:
    """Folders and control groups of the runners that the last grading started."""
    plans = [runner._plan for runner in stand.sandbox.started if hasattr(runner, "_plan")]
    return _until_none(
        lambda: [path for plan in plans for path in (plan.folder, *plan.cgroups) if os.path.lexists(path)]
    )


def containers_left(stand: Stand) -> list[str]:
    """Containers that the last grading was lent, if its sandbox is Docker's."""
    lent = {runner.name for runner in stand.sandbox.started if hasattr(runner, "container")}
    if not lent:
        return []
    import docker  # noqa: PLC0415 - only where there is one

    engine = docker.from_env()
    try:
        return _until_none(lambda: sorted(lent & {one.name for one in engine.containers.list(all=True, ignore_removed=True)}))
    finally:
        engine.close()


def processes_named(name: str) -> list[int]:
    """Living processes of this machine that call themselves `name`, those in other namespaces included."""
    return [pid for pid, comm, _ in _all_processes() if comm == name]


def _processes(uids: set[int], pids: set[int]) -> Iterator[str]:
    for pid, comm, uid in _all_processes():
        if uid in uids or pid in pids or comm == "hostile-daemon":
            yield f"{pid} {comm} {uid}"


def _all_processes() -> Iterator[tuple[int, str, int]]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with suppress(OSError):
            fields = dict(
                line.split(":", 1) for line in Path(f"/proc/{entry}/status").read_text(errors="replace").splitlines()
            )
            # One whose first thread has ended looks dead while others go on.
            if fields["State"].split()[0] not in "ZX" or int(fields["Threads"]) > 1:
                yield int(entry), fields["Name"].strip(), int(fields["Uid"].split()[0])


def _until_none(found: Callable[[], list[str]], seconds: float = 3.0) -> list[str]:
    """What is still found after a while: killing takes the kernel a moment."""
    end = time.monotonic() + seconds
    while (left := found()) and time.monotonic() < end:
        time.sleep(0.02)
    return left
