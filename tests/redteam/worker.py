"""Grades files one after the other in a process of its own: `python -m tests.redteam.worker LANE SANDBOX`.

Reads one task's name per line, writes what was seen as one line of JSON. What the judge prints goes to standard error.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from autograder import codec
from autograder.contract import GradeResult, Lane, Work
from autograder.sandbox import Promise
from tests.hostile.canary import touched
from tests.hostile.stand import Stand, folders_left, processes_left
from tests.redteam import stands
from tests.redteam.attacks import Task, tasks
from tests.redteam.outcome import Answer, Seen

SHOWN = 300


def main() -> None:
    """Serve until the input ends."""
    lane, sandbox = Lane(sys.argv[1]), sys.argv[2]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    known = {task.name: task for task in tasks(lane, sandbox)}
    with tempfile.TemporaryDirectory(prefix="redteam-") as root:
        stand = stands.stand(lane, sandbox, Path(root))
        try:
            for line in sys.stdin:
                print(codec.dumps(_graded(stand, known[line.strip()])), file=out, flush=True)
        finally:
            stand.close()


def _graded(stand: Stand, task: Task) -> Answer:
    """What one task showed; an honest one that is held is measured a second time."""
    if absent := [name for name in task.needs if Promise(name) not in stand.sandbox.promises]:
        return Answer(skipped=f"the sandbox does not promise {', '.join(absent)} here")
    seen = _once(stand, task)
    again = _once(stand, task) if task.honest and seen.held else None
    return Answer(seen, again)


def _once(stand: Stand, task: Task) -> Seen:
    start = time.monotonic()
    result = stand.grade(
        task.source,
        mode=task.mode,
        inputs=task.inputs,
        limits=dict(task.limits),
        work=Work(task.work),
        ranked=task.ranked,
    )
    seen = _seen(result, time.monotonic() - start)
    left = (*processes_left(stand), *folders_left(stand))
    return replace(seen, left=tuple(str(one)[:SHOWN] for one in left[:5]))


def _seen(result: GradeResult, seconds: float) -> Seen:
    shown = codec.dumps(result.for_student())
    at = shown.find("LOOT")
    return Seen(
        verdict=str(result.verdict),
        held=result.held,
        held_reason=result.held_reason[:SHOWN],
        findings=tuple(str(finding.kind) for finding in result.findings),
        ratios=tuple(found.ratio for found in result.measurements),
        event_us=tuple(found.time_us for found in result.measurements),
        reference_us=tuple(found.reference_us for found in result.measurements),
        sealed_us=tuple(min(pair.submission_sealed_us for pair in found.pairs) for found in result.measurements),
        loot="the canary was written to" if touched() else shown[at : at + 80] if at >= 0 else "",
        explanation=result.explanation[:SHOWN],
        seconds=seconds,
    )


if __name__ == "__main__":
    main()
