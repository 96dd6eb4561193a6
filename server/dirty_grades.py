"""Whose grades have to be worked out anew, because something that they follow from has changed.

Whoever changes it says so here, in the same transaction. It is done once, when everything else of the transaction is
done, just before it is committed: a grade and what it follows from stand or fall together, and the locks that grades
need are the last ones that a transaction takes. The one who does it stands in the gradebook, far above most who say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy.orm import Session

from server.db import before_commit

Stale = Mapping[int, frozenset[int] | None]
"""Course → the people whose grades are stale; `None`: everybody's."""

_KEY = "stale_grades"
_settlers: list[Callable[[Session, Stale], None]] = []


def grades(session: Session, course_id: int, user_id: int | None = None) -> None:
    """Have a person's grades in a course worked out anew before this transaction is committed; `None`: everybody's."""
    people = session.info.setdefault(_KEY, {}).setdefault(course_id, set())
    people.add(user_id)
    before_commit(session, _KEY, settle)


def settle(session: Session) -> None:
    """Work out now what is stale, for a transaction that goes on with the grades as they will be."""
    noted: dict[int, set[int | None]] = session.info.pop(_KEY, {})
    if not noted:
        return
    if not _settlers:
        raise RuntimeError("nobody works out grades in this process: import server.gradebook")
    stale = {course: None if None in people else frozenset(filter(None, people)) for course, people in noted.items()}
    for work_out in _settlers:
        work_out(session, stale)


def settled_by(work_out: Callable[[Session, Stale], None]) -> None:
    """Let this function work out what is stale; the gradebook says so when it is imported."""
    _settlers.append(work_out)
