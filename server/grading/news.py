"""Telling a group what came of what one of them handed in: the others were not there when it did."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.groups import groups
from server.messages import messages
from server.models import Assignment, Mode, NotificationKind, State, Submission, User


def tell_group(session: Session, submission: Submission) -> None:
    """Tell the others of its group the verdict and points of a submission that is over, once."""
    if submission.mode is not Mode.submission or submission.state is not State.done or submission.verdict is None:
        return
    together = groups.together(session, submission.assignment_id, submission.user_id)
    others = [user_id for user_id in together if user_id != submission.user_id]
    if not others:
        return
    title = session.scalars(select(Assignment.title).where(Assignment.id == submission.assignment_id)).one()
    name = session.scalars(select(User.name).where(User.id == submission.user_id)).one()
    points = f", {submission.points:.4g} points" if submission.points is not None else ""
    messages.notify(
        session,
        others,
        NotificationKind.group_result,
        course_id=submission.course_id,
        title=f"{name}'s submission in {title}: {submission.verdict.replace('_', ' ')}{points}",
        url=f"/submissions/{submission.public_id}",
        key=f"result:{submission.public_id}",
    )
