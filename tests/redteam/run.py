"""Run the corpus on every path that this machine has."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Container, Sequence
from pathlib import Path as Folder

from autograder.contract import Lane
from tests.hostile.canary import canary
from tests.redteam import pool, stands
from tests.redteam.attacks import tasks
from tests.redteam.table import Path, Row, Table


def run(
    *,
    lanes: Sequence[Lane | str] = (),
    sandboxes: Sequence[str] = stands.DRIVERS,
    only: Sequence[str] = (),
    quick: bool = False,
    serial: bool = False,
    jobs: int = 1,
    limit_s: float = math.inf,
    told: Callable[[Row], None] = lambda _: None,
    log: Folder | None = None,
    raw: Folder | None = None,
    graded: Container[tuple[str, str, str]] = (),
) -> Table:
    """Grade every file on every path and hold what it got against the table.

    Args:
        lanes: all that this machine has a device for if empty.
        only: classes, names of files, or `bite`; everything if empty.
        quick: the subset that a node's owner runs.
        serial: only what has to be alone on the machine.
        jobs: how many files that are not timed may be graded side by side.
        limit_s: what has not begun by then is skipped.
        told: gets every row as it comes.
        log: gets what the judges print; a temporary file if `None`.
        raw: gets every result, samples included, as lines of JSON; nothing does if `None`.
        graded: attacks with lane and sandbox that are left out.
    """
    started = time.monotonic()
    wanted = [Lane(lane) for lane in lanes] or stands.lanes()
    paths = [Path(str(lane), name, stands.why_not(lane, name)) for lane in wanted for name in sandboxes]
    table = Table(paths, machine=stands.facts())
    with tempfile.NamedTemporaryFile(prefix="redteam-", suffix=".log") as kept, canary():
        for path in paths:
            if not path.skipped:
                until = started + limit_s
                crew = pool.Crew(Lane(path.lane), path.sandbox, jobs, log or Folder(kept.name), told, until, raw)
                wanted_here = tasks(crew.lane, path.sandbox, only=only, quick=quick)
                table.rows += crew.graded(
                    [
                        task
                        for task in wanted_here
                        if (task.serial or not serial) and (task.name, path.lane, path.sandbox) not in graded
                    ]
                )
    table.seconds = time.monotonic() - started
    return table
