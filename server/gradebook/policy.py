"""What lateness costs in a course, as its staff set it."""

from __future__ import annotations

from sqlalchemy.orm import Session

from server import audit, dirty_grades
from server.errors import InvalidInputError
from server.models import Course, User

MOST_LATE_DAYS = 100
MOST_SLACK_S = 3600


def set_policy(
    session: Session,
    course: Course,
    *,
    late_days: int,
    late_days_per_assignment: int | None,
    late_penalty: float,
    slack_s: int,
    actor: User | None = None,
) -> None:
    """Set a course's late policy; every grade of it follows.

    Args:
        late_days: of every student for the term; `late_days_per_assignment` of them in one at most, `None`: all.
        late_penalty: the share of the points, 0 to 1, that a day late costs for which there is no late day.
        slack_s: so many seconds after a date an upload is still in time.

    Raises:
        InvalidInputError: one of them is none that can be meant; `field` says which.
    """
    _check("late_days", late_days, 0, MOST_LATE_DAYS)
    if late_days_per_assignment is not None:
        _check("late_days_per_assignment", late_days_per_assignment, 0, MOST_LATE_DAYS)
    _check("late_penalty", late_penalty, 0, 1)
    _check("slack_s", slack_s, 0, MOST_SLACK_S)
    wanted = {
        "late_days": late_days,
        "late_days_per_assignment": late_days_per_assignment,
        "late_penalty": late_penalty,
        "slack_s": slack_s,
    }
    changed = {name: [getattr(course, name), value] for name, value in wanted.items() if getattr(course, name) != value}
    if not changed:
        return
    for name, value in wanted.items():
        setattr(course, name, value)
    dirty_grades.grades(session, course.id)
    audit.record(session, action="course.late_policy_set", subject=f"course:{course.slug}", actor=actor, detail=changed)


def _check(field: str, value: float, least: float, most: float) -> None:
    # What is not a number is not between any two.
    if not least <= value <= most:
        raise InvalidInputError(f"Enter a number from {least:g} to {most:g}.", field=field)
