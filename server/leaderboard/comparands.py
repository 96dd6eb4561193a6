"""What a profile can be held against: the same person's last one, that of their best, and those of open milestones.

A milestone's profile is the newest that staff had made of its file, found by the file's hash. Whoever may read the file
may see its figures beside their own; the profile itself stays with who asked for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, case, or_, select
from sqlalchemy.orm import Session

from autograder import languages, profile_changes
from autograder.assignment import content_hash
from autograder.contract import Lane, Language
from autograder.profile_changes import Changes
from autograder.profiles import Profile
from server.courses import courses
from server.courses.courses import AssignmentDetail, Membership
from server.courses.solutions import solutions
from server.errors import NotFoundError
from server.leaderboard.steps import steps
from server.models import Best, Mode, Submission, User
from server.submissions import profiles

LAST = "last"
BEST = "best"
_LOOKED_AT = 10
"""So many profiles of one comparand are looked through for one of the same case."""


@dataclass(frozen=True)
class Comparand:
    """Something to hold a profile against.

    Attributes:
        key: `last`, `best`, or the file of a milestone or solution as the assignment's folders name it.
        title: for a list of them.
        name: in a sentence, `your last one`.
        made: profiles of it that may fit, best guess first.
        none: why there is none, in a sentence.
        unprofiled: a submission that can be profiled to have one.
    """

    key: str
    title: str
    name: str
    made: tuple[Submission, ...] = ()
    none: str = ""
    unprofiled: Submission | None = None


@dataclass(frozen=True)
class Comparison:
    """A profile held against a comparand.

    Attributes:
        closed: so many milestones in its language are not open to the reader.
        other: the other profile's submission; `None` where there is none.
        changes: `None` where they cannot be compared; `why_not` says why in a sentence.
    """

    offered: tuple[Comparand, ...]
    closed: int
    chosen: Comparand
    other: Submission | None = None
    changes: Changes | None = None
    why_not: str = ""


@dataclass(frozen=True)
class Kernel:
    """A kernel of ours that somebody may read; `name` as in a sentence."""

    name: str
    language: Language
    source: str


def kernels(session: Session, member: Membership, detail: AssignmentDetail, now: datetime) -> dict[str, Kernel]:
    """What the member may read of published milestones and of the staff's solutions, by path."""
    found = {
        f"milestones/{one.filename}": Kernel(f"the milestone “{one.name}”", one.language, one.source)
        for one in steps(session, member, detail, now)
        if one.opened is not None
    }
    try:
        own = solutions(session, member, detail, now)
    except NotFoundError:
        return found
    for one in own:
        alone = sum(other.language is one.language for other in own) == 1
        name = "the staff kernel" if alone else f"the staff kernel {one.filename}"
        found[f"solutions/{one.filename}"] = Kernel(name, one.language, one.source)
    return found


def compare(
    session: Session, member: Membership, submission: Submission, profile: Profile, *, now: datetime, against: str = ""
) -> Comparison:
    """Hold a profile against a comparand.

    Args:
        member: who looks.
        against: the comparand's key; `""` for the first that has a profile.

    Raises:
        NotFoundError: there is none of this key, or it is not open to the member.
    """
    offered, closed = _offered(session, member, submission, now)
    chosen = next((one for one in offered if one.made), offered[0])
    if against:
        found = [one for one in offered if one.key == against]
        if not found:
            raise NotFoundError("There is nothing of that name to compare with, or it is not open to you.")
        chosen = found[0]
    why_not = ""
    for row, other in _found(session, chosen.made):
        refused = _why_not(submission.lane, profile, row.lane, other)
        if not refused:
            changes = profile_changes.changes(profile, other, chosen.name)
            return Comparison(offered, closed, chosen, row, changes)
        why_not = why_not or refused
    return Comparison(offered, closed, chosen, why_not=why_not or chosen.none)


def _why_not(lane: Lane, profile: Profile, other_lane: Lane, other: Profile) -> str:
    if lane is not other_lane:
        return f"It was made on the lane {other_lane}, and this one on {lane}: two devices count differently."
    return profile_changes.why_not(profile, other)


def _found(session: Session, rows: Collection[Submission]) -> Iterator[tuple[Submission, Profile]]:
    for row in rows:
        found = profiles.find_profile(session, row)
        if found is not None:
            yield row, found


def _offered(
    session: Session, member: Membership, submission: Submission, now: datetime
) -> tuple[tuple[Comparand, ...], int]:
    """What there is for this reader, and how many milestones are closed to them."""
    whose = "your" if member.user.id == submission.user_id else "their"
    last = _last(session, submission, whose)
    try:
        detail = courses.assignment_of(session, member, submission.assignment.slug, now)
    except NotFoundError:
        return (last,), 0
    files = {
        key: kernel
        for key, kernel in kernels(session, member, detail, now).items()
        if kernel.language is submission.language
    }
    best = _best(session, submission, detail, whose)
    closed = sum(
        one.opened is None and one.language is submission.language for one in steps(session, member, detail, now)
    )
    return (last, best, *_ours(session, submission, files)), closed


def _last(session: Session, submission: Submission, whose: str) -> Comparand:
    query = _profiles(submission).where(Submission.user_id == submission.user_id, Submission.id < submission.id)
    made = tuple(session.scalars(query))
    none = f"This is {whose} first profile of this assignment."
    return Comparand(LAST, _titled(f"{whose} last profile"), f"{whose} last one", made, none)


def _best(session: Session, submission: Submission, detail: AssignmentDetail, whose: str) -> Comparand:
    name = f"{whose} best"
    title = _titled(name)
    best = session.scalar(
        select(Submission)
        .join(Best, Best.submission_id == Submission.id)
        .where(
            Best.assignment_id == submission.assignment_id,
            Best.lane == submission.lane,
            Best.language == submission.language,
            Best.user_id == submission.user_id,
            Best.grading_hash == detail.version.grading_hash,
        )
    )
    if best is None:
        spoken = languages.of(submission.language).title
        return Comparand(BEST, title, name, none=f"No submission in {spoken} on this lane counts with times yet.")
    if best.source_hash == submission.source_hash:
        return Comparand(BEST, title, name, none=f"This is a profile of {whose} best, submission {best.number}.")
    query = _profiles(submission).where(
        Submission.user_id == submission.user_id, Submission.source_hash == best.source_hash
    )
    made = tuple(session.scalars(query))
    none = f"{title}, submission {best.number}, has no profile yet."
    return Comparand(BEST, title, name, made, none, unprofiled=best)


def _ours(session: Session, submission: Submission, files: Mapping[str, Kernel]) -> Iterator[Comparand]:
    hashes = {key: content_hash(kernel.source.encode()) for key, kernel in files.items()}
    made = _by_staff(session, submission, set(hashes.values()))
    for key, kernel in files.items():
        rows = tuple(row for row in made if row.source_hash == hashes[key])[:_LOOKED_AT]
        none = "Staff had no profile made of it yet."
        yield Comparand(key, _titled(kernel.name), kernel.name, rows, none)


def _titled(name: str) -> str:
    """Without its article, and with a capital."""
    name = name.removeprefix("the ")
    return name[:1].upper() + name[1:]


def _by_staff(session: Session, submission: Submission, hashes: Collection[str]) -> list[Submission]:
    """Profiles of these sources that today's staff of the course asked for."""
    if not hashes:
        return []
    staff = courses.staff_ids(session, submission.course_id)
    admins = select(User.id).where(User.is_admin)
    query = _profiles(submission, limit=_LOOKED_AT * len(hashes)).where(
        Submission.source_hash.in_(hashes), or_(Submission.user_id.in_(staff), Submission.user_id.in_(admins))
    )
    return list(session.scalars(query))


def _profiles(submission: Submission, *, limit: int = _LOOKED_AT) -> Select[Submission]:
    """Other profiles of the assignment that were made, those of the same lane first, newest first."""
    return (
        select(Submission)
        .where(
            Submission.assignment_id == submission.assignment_id,
            Submission.mode == Mode.profile,
            Submission.id != submission.id,
            Submission.result_id.is_not(None),
        )
        .order_by(case((Submission.lane == submission.lane, 0), else_=1), Submission.id.desc())
        .limit(limit)
    )
