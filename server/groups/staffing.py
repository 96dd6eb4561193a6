"""Staff put people together, or apart, with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from server import audit, dirty_grades
from server.courses.courses import AssignmentDetail, Membership
from server.errors import ConflictError, InvalidInputError
from server.gradebook.people import checked_reason
from server.groups import rows


def change(
    session: Session,
    staff: Membership,
    detail: AssignmentDetail,
    *,
    group_id: int | None,
    who: Sequence[str],
    was: str,
    reason: str,
    now: datetime,
) -> None:
    """Let staff say who is in a group, whatever was handed in; with nobody left in it, it is gone.

    Everybody's grade whom it concerns is worked out anew, and they are told.

    Args:
        group_id: `None` makes a new one.
        who: handles or e-mail addresses, of everybody who is to be in it.
        was: `views.GroupView.was` of what the change was made from.

    Raises:
        InvalidInputError: no reason, or somebody is no student of the course.
        ConflictError: somebody else changed it meanwhile, or somebody is in another group.
    """
    staff.require_staff()
    reason = checked_reason(reason)
    if group_id is None and not who:
        raise InvalidInputError("Name the students of the group.", field="who")
    wanted = list(dict.fromkeys(rows.student(session, staff, one).id for one in who))
    group = (
        rows.new_group(session, staff, detail, now) if group_id is None else rows.group_with(session, detail, group_id)
    )
    rows.lock_group(session, group.id, wanted)
    before = rows.member_ids(session, group.id)
    if ",".join(map(str, before)) != was:
        raise ConflictError("Somebody else changed this group meanwhile. Look at it again.")
    for user_id in wanted:
        if user_id not in before:
            rows.add(session, group, user_id, now)
    rows.remove(session, group.id, [user_id for user_id in before if user_id not in wanted])
    concerned = sorted({*before, *wanted})
    audit.record(
        session,
        action="group.changed",
        subject=f"assignment:{detail.row.id}",
        actor=staff.user,
        detail={"group": group.id, "before": before, "after": wanted},
        reason=reason,
    )
    for user_id in concerned:
        dirty_grades.grades(session, staff.course.id, user_id)
    rows.tell(session, staff, detail, concerned, f"Staff changed your group for {detail.title}")
