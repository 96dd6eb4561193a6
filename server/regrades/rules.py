"""What a course lets its students ask: how often, and until when."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from server import audit
from server.courses.courses import Membership
from server.errors import ConflictError, InvalidInputError
from server.models import Course, RegradeRules

LIMITS: Mapping[str, tuple[int, int]] = {
    "per_assignment": (1, 50),
    "per_course": (1, 500),
    "window_days": (1, 365),
    "cooling_off_h": (0, 168),
}
"""The least and the most of each number."""
_DEFAULTS = {"enabled": True, "per_assignment": 2, "per_course": 8, "window_days": 7, "cooling_off_h": 0, "revision": 0}


def rules_of(session: Session, course_id: int) -> RegradeRules:
    """The course's rules; of a course that never set any, the defaults, which are in no table."""
    return session.get(RegradeRules, course_id) or RegradeRules(course_id=course_id, **_DEFAULTS)


def set_rules(
    session: Session, member: Membership, *, enabled: bool, numbers: Mapping[str, int], revision: int
) -> RegradeRules:
    """Change them.

    Args:
        numbers: by the names of `LIMITS`, all of them.

    Raises:
        ForbiddenError: only an instructor may.
        InvalidInputError: a number is out of its limits.
        ConflictError: somebody else changed them meanwhile.
    """
    member.require_instructor()
    for name, (least, most) in LIMITS.items():
        if not least <= numbers[name] <= most:
            raise InvalidInputError(f"It has to be from {least} to {most}.", field=name)
    # The course's row is the lock: there may be no row of rules yet.
    session.get_one(Course, member.course.id, with_for_update=True)
    row = session.get(RegradeRules, member.course.id, populate_existing=True)
    if row is None:
        row = RegradeRules(course_id=member.course.id, **_DEFAULTS)
        session.add(row)
    if row.revision != revision:
        raise ConflictError("Somebody else changed these rules meanwhile. Check them again.")
    before = {name: getattr(row, name) for name in ("enabled", *LIMITS)}
    row.enabled, row.revision = enabled, revision + 1
    for name in LIMITS:
        setattr(row, name, numbers[name])
    after = {name: getattr(row, name) for name in before}
    detail = {"before": before, "after": after}
    subject = f"course:{member.course.slug}"
    audit.record(session, action="regrade_rules.set", subject=subject, actor=member.user, detail=detail)
    session.flush()
    return row
