"""What a submission is timed against, in a runner of its own that stays warm from job to job."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autograder import languages
from autograder.assignment import EXTENSIONS, Assignment
from autograder.contract import GradeRequest, Language
from autograder.errors import HarnessError
from autograder.judge.compile.compile_cache import CacheStore, CompileCache
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol import devices
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.loading import limits_of, load_of
from autograder.judge.protocol.runner_client import Budget, RunnerClient
from autograder.judge.timing.calibration import CaseCalibration
from autograder.judge.timing.overhead_baseline import NullExchanges
from autograder.sandbox import Sandbox, Side

MAX_WARM_RUNNERS = 4
"""Warm runners that are kept; the one that was used longest ago goes first."""

MAX_COMPILED = 64
"""References whose compiled code is kept for the runner that takes the place of one that went."""

_PACK_S = 2.0

MAX_ATTEMPTS = 100
"""How many attempts one runner serves: what leaks in a toolchain stays small, and nothing grows old unnoticed."""


@dataclass(frozen=True)
class Reference:
    """A source to be timed against, by its path in the assignment, and whether it has to be right."""

    name: str
    source: str
    right: bool


def find_reference(assignment_folder: Path, reference_folder: Path | None, language: Language) -> Reference | None:
    """The staff kernel; on a student's machine the fastest published milestone, or else the starter."""
    suffix = EXTENSIONS[language]
    if reference_folder is not None:
        path = reference_folder / "solutions" / f"{language}.{suffix}"
        if not path.is_file():
            raise HarnessError(f"{reference_folder.name} has no solution in {language}")
        return Reference(path.name, path.read_text(encoding="utf-8"), right=True)
    milestones = languages.files_in(assignment_folder / "milestones", language)
    if milestones:
        return Reference(milestones[-1].name, milestones[-1].read_text(encoding="utf-8"), right=True)
    starter = assignment_folder / "starters" / f"{language}.{suffix}"
    return Reference(starter.name, starter.read_text(encoding="utf-8"), right=False) if starter.is_file() else None


@dataclass
class WarmReference:
    """A warm runner and how many attempts it has served."""

    runner: RunnerClient
    attempts: int = 0
    calibrations: dict[str, CaseCalibration] = field(default_factory=dict)

    def fit(self) -> bool:
        """Whether it may serve one more."""
        return self.attempts < MAX_ATTEMPTS and self.runner.alive()


class References:
    """Warm runners with a reference loaded, by assignment version and source.

    Attributes:
        shelf: what checks have compiled, for measurements of the same source.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._kept: OrderedDict[str, WarmReference] = OrderedDict()
        self._exchanges: NullExchanges | None = None
        self._compiled = CacheStore(MAX_COMPILED)
        self.shelf = CacheStore()

    def calibrations(self, reference_runner: RunnerClient) -> dict[str, CaseCalibration]:
        """What was found out about the ranked cases of a reference that is lent; kept as long as its runner."""
        return next(kept.calibrations for kept in self._kept.values() if kept.runner is reference_runner)

    def exchanges(self, device: Device) -> NullExchanges:
        """The null exchanges of a device, kept as long as this."""
        self._exchanges = self._exchanges or NullExchanges(device)
        return self._exchanges

    @contextmanager
    def lent(self, assignment: Assignment, request: GradeRequest, reference: Reference) -> Iterator[RunnerClient]:
        """A runner with `reference` loaded, for one attempt. If anything of ours fails meanwhile, it is ended.

        Raises:
            HarnessError: it does not load.
        """
        key = _key(assignment, request, reference)
        kept = self._fit(key) or self._start(key, assignment, request, reference)
        kept.attempts += 1
        try:
            yield kept.runner
        except BaseException:
            # Nobody knows what it was in the middle of.
            self._end(key)
            raise
        if key not in self._compiled:
            self._keep_compiled(key, kept.runner)

    def _keep_compiled(self, key: str, runner: RunnerClient) -> None:
        """Compiling is most of what a new runner takes: 4 to 18 s of the device on an H200 (docs/measurement.md)."""
        packs = CompileCache()
        packs.add(runner.export_cache(_PACK_S))
        packs.seal()
        if made := packs.sealed():
            self._compiled.keep(key, made)
        packs.close()

    def _fit(self, key: str) -> WarmReference | None:
        """The runner that is kept, if it may serve on."""
        kept = self._kept.get(key)
        if kept is not None and not kept.fit():
            self._end(key)
            return None
        if kept is not None:
            # A move that was not answered may have left it on one core.
            kept.runner.pin_core(0)
            self._kept.move_to_end(key)
        return kept

    def _start(self, key: str, assignment: Assignment, request: GradeRequest, reference: Reference) -> WarmReference:
        compiled = self._compiled.of(key)
        self._kept[key] = kept = WarmReference(self._started(assignment, request, reference, compiled))
        while len(self._kept) > MAX_WARM_RUNNERS:
            self._end(next(iter(self._kept)))
        return kept

    def _end(self, key: str) -> None:
        self._kept.pop(key).runner.close()

    def close(self) -> None:
        """End them all."""
        while self._kept:
            self._end(next(iter(self._kept)))
        if self._exchanges:
            self._exchanges.close()
        self._compiled.close()
        self.shelf.close()

    def _started(
        self, assignment: Assignment, request: GradeRequest, reference: Reference, packs: Sequence[int]
    ) -> RunnerClient:
        limits = limits_of(assignment, request.lane)
        process = self._sandbox.start(limits, request.language, request.lane, side=Side.reference)
        device = devices.of(request.lane)
        runner = RunnerClient(process, assignment.limits, Budget(math.inf), ALL_ON, device)
        runner.hello()
        load = load_of(assignment, request.language, reference.source, reference.name, lane=request.lane)
        failed = runner.load(load, packs)
        if isinstance(failed, Failure):
            runner.close()
            raise HarnessError(f"the reference of {assignment.slug} does not load: {failed.message}")
        return runner


def _key(assignment: Assignment, request: GradeRequest, reference: Reference) -> str:
    """Where there is no bundle's hash, the manifest itself tells versions apart."""
    version = (request.bundle, request.language, request.lane, reference, assignment)
    return hashlib.sha256(repr(version).encode()).hexdigest()
