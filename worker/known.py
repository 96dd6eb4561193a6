"""Jobs whose outcome is known beforehand, put through the node's own judge like any attempt.

    canary/assignment.toml, problem.py      a small assignment of the node's own, in no course
    canary/families.toml, golden.py         its hidden cases, and its golden kernel
    canary/submissions/<verdict>_<what>.py  named for the verdict that each must get

The self-test (`worker.selftest`), the canary (`worker.calibration`) and the question of blame (`worker.blame`) ask for
them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autograder import codec
from autograder.assignment import EXTENSIONS, load_assignment
from autograder.contract import GradeRequest, GradeResult, Lane, Mode, Phase, Verdict, Work
from worker.judge import JudgeProcess
from worker.node_errors import JudgeError

HERE = Path(__file__).parent / "canary"
SLUG = "canary"
DEADLINE_S = 120.0
GOLDEN = HERE / "golden.py"
LANGUAGE = load_assignment(HERE).languages[0]
"""Of all known jobs."""
KNOWN_GOOD = HERE / "submissions" / "passed_known_good.py"


@dataclass(frozen=True)
class Outcome:
    """What became of a known job.

    Attributes:
        result: `None` where the judge gave none.
        reason: why not.
    """

    result: GradeResult | None
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether it was found right."""
        return self.result is not None and self.result.verdict is Verdict.passed

    def __str__(self) -> str:
        """Verdict and explanation, or why there is none."""
        return f"{self.result.verdict}: {self.result.explanation}" if self.result else self.reason


class KnownJobs:
    """Puts known jobs through a judge, one at a time.

    Args:
        judge: the node's own; replaced when it fails.
        folder: for staging.
        lane: where they are graded.
    """

    def __init__(self, judge: JudgeProcess, folder: Path, lane: Lane) -> None:
        self._judge = judge
        self._folder = folder
        self.lane = lane

    def golden(self) -> Outcome:
        """The golden kernel, measured beside itself."""
        return self.run(GOLDEN.read_text(encoding="utf-8"), Work.measure)

    def good(self) -> Outcome:
        """A kernel known to be right, checked."""
        return self.run(KNOWN_GOOD.read_text(encoding="utf-8"), Work.check)

    def anew(self) -> Outcome:
        """The known-good kernel, by a judge that was just started."""
        self.restart()
        return self.good()

    def restart(self) -> None:
        """End the judge and all that is below it, and start another."""
        self._judge.kill()
        self._judge.start()

    def tell(self, name: str, text: str) -> None:
        """Give the next judge that is started one more variable."""
        self._judge.tell(name, text)

    def end(self) -> None:
        """End the judge; the next job starts another."""
        self._judge.kill()

    def run(self, source: str, work: Work, mode: Mode = Mode.submission) -> Outcome:
        """One job. A judge that fails is killed and started anew.

        Raises:
            HandedBackError: the node is stopped meanwhile.
        """
        request = GradeRequest(SLUG, "", LANGUAGE, self.lane, mode, source, f"{SLUG}.{EXTENSIONS[LANGUAGE]}", work)
        with self._staged(request) as folder:
            return self.judged(folder)

    def judged(
        self, folder: Path, deadline_s: float = DEADLINE_S, enter: Callable[[Phase], None] = lambda _: None
    ) -> Outcome:
        """What the judge makes of a staged folder; `enter` is told its phases."""
        try:
            for event in self._judge.grade(folder, deadline_s=deadline_s):
                if event.phase is not None:
                    enter(event.phase.phase)
                if event.result is not None:
                    return Outcome(event.result)
        except JudgeError as error:
            self.restart()
            return Outcome(None, str(error))
        except BaseException:
            # It would go on with the job, beside whoever has the GPU next.
            self._judge.kill()
            raise
        return Outcome(None, "the judge ended without a result")

    @contextmanager
    def _staged(self, request: GradeRequest) -> Iterator[Path]:
        shutil.rmtree(self._folder, ignore_errors=True)
        _stage_canary(self._folder, request)
        try:
            yield self._folder
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def _stage_canary(folder: Path, request: GradeRequest) -> None:
    """The node's own assignment as the judge expects one. What stands for a course's secrets is none here."""
    _stage_request(folder, request)
    places = {
        "assignment.toml": "assignments/canary/assignment.toml",
        "problem.py": "assignments/canary/problem.py",
        "families.toml": "reference/canary/hidden.toml",
        GOLDEN.name: f"reference/canary/solutions/{LANGUAGE}.{EXTENSIONS[LANGUAGE]}",
    }
    for name, place in places.items():
        path = folder / "bundle" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / name, path)


def _stage_request(folder: Path, request: GradeRequest) -> None:
    folder.mkdir(mode=0o700, parents=True)
    (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")


def stage(folder: Path, request: GradeRequest, assignments: Path, reference: Path) -> None:
    """A folder that the judge grades: the request, and what it knows of the assignment."""
    _stage_request(folder, request)
    for kind, root in (("assignments", assignments), ("reference", reference)):
        if (root / request.slug).is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "submissions")
            shutil.copytree(root / request.slug, folder / "bundle" / kind / request.slug, ignore=ignore)


def with_targets(source: str, targets: dict[str, list[str] | list[int]]) -> str:
    """A source that tries to reach things, with what there is to reach on this machine."""
    return source.replace("TARGETS = {}", f"TARGETS = {json.dumps(targets)}", 1)
