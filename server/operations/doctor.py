"""`ladder admin doctor`: look at everything that an installation needs, also when half of it is broken.

Every check stands alone: one that cannot be made says so, and the others are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from broker.logs import strike_out
from server.config import Config, load_config
from server.db import Database
from server.operations import doctor_course, doctor_host
from server.operations.findings import Finding, ok, problem, warning

HOST_CHECKS: Mapping[str, Callable[[Config, Mapping[str, str]], Iterable[Finding]]] = {
    "public_url": doctor_host.public_url,
    "disk": doctor_host.disk,
    "secrets": doctor_host.secret_files,
    "broker": doctor_host.broker,
    "database": doctor_host.database,
    "schema": doctor_host.schema,
}
COURSE_CHECKS: Mapping[str, Callable[[Session], Iterable[Finding]]] = {
    "clock": doctor_course.clock,
    "services": doctor_course.services,
    "nodes": doctor_course.nodes_,
    "versions": doctor_course.versions,
    "images": doctor_course.images,
    "assignments": doctor_course.assignments,
    "queue": doctor_course.queue,
    "accounts": doctor_course.accounts,
    "grades": doctor_course.grades,
    "boards": doctor_course.boards,
    "alerts": doctor_course.alerts_,
    "backups": doctor_course.backups,
    "rehearsal": doctor_course.rehearsal,
}
CHECKS = ("configuration", *HOST_CHECKS, *COURSE_CHECKS)


def examine(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Make every check, one after the other; nothing is raised."""
    try:
        config = load_config(environ)
    except ValueError as error:
        yield problem("configuration", str(error), "Correct the variable; docs/configuration.md lists them all.")
        return
    yield from _isolated("configuration", partial(doctor_host.configuration, config))
    for name, check in HOST_CHECKS.items():
        yield from _isolated(name, partial(check, config, environ))
    yield from _in_database(config)


def _in_database(config: Config) -> Iterator[Finding]:
    database = Database(config.database_url)
    try:
        for name, check in COURSE_CHECKS.items():
            yield from _isolated(name, partial(_with_session, database, check))
    finally:
        database.dispose()


def _with_session(database: Database, check: Callable[[Session], Iterable[Finding]]) -> list[Finding]:
    with database.reading() as session:
        return list(check(session))


def _isolated(name: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    try:
        return list(check()) or [ok(name, "There is nothing to check.")]
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        return [
            problem(
                name,
                f"This could not be checked: {strike_out(cause)}",
                "Fix the database and its schema first.",
            )
        ]
    except Exception as error:  # noqa: BLE001  (around a check: whatever it met, the others are made)
        said = f"This could not be checked: {type(error).__name__}: {strike_out(str(error))}"
        return [warning(name, said, "Check what the message names; if it is nothing of yours, report it as a bug.")]


@dataclass(frozen=True)
class Summary:
    """How many findings of each kind."""

    ok: int
    warnings: int
    problems: int


def summarise(findings: Iterable[Finding]) -> Summary:
    """Count them."""
    levels = [finding.level.value for finding in findings]
    return Summary(levels.count("ok"), levels.count("warning"), levels.count("problem"))
