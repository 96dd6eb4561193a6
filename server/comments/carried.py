"""Comments on earlier versions, beside the lines that they are about now.

A student who answers a comment hands in a new version: there the comment stands where its lines went. Lines are
followed as text; where one of them is gone, the comment stands under the source and says which version it was on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session, joinedload, selectinload, undefer

from server.apart.asking import APART, GivenUpError
from server.comments.comments import Place, is_visible
from server.db import let_go
from server.lexing import lines
from server.models import Comment, Mode, Submission

VERSIONS = 10
"""So many earlier versions with comments are followed, the newest first."""
MOST_LINES = 4_000
"""Longer sources are not followed: comparing takes time that the reader would wait for."""
FOLLOWED_S = 0.5
"""Of processor time, for each version."""


@dataclass(frozen=True)
class Carried:
    """A comment on an earlier version; `place` is where its lines are now, `None` where they are gone."""

    comment: Comment
    version: Submission
    place: Place | None


def from_earlier(
    session: Session, submission: Submission, source: str, *, staff: bool, published: bool, runs: bool = True
) -> list[Carried]:
    """The comments on the versions before this one that a viewer may see.

    Args:
        runs: also on runs, which others of a group do not see.
    """
    query = (
        select(Comment)
        .join(Comment.submission)
        .where(
            Comment.assignment_id == submission.assignment_id,
            Comment.user_id == submission.user_id,
            Comment.submission_id < submission.id,
            Comment.withdrawn_at.is_(None),
            Submission.mode.in_(Mode if runs else [Mode.submission]),
        )
        .options(
            joinedload(Comment.author),
            selectinload(Comment.texts),
            joinedload(Comment.submission).options(undefer(Submission.source)),
        )
        .order_by(Comment.submission_id.desc(), Comment.first_line, Comment.id)
        .limit(200)
    )
    rows = [row for row in session.scalars(query) if staff or is_visible(row, published=published)]
    let_go(session)
    now = _lines(source)
    found: list[Carried] = []
    maps: dict[int, list[int | None]] = {}
    for row in rows:
        version = row.submission
        if version is None or (version.id not in maps and len(maps) >= VERSIONS):
            continue
        if version.id not in maps:
            maps[version.id] = follow(_lines(version.source.decode("utf-8", "replace")), now)
        found.append(Carried(row, version, _moved(row, maps[version.id])))
    return found


def follow(before: Sequence[str], after: Sequence[str]) -> list[int | None]:
    """For each line of `before` its number in `after`, from 1; `None` where it is gone or was changed."""
    nowhere: list[int | None] = [None] * len(before)
    if max(len(before), len(after)) > MOST_LINES:
        return nowhere
    try:
        where, _whole = APART.ask(lines.same_lines, *lines.numbered(before, after), seconds=FOLLOWED_S)
    except GivenUpError:
        return nowhere
    return [place + 1 if place >= 0 else None for place in where]


def _moved(comment: Comment, where: Sequence[int | None]) -> Place | None:
    if comment.first_line is None or comment.last_line is None:
        return None
    found = [place for place in where[comment.first_line - 1 : comment.last_line] if place is not None]
    if len(found) != comment.last_line - comment.first_line + 1:
        return None
    return Place(found[0], found[-1])


def _lines(source: str) -> list[str]:
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
