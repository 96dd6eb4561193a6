"""Grades files one after the other in a process of its own: `python -m tests.redteam.worker LANE SANDBOX [RAW]`.

Reads one task's name per line, writes what was seen as one line of JSON. What the judge prints goes to standard error;
every result, samples included, is added to the file RAW as a line of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from autograder import codec
from autograder.contract import GradeResult, Lane, Language, Measurement, Work
from autograder.judge.defences import ALL_ON
from autograder.judge.timing import validity
from autograder.sandbox import Promise
from tests.gpu.hostile import naive
from tests.hostile.canary import touched
from tests.hostile.stand import Stand, containers_left, folders_left, processes_left
from tests.hostile_cuda.corpus import SECRET
from tests.redteam import stands
from tests.redteam.attacks import Task, tasks
from tests.redteam.neighbour import neighbour
from tests.redteam.outcome import Answer, Seen

SECRET_TEXT = "LOOT_that_no_runner_may_read"
SHOWN = 300
NO_TIME = 0.5
"""Of the honest kernel's time: on a GPU the launch alone is left when the work is not."""
NAIVE_SIZE = 2**27
"""So that the kernel, 376 µs, is far more than its launch, which took 55 µs on a slow host (red team 22)."""
MOST_TRIES = 3
"""How often an honest file is measured at most, as a course's server would have it."""

WAITS_LESS = replace(ALL_ON, early_reveal_s=1.0, late_read_s=4.0)
"""For bites: how long a defence that is off is waited for."""


def main() -> None:
    """Serve until the input ends."""
    lane, sandbox = Lane(sys.argv[1]), sys.argv[2]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    known = {task.name: task for task in tasks(lane, sandbox)}
    with tempfile.TemporaryDirectory(prefix="redteam-") as root:
        stand = stands.stand(lane, sandbox, Path(root))
        keep = Kept(Path(sys.argv[3]) if sys.argv[3:] else None)
        try:
            for line in sys.stdin:
                print(codec.dumps(_graded(stand, known[line.strip()], keep)), file=out, flush=True)
        finally:
            stand.close()


class Kept:
    """Everything that a judge said, a line each; nowhere if there is no file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def __call__(self, task: Task, remeasured: int, result: GradeResult) -> None:
        """Add one result."""
        if self._file is None:
            return
        line = {"attack": task.name, "remeasured": remeasured, "result": codec.to_json(result)}
        with self._file.open("a", encoding="utf-8") as file:
            # One write: several workers share the file.
            file.write(json.dumps(line) + "\n")


def _graded(stand: Stand, task: Task, keep: Kept) -> Answer:
    """What one task showed; an honest one that is held, or to be measured again, is."""
    if absent := [name for name in task.needs if Promise(name) not in stand.sandbox.promises]:
        return Answer(skipped=f"the sandbox does not promise {', '.join(absent)} here")
    if task.naive:
        return Answer(_naively(stand, task))
    seen = _once(stand, task, keep)
    again = None
    for tried in range(1, MOST_TRIES):
        last = again or seen
        if not (task.honest and (last.held or last.remeasure)):
            break
        again = _once(stand, task, keep, remeasured=tried)
    return Answer(seen, again)


def _once(stand: Stand, task: Task, keep: Kept, remeasured: int = 0) -> Seen:
    """One grading. What may be held for a time is graded as if it had been measured before: that one decides.

    A bite as if so often that a node's noise asks for no more: nobody measures it again.
    """
    start = time.monotonic()
    tried = validity.MAX_REMEASURES if task.without else remeasured or int(task.held in {"yes", "harmless"})
    # Only rows of a GPU's table ask for one.
    with neighbour(pcie=True) if task.neighbour else nullcontext():
        result = _result(stand, task, remeasured=tried)
    keep(task, tried, result)
    seen = _seen(result, time.monotonic() - start)
    left = (*processes_left(stand), *folders_left(stand), *containers_left(stand))
    return replace(seen, left=tuple(str(one)[:SHOWN] for one in left[:5]))


def _result(stand: Stand, task: Task, *, remeasured: int) -> GradeResult:
    off = replace(WAITS_LESS, **dict.fromkeys(task.without, False)) if task.without else ALL_ON
    return stand.grade(
        _hiding(stand, task), mode=task.mode, inputs=task.inputs, limits=dict(task.limits), work=Work(task.work),
        ranked=task.ranked, defences=off, remeasured=remeasured,
        language=task.language,
    )  # fmt: skip


def _hiding(stand: Stand, task: Task) -> str:
    """Its source; where it names a secret, with the path of one that everybody on this machine could read."""
    if task.language is not Language("cuda"):
        return task.source
    path = stand.root / "secret"
    path.write_text(SECRET_TEXT, encoding="utf-8")
    for one, mode in ((stand.root, 0o755), (path, 0o644)):
        one.chmod(mode)
    return task.source.replace(SECRET, str(path))


def _naively(stand: Stand, task: Task) -> Seen:
    """How it fares in a harness of the submission's own process."""
    outcome = naive.judged(stand.folders({}, "", task.ranked).assignment / "problem.py", task.source, NAIVE_SIZE)
    no_time = outcome.verdict == "passed" and outcome.microseconds < outcome.honest_us * NO_TIME
    verdict = "no_time" if no_time and "no_time" in task.expected else outcome.verdict
    said = f"{outcome.microseconds:.1f} µs beside {outcome.honest_us:.1f} µs. {outcome.said}"
    return Seen(verdict, explanation=said[:SHOWN])


def _seen(result: GradeResult, seconds: float) -> Seen:
    shown = codec.dumps(result.for_student())
    at = shown.find("LOOT")
    return Seen(
        verdict=str(result.verdict),
        held=result.held,
        held_reason=result.held_reason[:SHOWN],
        remeasure=result.remeasure[:SHOWN],
        findings=tuple(str(finding.kind) for finding in result.findings),
        ratios=tuple(found.ratio for found in result.measurements),
        claimed=tuple(map(_claimed, result.measurements)),
        sealed_us=tuple(min(pair.submission_sealed_us for pair in found.pairs) for found in result.measurements),
        loot="the canary was written to" if touched() else shown[at : at + 80] if at >= 0 else "",
        explanation=result.explanation[:SHOWN],
        seconds=seconds,
    )


def _claimed(found: Measurement) -> float:
    """The ratio by the event clocks alone."""
    ours = statistics.median(pair.submission_event_us for pair in found.pairs)
    return ours / statistics.median(pair.reference_event_us for pair in found.pairs)


if __name__ == "__main__":
    main()
