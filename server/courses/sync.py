"""Bring assignments from their folders into a course, and hand their public files out again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session, undefer

from autograder import assignment as rungs
from autograder import codec, languages
from autograder.contract import Language
from autograder.errors import ManifestError
from autograder.misconceptions import load_misconceptions
from autograder.quiz import Quiz, load_quiz
from server import audit, dirty_grades
from server.config import Config
from server.courses import content, quiz_content
from server.courses.courses import AssignmentDetail
from server.errors import InvalidInputError
from server.models import Assignment, AssignmentVersion, Bundle, Course, Enrolment, Role, User
from server.models import Quiz as QuizRow


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
class Offer:
    """An assignment folder on this machine, and what reading it into a course would do.

    Attributes:
        is_new: the course has no such assignment; `changed`: its files are not those of the course's version.
        problem: why it cannot be read; `""` where it can.
    """

    slug: str
    title: str = ""
    rung: int | None = None
    is_new: bool = False
    changed: bool = False
    problem: str = ""

    @property
    def does_something(self) -> bool:
        """Whether reading it would change the course."""
        return not self.problem and (self.is_new or self.changed)


@dataclass(frozen=True)
class _Folder:
    spec: rungs.Assignment
    handout: str
    starters: dict[str, str]
    milestones: list[dict[str, str]]
    quiz: Quiz
    bundle: bytes
    grading_hash: str


def may_read(session: Session, config: Config, user: User) -> frozenset[str]:
    """The assignment folders that somebody may read into a course of theirs: admins all, others those of their courses.

    Whoever has a folder in a course sees its solutions and hidden cases. So an instructor has those that a course has
    which they teach and which is not archived.
    """
    folders = _slugs(config)
    if user.is_admin:
        return folders
    query = (
        select(Assignment.slug)
        .join(Course, Course.id == Assignment.course_id)
        .join(Enrolment, Enrolment.course_id == Course.id)
        .where(
            Enrolment.user_id == user.id,
            Enrolment.role == Role.instructor,
            Enrolment.dropped_at.is_(None),
            Course.archived_at.is_(None),
        )
    )
    return frozenset(folders.intersection(session.scalars(query)))


def _slugs(config: Config) -> frozenset[str]:
    return frozenset(path.parent.name for path in config.assignments.glob("*/assignment.toml"))


def offers(session: Session, config: Config, course: Course, user: User) -> list[Offer]:
    """The assignment folders that `user` may read into the course, those that cannot be read first, the others by rung.

    A problem names files below the two folders, never where these lie.
    """
    query = (
        select(Assignment.slug, AssignmentVersion.bundle_hash, QuizRow.digest)
        .outerjoin(AssignmentVersion, AssignmentVersion.id == Assignment.version_id)
        .outerjoin(QuizRow, QuizRow.id == Assignment.quiz_id)
        .where(Assignment.course_id == course.id)
    )
    have = {slug: (bundle, digest) for slug, bundle, digest in session.execute(query)}
    found = [_offer(config, slug, have.get(slug)) for slug in sorted(may_read(session, config, user))]
    return sorted(found, key=lambda offer: (not offer.problem, offer.rung or 0, offer.slug))


def _offer(config: Config, slug: str, have: tuple[str | None, str | None] | None) -> Offer:
    try:
        folder = _read(config, slug)
    except InvalidInputError as error:
        return Offer(slug, problem=without_places(config, error.message))
    bundle, digest = have or (None, None)
    changed = rungs.content_hash(folder.bundle) != bundle or quiz_content.differs(digest, folder.quiz)
    return Offer(slug, folder.spec.title, folder.spec.rung, is_new=have is None, changed=changed)


def without_places(config: Config, message: str) -> str:
    """The message with files named from the two folders on, not from where these lie on the machine."""
    for name, folder in (("assignments", config.assignments), ("reference", config.reference)):
        message = message.replace(str(folder), name)
    return message


def sync_assignments(
    session: Session,
    config: Config,
    course: Course,
    actor: User | None = None,
    *,
    only: Collection[str] | None = None,
    published: bool = True,
) -> list[Change]:
    """Read the assignment folders into `course`; one whose bundle is unchanged makes no new version.

    Args:
        only: the slugs of those to read; `None`: all.
        published: whether students see assignments that are new to the course; a challenge they never do at first.

    Raises:
        InvalidInputError: one of them cannot be read, as its manifest is malformed (the message has file, line and key)
            or a file is missing; nothing changes.
    """
    found = _slugs(config)
    chosen = found if only is None else found.intersection(only)
    folders = sorted((_read(config, slug) for slug in sorted(chosen)), key=lambda folder: folder.spec.rung)
    if not folders:
        raise InvalidInputError(f"There are no assignments in {config.assignments}.")
    changes = [_store(session, course, folder, published) for folder in folders]
    for change in changes:
        _record(session, course, change, actor)
    dirty_grades.grades(session, course.id)
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


def archive(session: Session, detail: AssignmentDetail, *, without: Collection[str] = ()) -> bytes:
    """The assignment's public files as a tar of `assignments/<slug>/…`, from the version's own bundle.

    Args:
        without: files that are left out, such as `milestones/1_naive.py`.
    """
    bundle = session.scalars(
        select(Bundle).where(Bundle.hash == detail.version.bundle_hash).options(undefer(Bundle.data))
    ).one()
    prefix = f"assignments/{detail.slug}/"
    return _only(bundle.data, prefix, {prefix + name for name in without})


def _only(bundle: bytes, prefix: str, without: Collection[str]) -> bytes:
    buffer = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(bundle)) as source,
        tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as target,
    ):
        for member in source.getmembers():
            if member.isfile() and member.name.startswith(prefix) and member.name not in without:
                target.addfile(member, source.extractfile(member))
    return buffer.getvalue()


def _read(config: Config, slug: str) -> _Folder:
    """The two folders of an assignment.

    Raises:
        InvalidInputError: they cannot be read, or not be packed.
    """
    try:
        return _read_folders(config, slug)
    except ManifestError as error:
        raise InvalidInputError(str(error)) from None
    except OSError as error:
        raise InvalidInputError(f"{error.filename or slug} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InvalidInputError(f"assignments/{slug} or reference/{slug} cannot be packed: {error}.") from None


def _read_folders(config: Config, slug: str) -> _Folder:
    public, staff = config.assignments / slug, config.reference / slug
    spec = rungs.load_assignment(public)
    rungs.load_families(staff)
    load_misconceptions(public, spec)
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
    paths = sorted(path for path in folder.glob("milestones/*") if languages.of_file(path.name))
    read = ((path, _text(path)) for path in paths)
    return [
        {"name": path.stem, "filename": path.name, "language": record.id, "source": text}
        for path, text in read
        if (record := languages.of_file(path.name, text))
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInputError(f"{path} is missing.") from None
    except ValueError:
        raise InvalidInputError(f"{path} is not UTF-8.") from None


def _store(session: Session, course: Course, folder: _Folder, published: bool) -> Change:
    row = _assignment(session, course, folder.spec, published)
    version = _store_version(session, row, folder)
    asked = quiz_content.store(session, row, folder.quiz)
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


def _assignment(session: Session, course: Course, spec: rungs.Assignment, published: bool) -> Assignment:
    row = session.scalar(select(Assignment).where(Assignment.course_id == course.id, Assignment.slug == spec.slug))
    if row is None:
        row = Assignment(
            course_id=course.id, slug=spec.slug, rung=spec.rung, title=spec.title, created_at=datetime.now(UTC),
            published=published and not spec.challenge,
        )  # fmt: skip
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
