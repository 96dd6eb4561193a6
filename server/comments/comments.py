"""Comments on a student's work: posted, edited and withdrawn by staff, with every text kept.

A comment is on some lines of a submission, on a section of a write-up, or on all of it. Its student sees it at once or
once the grades of the assignment are published, as its author chose; nobody else but staff does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload, selectinload

from server import audit
from server.comments import saved
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.gradebook import queries as gradebook
from server.groups import groups
from server.messages import messages
from server.models import (
    Assignment,
    Comment,
    CommentText,
    NotificationKind,
    RubricSheet,
    Showing,
    Submission,
    WriteUp,
)

MAX_CHARS = 10_000
MAX_COMMENTS = 500
"""On one piece of work."""
MAX_LINE = 1_000_000
_LINES = re.compile(r"\s*(\d{1,7})\s*(?:[-–]\s*(\d{1,7})\s*)?")


@dataclass(frozen=True)
class Place:
    """What a comment is on: lines of a submission, a section of a write-up; neither: all of it."""

    first_line: int | None = None
    last_line: int | None = None
    section: str = ""


def read_lines(text: str, most: int = MAX_LINE) -> Place:
    """`12`, `12-18`, or nothing for all of it.

    Raises:
        InvalidInputError: it is neither, or there are no such lines.
    """
    if not text.strip():
        return Place()
    found = _LINES.fullmatch(text)
    if found is None:
        raise InvalidInputError(
            "Lines are a number or a range: 12 or 12-18. Leave it empty for the whole file.", field="lines"
        )
    first, last = int(found[1]), int(found[2] or found[1])
    if not 0 < first <= last:
        raise InvalidInputError("Lines count from 1, and a range goes up: 12-18.", field="lines")
    if last > most:
        raise InvalidInputError(f"The source ends on line {most:,}.", field="lines")
    return Place(first, last)


def post(
    session: Session,
    member: Membership,
    work: Submission | WriteUp,
    place: Place,
    *,
    text: str,
    showing: Showing,
    save: bool = False,
    now: datetime,
) -> Comment:
    """Write a comment on a submission or a write-up of this course.

    Args:
        save: keep the text for the next time.

    Raises:
        ForbiddenError: the member is no staff of this course.
        InvalidInputError: there is no text, or too much of it.
        ConflictError: there are too many already.
    """
    member.require_staff()
    text = _checked(text)
    if len(_rows(session, work)) >= MAX_COMMENTS:
        raise ConflictError(f"There are {MAX_COMMENTS} comments already, which is the limit; edit one of them.")
    comment = Comment(
        course_id=member.course.id,
        assignment_id=work.assignment_id,
        user_id=work.user_id,
        submission_id=work.id if isinstance(work, Submission) else None,
        writeup_version=None if isinstance(work, Submission) else work.number,
        section=place.section[:200],
        first_line=place.first_line,
        last_line=place.last_line,
        author_id=member.user.id,
        text=text,
        showing=showing,
        created_at=now,
        revision=1,
    )
    comment.texts = [CommentText(number=1, text=text, actor_id=member.user.id, at=now)]
    session.add(comment)
    session.flush()
    saved.used(session, member, text, save=save, now=now)
    _note(session, member, comment, "comment.posted", {"showing": showing.value})
    _tell(session, comment, work)
    return comment


def edit(
    session: Session,
    member: Membership,
    comment_id: int,
    *,
    revision: int,
    text: str,
    showing: Showing,
    now: datetime,
) -> Comment:
    """Give a comment another text, or show it otherwise; what it said before is kept.

    Raises:
        NotFoundError: there is none in this course.
        ConflictError: somebody changed it since `revision`, or it was withdrawn.
    """
    comment, text = _locked(session, member, comment_id, revision), _checked(text)
    before = comment.showing
    if (text, showing) == (comment.text, before):
        return comment
    comment.revision += 1
    if text != comment.text:
        comment.text, comment.edited_at = text, now
        session.add(
            CommentText(comment_id=comment.id, number=comment.revision, text=text, actor_id=member.user.id, at=now)
        )
    comment.showing = showing
    session.flush()
    _note(session, member, comment, "comment.edited", {"showing": showing.value, "revision": comment.revision})
    if before is not showing:
        _tell(session, comment, work_of(session, comment))
    return comment


def withdraw(session: Session, member: Membership, comment_id: int, *, revision: int, now: datetime) -> Comment:
    """Take a comment back: its student does not see it any more, staff see that there was one.

    Raises:
        NotFoundError, ConflictError: as `edit`.
    """
    comment = _locked(session, member, comment_id, revision)
    comment.withdrawn_at = now
    comment.revision += 1
    _note(session, member, comment, "comment.withdrawn", {})
    return comment


def put_back(session: Session, member: Membership, comment_id: int, *, revision: int) -> Comment:
    """Undo `withdraw`.

    Raises:
        NotFoundError, ConflictError: as `edit`; it was not withdrawn.
    """
    comment = _locked(session, member, comment_id, revision, withdrawn=True)
    comment.withdrawn_at = None
    comment.revision += 1
    _note(session, member, comment, "comment.put_back", {})
    return comment


def of_work(session: Session, work: Submission | WriteUp, *, staff: bool, published: bool) -> list[Comment]:
    """The comments on one piece of work that a viewer may see, in the order of its lines, with authors and texts."""
    rows = _rows(session, work)
    return [row for row in rows if staff or is_visible(row, published=published)]


def is_visible(comment: Comment, *, published: bool) -> bool:
    """Whether its student sees it."""
    return comment.is_visible(published=published)


def counts(session: Session, submission_ids: Collection[int]) -> dict[int, int]:
    """How many comments each of these submissions has, for staff."""
    query = (
        select(Comment.submission_id, func.count())
        .where(Comment.submission_id.in_(submission_ids), Comment.withdrawn_at.is_(None))
        .group_by(Comment.submission_id)
    )
    return {key: value for key, value in session.execute(query) if key is not None}


def count_visible(session: Session, submission: Submission, *, staff: bool) -> int:
    """How many comments on this submission a viewer may see."""
    published = is_published(session, submission.assignment_id, submission.user_id)
    return sum(row.withdrawn_at is None for row in of_work(session, submission, staff=staff, published=published))


def rubric_points(session: Session, assignment_id: int, user_id: int) -> float:
    """What the rubric comes to for this student; 0 where nobody applied it."""
    query = select(RubricSheet.points).where(RubricSheet.assignment_id == assignment_id, RubricSheet.user_id == user_id)
    return session.scalar(query) or 0.0


def is_published(session: Session, assignment_id: int, user_id: int) -> bool:
    """Whether this student sees the grade that they have in this assignment."""
    return gradebook.is_published(session, session.get_one(Assignment, assignment_id), user_id)


def _rows(session: Session, work: Submission | WriteUp) -> Sequence[Comment]:
    query = select(Comment).options(joinedload(Comment.author), selectinload(Comment.texts))
    if isinstance(work, Submission):
        query = query.where(Comment.submission_id == work.id)
    else:
        query = query.where(
            Comment.assignment_id == work.assignment_id,
            Comment.user_id == work.user_id,
            Comment.writeup_version == work.number,
        )
    return session.scalars(query.order_by(Comment.first_line, Comment.section, Comment.id).limit(MAX_COMMENTS)).all()


def _locked(
    session: Session, member: Membership, comment_id: int, revision: int, *, withdrawn: bool = False
) -> Comment:
    member.require_staff()
    row = session.scalar(
        select(Comment)
        .where(Comment.id == comment_id, Comment.course_id == member.course.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    if row is None:
        raise NotFoundError("There is no such comment.")
    if row.revision != revision or (row.withdrawn_at is not None) is not withdrawn:
        raise ConflictError("Somebody else changed this comment meanwhile. Read it, then make your change again.")
    return row


def find(session: Session, member: Membership, comment_id: int) -> Comment:
    """A comment of this course.

    Raises:
        ForbiddenError: to a student.
        NotFoundError: there is none.
    """
    member.require_staff()
    row = session.scalar(select(Comment).where(Comment.id == comment_id, Comment.course_id == member.course.id))
    if row is None:
        raise NotFoundError("There is no such comment.")
    return row


def work_of(session: Session, comment: Comment) -> Submission | WriteUp:
    """What it is on."""
    if comment.submission_id is not None:
        return session.get_one(Submission, comment.submission_id)
    query = select(WriteUp).where(
        WriteUp.assignment_id == comment.assignment_id,
        WriteUp.user_id == comment.user_id,
        WriteUp.number == comment.writeup_version,
    )
    return session.scalars(query).one()


def _tell(session: Session, comment: Comment, work: Submission | WriteUp) -> None:
    """Its student, and their group, once they can see it; comments that wait come with the grades."""
    if comment.showing is not Showing.at_once:
        return
    title = session.scalars(select(Assignment.title).where(Assignment.id == comment.assignment_id)).one()
    kind = "submissions" if isinstance(work, Submission) else "writeups"
    messages.notify(
        session,
        groups.together(session, comment.assignment_id, comment.user_id),
        NotificationKind.comment,
        course_id=comment.course_id,
        title=f"A comment on your work in {title}",
        url=f"/{kind}/{work.public_id}/comments#comment-{comment.id}",
        key=f"comment:{comment.id}",
    )


def _note(session: Session, member: Membership, comment: Comment, action: str, detail: dict[str, object]) -> None:
    audit.record(
        session,
        action=action,
        subject=f"user:{comment.user_id}",
        actor=member.user,
        detail={"comment": comment.id, "assignment": comment.assignment_id, **detail},
    )


def _checked(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\0", "").strip()
    if not text:
        raise InvalidInputError("A comment needs a text.", field="text")
    if len(text) > MAX_CHARS:
        raise InvalidInputError(
            f"A comment has at most {MAX_CHARS:,} characters; this one has {len(text):,}.", field="text"
        )
    return text
