"""Notes and sources that their authors, or staff, opened on a leaderboard: why an entry is as fast as it is.

Whoever wrote a source opens it and closes it again. Staff do both too; what they closed only they open, and the note is
the author's alone. What is open is shown to nobody else before the assignment has ended for everybody, extensions
included, and then to whom the course says: nobody, its members, or whoever can look at the board. What left the board,
because its author became faster or staff rejected it, is shown no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server import audit, ids
from server.courses.courses import AssignmentDetail
from server.courses.deadlines import are_all_closed
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.grading import ranking
from server.leaderboard.board import Board, frozen_at
from server.leaderboard.viewer import Looker
from server.models import SharedSource, SourceSharing, Submission, User
from server.submissions import submissions

MAX_NOTE_CHARS = 2_000


@dataclass(frozen=True)
class State:
    """What somebody who may open a source is told of it.

    Attributes:
        own: they wrote it; otherwise they are staff.
        stands: it is on a leaderboard; nothing else can be opened.
        sharing: who can read it once it is shown.
        has_ended: nobody can hand in any more: what is open is shown.
        may_open: they may open it now.
    """

    own: bool
    stands: bool
    row: SharedSource | None
    sharing: SourceSharing
    has_ended: bool

    @property
    def is_open(self) -> bool:
        """Whether it is open."""
        return self.row is not None and self.row.is_open

    @property
    def is_barred(self) -> bool:
        """Whether staff closed it, so that only they open it."""
        return self.row is not None and self.row.by_staff and not self.row.is_open

    @property
    def may_open(self) -> bool:
        """Whether they may open it now."""
        allowed = self.stands and self.sharing is not SourceSharing.nobody
        return allowed and not (self.own and self.is_barred)


@dataclass(frozen=True)
class SharedEntry:
    """An entry of a board whose source is shown.

    Attributes:
        name: the name if they chose to show it, otherwise their pseudonym.
        ratio, ratio_low, ratio_high, time_us: as the board's.
        note: the author's, as plain text; `""`: none.
    """

    public_id: str
    name: str
    lane: Lane
    language: Language
    at: datetime
    ratio: float
    ratio_low: float
    ratio_high: float
    time_us: float
    note: str
    source: str


def state(session: Session, user: User, submission: Submission, now: datetime) -> State:
    """What is so of a submission that `user` may see, and whose assignment and course are loaded.

    Raises:
        NotFoundError: they neither wrote it nor are staff of its course.
    """
    is_staff = submissions.is_staff_of(session, user, submission)
    own = submission.user_id == user.id
    if not (own or is_staff):
        raise NotFoundError("There is no such submission.")
    return State(
        own=own,
        stands=session.execute(ranking.entry(submission.id)).first() is not None,
        row=session.get(SharedSource, submission.id),
        sharing=submission.assignment.course.source_sharing,
        has_ended=are_all_closed(session, submission.assignment, now),
    )


def open_source(session: Session, user: User, public_id: str, *, note: str, now: datetime) -> None:
    """Open a submission's source on its leaderboard. From its author `note` replaces the note; from staff it is unread.

    Raises:
        NotFoundError: there is no such submission, or they neither wrote it nor are staff.
        ForbiddenError: staff closed it, or the course shows no student's source.
        ConflictError: it is on no leaderboard.
        InvalidInputError: the note is too long.
    """
    submission = _locked(session, user, public_id)
    found = state(session, user, submission, now)
    if found.sharing is SourceSharing.nobody:
        raise ForbiddenError("This course shows no student's source.")
    if not found.stands:
        raise ConflictError("Only a submission that is on a leaderboard can be shown there.")
    if not found.may_open:
        raise ForbiddenError("The staff closed this source. Ask them to open it again.")
    row = found.row or _new(session, submission, now)
    row.is_open, row.by_staff, row.changed_at = True, not found.own, now
    if found.own:
        row.note = _checked(note)
    detail = {"submission": submission.public_id, "note": row.note}
    _record(session, user, submission, "shared_source.opened", detail)


def close_source(session: Session, user: User, public_id: str, *, now: datetime) -> None:
    """Close it again; the note is kept for when it is opened the next time.

    Raises:
        NotFoundError: as `open_source`.
        ConflictError: it is not open.
    """
    submission = _locked(session, user, public_id)
    found = state(session, user, submission, now)
    if found.row is None or not found.row.is_open:
        raise ConflictError("This source is not open.")
    found.row.is_open, found.row.by_staff, found.row.changed_at = False, not found.own, now
    _record(session, user, submission, "shared_source.closed", {"submission": submission.public_id})


def shown_on(session: Session, who: Looker, detail: AssignmentDetail, board: Board, now: datetime) -> Mapping[str, str]:
    """Of which entries of a board the source is shown to them: the submission's id, and that of the entry's page."""
    entries = {entry.submission for entry in board.entries}
    if not entries or not _are_shown(session, who, detail, now):
        return {}
    query = (
        select(Submission.public_id, SharedSource.public_id)
        .join(SharedSource, SharedSource.submission_id == Submission.id)
        .where(Submission.assignment_id == detail.row.id, SharedSource.is_open)
    )
    return {submission: shared for submission, shared in session.execute(query) if submission in entries}


def shared_entry(session: Session, who: Looker, detail: AssignmentDetail, public_id: str, now: datetime) -> SharedEntry:
    """An entry whose source is shown to them.

    Raises:
        NotFoundError: there is none, or it is not shown to them, or not any more.
    """
    missing = NotFoundError("There is no such entry, or its source is not shown.")
    query = select(SharedSource).where(SharedSource.public_id == public_id, SharedSource.is_open)
    row = session.scalar(query)
    if row is None or not _are_shown(session, who, detail, now):
        raise missing
    submission = session.get_one(Submission, row.submission_id)
    entry = session.execute(ranking.entry(submission.id)).first()
    if entry is None or submission.assignment_id != detail.row.id or submission.lane not in detail.board_lanes:
        raise missing
    return SharedEntry(
        public_id=row.public_id,
        name=entry.name if entry.show_name else entry.handle,
        lane=submission.lane,
        language=submission.language,
        at=submission.uploaded_at,
        ratio=entry.ratio,
        ratio_low=entry.ratio_low,
        ratio_high=entry.ratio_high,
        time_us=entry.time_us,
        note=row.note,
        source=submissions.source_of(session, submission).decode("utf-8", "replace"),
    )


def _are_shown(session: Session, who: Looker, detail: AssignmentDetail, now: datetime) -> bool:
    """Whether they are shown open sources of the assignment, as far as its boards show the entries."""
    sharing = who.course.source_sharing
    may_look = sharing is SourceSharing.everyone or (sharing is SourceSharing.members and who.member is not None)
    return may_look and frozen_at(detail.row, now) is None and are_all_closed(session, detail.row, now)


def _locked(session: Session, user: User, public_id: str) -> Submission:
    """As `find`; whoever else wants to open or close it waits."""
    submission = submissions.find(session, user, public_id)
    session.execute(select(Submission.id).where(Submission.id == submission.id).with_for_update())
    return submission


def _new(session: Session, submission: Submission, now: datetime) -> SharedSource:
    row = SharedSource(
        submission_id=submission.id, user_id=submission.user_id, public_id=ids.public_id(), note="", is_open=False,
        by_staff=False, changed_at=now,
    )  # fmt: skip
    session.add(row)
    return row


def _checked(note: str) -> str:
    said = note.replace("\r\n", "\n").replace("\0", "").strip()
    if len(said) > MAX_NOTE_CHARS:
        raise InvalidInputError(
            f"A note has at most {MAX_NOTE_CHARS:,} characters; this one has {len(said):,}.", field="note"
        )
    return said


def _record(session: Session, user: User, submission: Submission, action: str, detail: dict[str, str]) -> None:
    audit.record(
        session,
        action=action,
        subject=f"submission:{submission.public_id}",
        actor=session.get_one(User, user.id),
        detail=detail,
    )
