"""What the page of a commented piece of work shows: lines and comments in turn, and the rubric."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus

from fastapi import Request
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import writeups
from server.comments import carried, comments, rubrics, saved, sheets
from server.courses.courses import Membership
from server.errors import InvalidInputError, LadderError
from server.models import (
    Assignment,
    Comment,
    RubricItem,
    RubricSheet,
    Showing,
    Submission,
    User,
    WriteUp,
    WriteUpFormat,
)
from server.pages.highlight import Line, Listing, listing
from server.pages.markdown import markdown_html
from server.pages.rendering import render
from server.submissions import submissions

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+([^ \t\n].*)$", re.MULTILINE)
MOST_SECTIONS = 100


@dataclass(frozen=True)
class Typed:
    """What somebody wrote in a form that was refused, and why; or began with."""

    lines: str = ""
    section: str = ""
    text: str = ""
    showing: Showing = Showing.with_grades
    save: bool = False
    problem: LadderError | None = None

    def refused(self, problem: LadderError) -> Typed:
        """The same with the reason."""
        return replace(self, problem=problem)

    @property
    def field(self) -> str:
        """The field that the reason is about."""
        return self.problem.field if isinstance(self.problem, InvalidInputError) else ""


@dataclass(frozen=True)
class Note:
    """A comment as it is shown; `version` is the earlier one that it is on."""

    comment: Comment
    version: Submission | None = None
    last_line: int | None = None

    @property
    def html(self) -> Markup:
        """Its text."""
        return markdown_html(self.comment.text)


@dataclass(frozen=True)
class Segment:
    """Lines that stand together, and the comments on those that end here."""

    lines: tuple[Line, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class Piece:
    """A submission or a write-up with what was said about it.

    Attributes:
        segments: of a source.
        html: of a write-up that is text; `None` for one that is not.
        notes: on all of it, on its sections, and those whose lines are gone.
        marked: numbers of lines with a comment.
    """

    kind: str
    public_id: str
    name: str
    assignment: Assignment
    author: User
    submission: Submission | None
    writeup: WriteUp | None
    segments: tuple[Segment, ...]
    left_out: int
    html: Markup | None
    sections: tuple[str, ...]
    notes: tuple[Note, ...]
    marked: frozenset[int]
    published: bool

    @property
    def path(self) -> str:
        """Its page of comments."""
        return f"/{self.kind}/{self.public_id}/comments"


@dataclass(frozen=True)
class Group:
    """Items of a rubric under one heading."""

    name: str
    items: tuple[RubricItem, ...]


@dataclass(frozen=True)
class Ticks:
    """Items that somebody ticked in vain, those that applied when they began, and why they were not taken."""

    items: frozenset[int]
    seen: frozenset[int]
    problem: LadderError


@dataclass(frozen=True)
class Rubric:
    """The rubric as it stands for one student: all that may apply, or, for them, what does.

    Attributes:
        applied: ids of what applies.
        refused: what was ticked and is not saved; shown instead of what applies.
        came, went: what somebody else ticked and unticked since who was refused began.
    """

    groups: tuple[Group, ...]
    sheet: RubricSheet | None
    applied: frozenset[int]
    refused: Ticks | None = None
    came: tuple[RubricItem, ...] = ()
    went: tuple[RubricItem, ...] = ()

    @property
    def ticked(self) -> frozenset[int]:
        """Ids of what is ticked in the form."""
        return self.refused.items if self.refused else self.applied

    @property
    def total(self) -> float:
        """What the ticks come to."""
        return math.fsum(item.points for group in self.groups for item in group.items if item.id in self.ticked)


def piece_of_submission(session: Session, member: Membership, submission: Submission) -> Piece:
    """A submission with the comments that the member may see."""
    staff = member.is_staff
    # Reading the source loads the row anew, without what stands around it.
    assignment, author = submission.assignment, submission.user
    published = comments.is_published(session, submission.assignment_id, submission.user_id)
    source = submissions.source_of(session, submission).decode("utf-8", "replace")
    own = [
        Note(row, last_line=row.last_line)
        for row in comments.of_work(session, submission, staff=staff, published=published)
    ]
    before = [
        Note(one.comment, one.version, one.place.last_line if one.place else None)
        for one in carried.from_earlier(
            session, submission, source, staff=staff, published=published, runs=staff or author.id == member.user.id
        )
    ]
    shown = listing(source, submission.language.value)
    segments, rest = in_turn(shown, [*own, *before])
    return Piece(
        kind="submissions",
        public_id=submission.public_id,
        name=f"Submission {submission.number}" if submission.mode == "submission" else f"Run {submission.number}",
        assignment=assignment,
        author=author,
        submission=submission,
        writeup=None,
        segments=segments,
        left_out=shown.left_out,
        html=None,
        sections=(),
        notes=rest,
        marked=_marked(own),
        published=published,
    )


def piece_of_writeup(session: Session, member: Membership, assignment: Assignment, writeup: WriteUp) -> Piece:
    """A write-up with the comments that the member may see."""
    published = comments.is_published(session, assignment.id, writeup.user_id)
    rows = comments.of_work(session, writeup, staff=member.is_staff, published=published)
    text = None
    if writeup.format is not WriteUpFormat.pdf:
        text = writeups.content_of(session, writeup).decode("utf-8", "replace")
    is_markdown = writeup.format is WriteUpFormat.markdown
    return Piece(
        kind="writeups",
        public_id=writeup.public_id,
        name=f"Write-up {writeup.number}",
        assignment=assignment,
        author=session.get_one(User, writeup.user_id),
        submission=None,
        writeup=writeup,
        segments=(),
        left_out=0,
        html=None if text is None else markdown_html(text) if is_markdown else Markup("<pre>{}</pre>").format(text),
        sections=_sections(text) if text and is_markdown else (),
        notes=tuple(Note(row) for row in rows),
        marked=frozenset(),
        published=published,
    )


def in_turn(shown: Listing, notes: Iterable[Note]) -> tuple[tuple[Segment, ...], tuple[Note, ...]]:
    """The lines, broken after each that a comment ends on; and the comments that no line is shown for."""
    ends: dict[int, list[Note]] = {}
    rest: list[Note] = []
    for note in notes:
        has_line = note.last_line is not None and note.last_line <= len(shown.lines)
        (ends.setdefault(note.last_line or 0, []) if has_line else rest).append(note)
    segments, begin = [], 0
    for end in sorted(ends):
        segments.append(Segment(shown.lines[begin:end], tuple(ends[end])))
        begin = end
    if shown.lines[begin:]:
        segments.append(Segment(shown.lines[begin:], ()))
    return tuple(segments), tuple(rest)


def rubric_for(session: Session, member: Membership, piece: Piece, refused: Ticks | None = None) -> Rubric | None:
    """The rubric beside a piece of work; `None` where there is none, or a student may not see it yet."""
    if not member.is_staff and not piece.published:
        return None
    sheet = rubrics.sheet_of(session, piece.assignment.id, piece.author.id)
    applied = frozenset(mark.item_id for mark in sheet.marks) if sheet else frozenset()
    every = rubrics.items_of(session, piece.assignment.id, retired=True)
    wanted = applied | (refused.items if refused else frozenset())
    items = [item for item in every if item.id in wanted or (member.is_staff and item.retired_at is None)]
    if not items and sheet is None:
        return None
    seen = refused.seen if refused else applied
    came, went = (tuple(item for item in every if item.id in ids) for ids in (applied - seen, seen - applied))
    return Rubric(grouped(items), sheet, applied, refused, came, went)


def grouped(items: Sequence[RubricItem]) -> tuple[Group, ...]:
    """Items by their groups, in the order in which each group comes first."""
    names = dict.fromkeys(item.group for item in items)
    return tuple(Group(name, tuple(item for item in items if item.group == name)) for name in names)


def page_of(
    request: Request,
    session: Session,
    member: Membership,
    piece: Piece,
    typed: Typed,
    *,
    refused: Ticks | None = None,
) -> Response:
    """The page; `typed` and `refused` are what its forms hold that was not taken."""
    staff, problem = member.is_staff, typed.problem or (refused.problem if refused else None)
    all_turns = sheets.turns(session, piece.assignment) if staff else []
    return render(
        request,
        "comments.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        piece=piece,
        typed=typed,
        rubric=rubric_for(session, member, piece, refused),
        saved=saved.most_used(session, member) if staff else (),
        upcoming=sheets.next_turn(all_turns, piece.author.id),
        graded=sum(turn.points is not None for turn in all_turns),
        to_grade=sum(turn.has_work for turn in all_turns),
    )


def _marked(notes: Iterable[Note]) -> frozenset[int]:
    rows = [note.comment for note in notes if note.comment.withdrawn_at is None]
    ranges = [range(row.first_line, row.last_line + 1) for row in rows if row.first_line and row.last_line]
    return frozenset(number for lines in ranges for number in lines)


def _sections(text: str) -> tuple[str, ...]:
    headings = (found.rstrip().rstrip("#").rstrip() for found in _HEADING.findall(text))
    return tuple(dict.fromkeys(heading[:200] for heading in headings if heading))[:MOST_SECTIONS]
