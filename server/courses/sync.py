"""Bring assignments from their folders into a course, and hand their public files out again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session, undefer

from autograder import assignment as rungs
from autograder import codec
from autograder.contract import Language
from autograder.errors import ManifestError
from autograder.quiz import Quiz, load_quiz
from server import stale
from server.audit import service as audit
from server.config import Config
from server.courses import content, quizzes
from server.courses.service import AssignmentDetail
from server.errors import InvalidInputError
from server.models import Assignment, AssignmentVersion, Bundle, Course, User

_LANGUAGES = {extension: language for language, extension in rungs.EXTENSIONS.items()}


@dataclass(frozen=True)
class Change:
    """What is new about an assignment.

    Attributes:
        number, bundle: of its new version; `None` and `""` where only the key to its quiz changed.
        quiz: number of its new quiz; `None` where questions and key are as before.
        marked_right: how many answers became right by a corrected key, by question.
    """

    slug: str
    number: int | None = None
    bundle: str = ""
    quiz: int | None = None
    marked_right: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Folder:
    spec: rungs.Assignment
    handout: str
    starters: dict[str, str]
    milestones: list[dict[str, str]]
    quiz: Quiz
    bundle: bytes
    grading_hash: str


def sync_assignments(session: Session, config: Config, course: Course, actor: User | None = None) -> list[Change]:
    """Read the assignment folders into `course`; one whose bundle is unchanged makes no new version.

    Raises:
        InvalidInputError: a manifest is malformed (the message has file, line and key) or a file is missing; nothing
            changes.
    """
    try:
        folders = [_read(config, slug) for slug in rungs.slugs(config.assignments)]
    except ManifestError as error:
        raise InvalidInputError(str(error)) from None
    if not folders:
        raise InvalidInputError(f"There is no assignment in {config.assignments}.")
    changes = [_store(session, course, folder) for folder in folders]
    for change in changes:
        _record(session, course, change, actor)
    stale.grades(session, course.id)
    return [change for change in changes if change.number is not None or change.quiz is not None]


def _record(session: Session, course: Course, change: Change, actor: User | None) -> None:
    said: dict[str, dict[str, object]] = {}
    if change.number is not None:
        said["assignment.versioned"] = {"version": change.number, "bundle": change.bundle}
    if change.quiz is not None:
        said["quiz.versioned"] = {"quiz": change.quiz, "marked_right": dict(change.marked_right)}
    for action, detail in said.items():
        audit.record(
            session,
            action=action,
            subject=f"course:{course.slug}",
            actor=actor,
            detail={"assignment": change.slug, **detail},
        )


def archive(session: Session, detail: AssignmentDetail) -> bytes:
    """The assignment's public files as a tar of `assignments/<slug>/…`, from the version's own bundle."""
    bundle = session.scalars(
        select(Bundle).where(Bundle.hash == detail.version.bundle_hash).options(undefer(Bundle.data))
    ).one()
    return _only(bundle.data, f"assignments/{detail.slug}/")


def _only(bundle: bytes, prefix: str) -> bytes:
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(bundle)) as source,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as target,
    ):
        for member in source.getmembers():
            if member.isfile() and member.name.startswith(prefix):
                target.addfile(member, source.extractfile(member))
    return buffer.getvalue()


def _read(config: Config, slug: str) -> _Folder:
    public, staff = config.assignments / slug, config.reference / slug
    spec = rungs.load_assignment(public)
    rungs.load_families(staff)
    return _Folder(
        spec=spec,
        handout=_text(public / "README.md"),
        starters={language.value: _text(_starter(public, language)) for language in spec.languages} | _reading(public),
        milestones=_milestones(public),
        quiz=load_quiz(public, staff),
        bundle=content.bundle(slug, public, staff),
        grading_hash=content.grading_hash(spec, public, staff),
    )


def _reading(folder: Path) -> dict[str, str]:
    """The starter in plain PyTorch, beside those of languages, where the assignment has one."""
    path = folder / "starters" / rungs.READING
    return {rungs.READING: _text(path)} if path.is_file() else {}


def _starter(folder: Path, language: Language) -> Path:
    return folder / "starters" / f"{language.value}.{rungs.EXTENSIONS[language]}"


def _milestones(folder: Path) -> list[dict[str, str]]:
    paths = sorted(path for path in folder.glob("milestones/*") if path.suffix[1:] in _LANGUAGES)
    return [
        {"name": path.stem, "filename": path.name, "language": _LANGUAGES[path.suffix[1:]].value, "source": _text(path)}
        for path in paths
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInputError(f"{path} is missing.") from None
    except ValueError:
        raise InvalidInputError(f"{path} is not UTF-8.") from None


def _store(session: Session, course: Course, folder: _Folder) -> Change:
    row = _assignment(session, course, folder.spec)
    version = _store_version(session, row, folder)
    asked = quizzes.store(session, row, folder.quiz)
    return Change(
        row.slug,
        number=version.number if version else None,
        bundle=version.bundle_hash if version else "",
        quiz=asked[0].number if asked else None,
        marked_right=asked[1] if asked else {},
    )


def _store_version(session: Session, row: Assignment, folder: _Folder) -> AssignmentVersion | None:
    """The new version; `None` where the files are those of the current one."""
    digest = rungs.content_hash(folder.bundle)
    current = session.get(AssignmentVersion, row.version_id) if row.version_id else None
    if current is not None and current.bundle_hash == digest:
        return None
    version = AssignmentVersion(
        assignment_id=row.id,
        number=_next_number(session, row),
        bundle_hash=_bundle(session, digest, folder.bundle),
        grading_hash=folder.grading_hash,
        manifest=codec.to_json(folder.spec),
        handout=folder.handout,
        starters=folder.starters,
        milestones=folder.milestones,
        created_at=datetime.now(UTC),
    )
    session.add(version)
    session.flush()
    row.version_id, row.title, row.rung = version.id, folder.spec.title, folder.spec.rung
    return version


def _assignment(session: Session, course: Course, spec: rungs.Assignment) -> Assignment:
    row = session.scalar(select(Assignment).where(Assignment.course_id == course.id, Assignment.slug == spec.slug))
    if row is None:
        row = Assignment(
            course_id=course.id, slug=spec.slug, rung=spec.rung, title=spec.title, created_at=datetime.now(UTC)
        )
        session.add(row)
        session.flush()
    return row


def _next_number(session: Session, row: Assignment) -> int:
    query = select(func.max(AssignmentVersion.number)).where(AssignmentVersion.assignment_id == row.id)
    return (session.scalar(query) or 0) + 1


def _bundle(session: Session, digest: str, data: bytes) -> str:
    if session.get(Bundle, digest) is None:
        session.add(Bundle(hash=digest, data=data, size=len(data), created_at=datetime.now(UTC)))
        session.flush()
    return digest
