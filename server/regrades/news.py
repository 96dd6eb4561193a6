"""Telling students, and their groups, whose points a proposal changed."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from server.gradebook.points import plain
from server.groups import groups
from server.messages.messages import notify
from server.models import Assignment, NotificationKind, Regrade, RegradeItem, Submission

SHOWN = 0.005
"""Points that differ by less look the same."""


def tell_students(
    session: Session, regrade: Regrade, changed: Sequence[tuple[RegradeItem, Submission]], *, back: bool
) -> None:
    """Tell whose points are other ones now."""
    if not regrade.tell or not changed:
        return
    title = session.get_one(Assignment, regrade.assignment_id).title
    for item, submission in changed:
        old, new = (item.after["points"], submission.points) if back else (item.before["points"], submission.points)
        if _same(old, new):
            continue
        what = "A regrade was rolled back" if back else "Regraded by staff"
        notify(
            session,
            groups.together(session, regrade.assignment_id, submission.user_id),
            NotificationKind.regrade_applied,
            course_id=regrade.course_id,
            title=f"{what}: {title}, submission {submission.number}: {_points(old)} → {_points(new)} points",
            url=f"/submissions/{submission.public_id}",
            key=f"regrade:{regrade.id}:{'back' if back else 'applied'}:{submission.id}",
        )


def _same(old: float | None, new: float | None) -> bool:
    return old == new or (old is not None and new is not None and abs(old - new) < SHOWN)


def _points(points: float | None) -> str:
    return "no" if points is None else plain(points)
