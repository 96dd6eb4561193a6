"""One run: from the seed to the report."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from autograder.contract import Verdict
from server.grading.interface import FINAL
from server.grading.requeue import requeue
from server.models import Alert, AlertKind, Review, State, Submission
from server.nodes import nodes
from tests.chaos.checks import Books, Broken, Grade, examine, grade_of
from tests.chaos.faults import KINDS, Injected, Injector
from tests.chaos.load import Load
from tests.chaos.measures import Measures, measure
from tests.chaos.plan import DUE_AFTER, REAL, Scale, make_faults, make_steps
from tests.chaos.stage import Stage, staged
from tests.chaos.supervisor import REPOSITORY
from worker.processes import children

READY_S = 300.0
STUCK_S = 240.0
"""The queue is stuck when nothing becomes final for so long: longer than a node rests, and than all attempts take."""
SAY_EVERY_S = 30.0
CALM_PACE = 4.0
"""Without faults nothing is waited for."""
_PUT_BACK = (AlertKind.submission_failed, AlertKind.suspect_held)
ORPHANS_S = 90.0
"""How long a judge may take to be gone after its worker."""


@dataclass
class Outcome:
    """What a run found.

    Attributes:
        grades: verdict and points of the double's submissions, by key; what was taken back has none.
        requeued: how many failed ones staff put back at the end.
        drained: everything was final before the patience ended.
    """

    seed: int
    scale: Scale
    broken: list[Broken]
    grades: dict[str, Grade]
    measures: Measures
    injected: list[Injected] = field(default_factory=list)
    requeued: int = 0
    drained: bool = True
    seconds: float = 0.0


def examples() -> list[tuple[Verdict, str]]:
    """Sources for the real judge, with the verdicts that their names say."""
    folder = REPOSITORY / "reference" / REAL
    found = [(Verdict.passed, (folder / "solutions" / "triton.py").read_text(encoding="utf-8"))]
    for path in sorted((folder / "submissions").glob("*.py")):
        verdict = next(verdict for verdict in Verdict if path.stem.startswith(verdict.value))
        found.append((verdict, path.read_text(encoding="utf-8")))
    return found


def run(folder: Path, guard: int, seed: int, scale: Scale, *, calm: bool = False) -> Outcome:
    """Do it all once.

    Args:
        calm: without faults.
    """
    began = time.monotonic()
    # Only the double's grades are compared with a run without faults.
    scale = dataclasses.replace(scale, real=0, poison=0) if calm else scale
    steps = make_steps(seed, scale, examples())
    faults = [] if calm else make_faults(seed, scale, list(KINDS))
    with staged(folder, guard, scale, steps) as stage:
        wait_until_ready(stage)
        _say(f"{len(steps)} submissions, {len(faults)} faults")
        pace = CALM_PACE if calm else 1.0
        stage.set_due(datetime.now(UTC) + timedelta(seconds=scale.span_s * DUE_AFTER / pace))
        load, injector = Load(stage.url, stage.tokens, steps, pace=pace), Injector(stage, faults)
        _both(load, injector)
        healed_at = time.time()
        stage.heal()
        _say("everything was submitted" + ("" if calm else " and the faults have ended") + "; the queue drains")
        drained = drain(stage)
        requeued = follow_runbook(stage)
        drained = drain(stage) and drained
        orphans = orphans_of(stage)
        with stage.database.reading() as session:
            books = Books.read(session, load.promises, stage.config.max_attempts)
        books.orphans, books.excused, books.requeued = orphans, excused(books, injector.injected), requeued
        broken = examine(books)
        found = measure(books, load, injector.injected, stage.supervisor, healed_at)
        return Outcome(
            seed,
            scale,
            broken,
            _grades(books),
            found,
            injector.injected,
            len(requeued),
            drained,
            time.monotonic() - began,
        )


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


def _both(load: Load, injector: Injector) -> None:
    thread = threading.Thread(target=injector.run, name="faults", daemon=True)
    thread.start()
    load.run()
    thread.join()


def wait_until_ready(stage: Stage) -> None:
    """Until every node has reported and the web tier answers."""
    expected = len(stage.supervisor.of("worker"))
    give_up_at = time.monotonic() + READY_S
    while True:
        with stage.database.reading() as session:
            if len(nodes.working_nodes(session, now=datetime.now(UTC))) == expected:
                return
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"not every node came up in {READY_S:g} s; see {stage.folder / 'logs'}")
        time.sleep(0.3)


def drain(stage: Stage) -> bool:
    """Wait until everything is final; false if nothing more becomes final for a while."""
    final, moved_at, said_at = -1, time.monotonic(), time.monotonic()
    while time.monotonic() < moved_at + STUCK_S:
        with contextlib.suppress(OperationalError), stage.database.reading() as session:
            counts = dict(session.execute(select(Submission.state, func.count()).group_by(Submission.state)).all())
            if not set(counts) - set(FINAL):
                return True
            ended = sum(counts.get(state, 0) for state in FINAL)
            if ended != final:
                final, moved_at = ended, time.monotonic()
        if time.monotonic() > said_at + SAY_EVERY_S:
            said_at = time.monotonic()
            _say(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
        time.sleep(0.5)
    return False


def follow_runbook(stage: Stage) -> frozenset[str]:
    """What docs/operations.md says of what failed or is held as a suspect, once its cause has gone: grade it again.

    Returns:
        The public ids of what was put back.
    """
    with stage.database.transaction() as session:
        subjects = session.scalars(
            select(Alert.subject).where(Alert.kind.in_(_PUT_BACK), Alert.resolved_at.is_(None)).distinct()
        ).all()
        names = {subject.removeprefix("submission:") for subject in subjects}
        for row in session.scalars(select(Submission).where(Submission.public_id.in_(names)).order_by(Submission.id)):
            if row.suspect and row.review is Review.held:
                row.review = Review.none
            requeue(session, row, now=datetime.now(UTC))
    return frozenset(names)


def orphans_of(stage: Stage) -> list[str]:
    """Processes that lost their parent, and are ours: the guard has adopted them."""
    give_up_at = time.monotonic() + ORPHANS_S
    while (found := list(_adopted(stage))) and time.monotonic() < give_up_at:
        time.sleep(0.5)
    return found


def _adopted(stage: Stage) -> Iterator[str]:
    for pid in children(stage.guard):
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            if any(word in command for word in ("judge", "runner", "zygote")):
                yield f"{pid}: {command[:200]}"


def excused(books: Books, injected: Sequence[Injected]) -> frozenset[str]:
    """Real submissions whose last attempt met a fault that its judge takes for the student's: a runner that was hit."""
    hits = [fault for fault in injected if fault.kind.endswith(".runner") and not fault.skipped]
    found = set()
    for promise, row in books.kept():
        if promise.step.assignment != REAL:
            continue
        for attempt in books.attempts.get(row.id, []):
            end = attempt.finished_at.timestamp() if attempt.finished_at else float("inf")
            if any(hit.began_at <= end and attempt.dispatched_at.timestamp() <= hit.ended_at for hit in hits):
                found.add(row.public_id)
    return frozenset(found)


def _grades(books: Books) -> dict[str, Grade]:
    return {
        promise.step.key: grade_of(row)
        for promise, row in books.kept()
        if row.state is State.done and promise.step.assignment != REAL
    }


def differences(calm: Outcome, chaos: Outcome) -> list[Broken]:
    """Where a run without faults gave another grade; what was taken back in either is not compared."""
    return [
        Broken("same_as_fault_free", key, f"{chaos.grades[key]}, without faults {grade}")
        for key, grade in calm.grades.items()
        if key in chaos.grades and chaos.grades[key] != grade
    ]
