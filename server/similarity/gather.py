"""The sources of a comparison, and what was handed out to everybody."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, undefer

from autograder import languages
from autograder.assignment import GIVEN, READING
from server.config import Config
from server.courses.solutions import sources_in
from server.groups import groups
from server.models import (
    Assignment,
    AssignmentVersion,
    Bundle,
    Comparison,
    Enrolment,
    Language,
    Mode,
    Role,
    Submission,
    Verdict,
)
from server.similarity.scope import Scope, Which

MOST_SOURCES = 5_000
"""Of submissions in one comparison; the newest are taken."""
AT_ONCE = 200
MAX_FILE_BYTES = 512 * 1024
PUBLIC = "public-solutions"
"""A folder of the installation's home, with one folder for each assignment's slug."""


@dataclass(frozen=True)
class Source:
    """Something to compare.

    Attributes:
        submission_id: `None` for a file.
        owner: whose it is: nobody's versions are compared with their own, nor with their group's. `None` for a file.
        here: it is of the course that asks; only such a one stands on the left of a pair.
    """

    submission_id: int | None
    owner: tuple[str, int] | None
    name: str
    language: Language
    text: str
    here: bool


@dataclass(frozen=True)
class Gathered:
    """Everything that a comparison reads.

    Attributes:
        handed_out: starters and given kernels of every version, by language.
        left_out: what could not be read, in sentences.
    """

    sources: tuple[Source, ...]
    handed_out: dict[Language, tuple[str, ...]]
    left_out: tuple[str, ...] = field(default=())


def gather(session: Session, config: Config, comparison: Comparison, scope: Scope) -> Gathered:
    """Read it all."""
    assignment = session.get_one(Assignment, comparison.assignment_id)
    others = _same_elsewhere(session, assignment, scope)
    left_out: list[str] = []
    sources = list(_submitted(session, assignment, scope, left_out, here=True))
    for other in others:
        sources += _submitted(session, other, scope, left_out, here=False)
    if scope.public:
        sources += _files(config.home / PUBLIC / assignment.slug, "public", left_out)
    if scope.staff:
        sources += _files(config.reference / assignment.slug / "solutions", "staff", left_out)
    sources += _milestones(session, [assignment, *others])
    return Gathered(tuple(sources), _handed_out(session, [assignment, *others]), tuple(left_out))


def _same_elsewhere(session: Session, assignment: Assignment, scope: Scope) -> Sequence[Assignment]:
    query = select(Assignment).where(Assignment.slug == assignment.slug, Assignment.course_id.in_(scope.courses))
    return session.scalars(query.order_by(Assignment.id)).all()


def _submitted(
    session: Session, assignment: Assignment, scope: Scope, left_out: list[str], *, here: bool
) -> Iterator[Source]:
    """Submissions of students: staff try things out, and their sources are the staff's."""
    ids = _chosen(session, assignment, scope.which)
    if len(ids) > MOST_SOURCES:
        left_out.append(f"{len(ids) - MOST_SOURCES:,} older submissions: more than {MOST_SOURCES:,} are not compared.")
        ids = ids[:MOST_SOURCES]
    owners = _owners(session, assignment)
    for begin in range(0, len(ids), AT_ONCE):
        rows = session.scalars(
            select(Submission)
            .where(Submission.id.in_(ids[begin : begin + AT_ONCE]))
            .options(undefer(Submission.source))
        )
        for row in rows:
            owner = owners.get(row.user_id, ("person", row.user_id))
            text = row.source.decode("utf-8", "replace")
            yield Source(row.id, owner, row.public_id, row.language, text, here)
            session.expunge(row)


def _owners(session: Session, assignment: Assignment) -> dict[int, tuple[str, int]]:
    found = groups.groups_in(session, assignment.course_id)
    return {user: ("group", group.id) for (user, of), group in found.items() if of == assignment.id}


def _chosen(session: Session, assignment: Assignment, which: Which) -> list[int]:
    """Ids, the newest first."""
    students = select(Enrolment.user_id).where(
        Enrolment.course_id == assignment.course_id, Enrolment.role == Role.student
    )
    rows = session.execute(
        select(Submission.id, Submission.user_id, Submission.language, Submission.points, Submission.verdict)
        .where(
            Submission.assignment_id == assignment.id,
            Submission.mode == Mode.submission,
            Submission.user_id.in_(students),
        )
        .order_by(Submission.id.desc())
    ).all()
    if which is Which.every:
        return [row.id for row in rows]
    best: dict[tuple[int, Language], tuple[tuple[bool, float], int]] = {}
    for row in rows:
        worth = (row.verdict is Verdict.passed, row.points or 0.0) if which is Which.best else (False, 0.0)
        key = (row.user_id, row.language)
        # Rows come the newest first: of equals the newest stays.
        if key not in best or worth > best[key][0]:
            best[key] = (worth, row.id)
    return sorted((submission_id for _, submission_id in best.values()), reverse=True)


def _handed_out(session: Session, assignments: Iterable[Assignment]) -> dict[Language, tuple[str, ...]]:
    """Of every version: who began early has the starter of that time."""
    found: dict[Language, dict[str, None]] = {}
    for starters in session.scalars(_versions(AssignmentVersion.starters, assignments)):
        for language, text in starters.items():
            # What is there to read is text for whoever writes what has its ending.
            record = languages.known(language) or languages.of_file(READING)
            if record is not None:
                found.setdefault(Language(record.id), {})[text] = None
    for assignment in assignments:
        versions = select(AssignmentVersion.bundle_hash).where(AssignmentVersion.assignment_id == assignment.id)
        for data in session.scalars(select(Bundle.data).where(Bundle.hash.in_(versions))):
            for file in sources_in(data, f"assignments/{assignment.slug}/{GIVEN}/"):
                found.setdefault(file.language, {})[file.source] = None
    return {language: tuple(texts) for language, texts in found.items()}


def _milestones(session: Session, assignments: Iterable[Assignment]) -> Iterator[Source]:
    """Of every version, each text once: somebody may have read an earlier one."""
    known: set[tuple[str, str]] = set()
    for milestones in session.scalars(_versions(AssignmentVersion.milestones, assignments)):
        for item in milestones:
            if (item["language"], item["source"]) in known or languages.known(item["language"]) is None:
                continue
            known.add((item["language"], item["source"]))
            name = f"milestone: {item['filename']}"[:200]
            yield Source(None, None, name, Language(item["language"]), item["source"], here=False)


def _versions(column: Any, assignments: Iterable[Assignment]) -> Select[tuple[Any]]:
    ids = [assignment.id for assignment in assignments]
    return select(column).where(AssignmentVersion.assignment_id.in_(ids)).order_by(AssignmentVersion.id)


def _files(folder: Path, kind: str, left_out: list[str]) -> Iterator[Source]:
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        if languages.of_file(path.name) is None or not path.is_file() or path.is_symlink():
            continue
        name = f"{kind}: {path.relative_to(folder)}"[:200]
        if path.stat().st_size > MAX_FILE_BYTES:
            left_out.append(f"{name}: it is larger than {MAX_FILE_BYTES // 1024} KiB.")
            continue
        text = path.read_bytes().decode("utf-8", "replace").replace("\0", "")
        if record := languages.of_file(path.name, text):
            yield Source(None, None, name, Language(record.id), text, here=False)
