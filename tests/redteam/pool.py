"""Several workers of one path, each with one task at a time and an end to every wait."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path as Folder
from typing import IO

from autograder import codec
from autograder.contract import Lane
from tests.redteam.attacks import Task
from tests.redteam.outcome import Answer, Outcome, Seen, outcome
from tests.redteam.table import Row

ROOT = Folder(__file__).parents[2]
TASK_S = 300.0
"""How long one grading may take, the worker's start included, before the judge counts as hung."""

OVERTIME_S = 45.0
"""How much longer than the whole run one that has begun may take."""

Told = Callable[[Row], None]


class Worker:
    """One process that grades; started when it is needed, ended when it does not answer."""

    def __init__(self, lane: str, sandbox: str, log: Folder, raw: Folder | None = None) -> None:
        self._command = [
            sys.executable,
            "-m",
            "tests.redteam.worker",
            lane,
            sandbox,
            *([str(raw.absolute())] if raw else []),
        ]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""

    def graded(self, task: Task, limit_s: float = TASK_S) -> Answer:
        """What was seen."""
        process = self._process or self._start()
        try:
            os.write(_descriptor(process.stdin), f"{task.name}\n".encode())
        except BrokenPipeError:
            return self._failed("the worker ended")
        line = self._line(process, time.monotonic() + limit_s)
        if line is None:
            return self._failed(f"the judge did not end within {limit_s:.0f} s")
        return codec.loads(Answer, line) if line else self._failed("the judge's process ended")

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._said = b""
        return self._process

    def _line(self, process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
        """The next line, empty if the process ended, `None` at the deadline."""
        end = _descriptor(process.stdout)
        while b"\n" not in self._said:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            if select.select([end], [], [], min(left, 1.0))[0]:
                said = os.read(end, 2**16)
                if not said:
                    return b""
                self._said += said
        line, _, self._said = self._said.partition(b"\n")
        return line

    def _failed(self, reason: str) -> Answer:
        self.close(force=True)
        return Answer(error=reason)

    def close(self, *, force: bool = False) -> None:
        """End it, kindly unless it hangs."""
        if self._process is None:
            return
        process, self._process = self._process, None
        for end in (process.stdin, process.stdout):
            if end is not None:
                end.close()
        if force:
            os.killpg(process.pid, signal.SIGKILL)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _descriptor(end: IO[bytes] | None) -> int:
    if end is None:
        raise ValueError("the worker has no pipe")
    return end.fileno()


@dataclass(frozen=True)
class Crew:
    """The workers of one path.

    Attributes:
        jobs: how many files may be graded side by side, of those that may at all.
        log: gets what the judges print; `raw`, if it is not `None`, every result as a line of JSON.
        told: gets every row as it comes.
        until: by the monotonic clock; what has not begun then is skipped with that reason.
    """

    lane: Lane
    sandbox: str
    jobs: int
    log: Folder
    told: Told
    until: float
    raw: Folder | None = None

    def graded(self, tasks: Sequence[Task]) -> list[Row]:
        """Every task's row: what has to be alone first, as nothing else shows so much, then the rest side by side."""
        together = [task for task in tasks if not task.serial] if self.jobs > 1 else []
        alone = [task for task in tasks if task not in together]
        rows = self._spread(alone, 1) + self._spread(together, self.jobs)
        order = {task.name: number for number, task in enumerate(tasks)}
        return sorted(rows, key=lambda row: order[row.attack])

    def _spread(self, tasks: Sequence[Task], workers: int) -> list[Row]:
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        rows: list[Row] = []
        threads = [threading.Thread(target=self._work, args=(waiting, rows)) for _ in range(min(workers, len(tasks)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return rows

    def _work(self, waiting: queue.SimpleQueue[Task], rows: list[Row]) -> None:
        worker = Worker(str(self.lane), self.sandbox, self.log, self.raw)
        with suppress(queue.Empty):
            while True:
                row = self._row(worker, waiting.get_nowait())
                rows.append(row)
                self.told(row)
        worker.close()

    def _row(self, worker: Worker, task: Task) -> Row:
        if task.skipped or time.monotonic() >= self.until:
            return self._without(task, Outcome.skipped, task.skipped or "there was no time left")
        # One that hangs must not take the time of a run that has an end.
        answer = worker.graded(task, min(TASK_S, self.until - time.monotonic() + OVERTIME_S))
        if answer.seen is None:
            how = Outcome.error if answer.error else Outcome.skipped
            return self._without(task, how, answer.error or answer.skipped)
        return self._with(task, answer.seen, answer.again)

    def _with(self, task: Task, seen: Seen, again: Seen | None) -> Row:
        how, why = outcome(task, seen)
        if how is Outcome.false_hold and again is not None and outcome(task, again)[0] is Outcome.as_expected:
            seen, how, why = again, Outcome.cleared, f"held at first: {seen.held_reason}"
        row = self._without(task, how, why)
        ratios = tuple(round(ratio, 4) for ratio in seen.ratios)
        return replace(row, verdict=seen.verdict, held=seen.held, ratios=ratios, seconds=round(seen.seconds, 2))

    def _without(self, task: Task, how: Outcome, why: str) -> Row:
        return Row(task.name, task.threat, task.tries, str(self.lane), self.sandbox, "", False, task.expected, how, why)
