"""What leads on from a submission's page: whether it counts, and where to talk about it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from server.comments import comments
from server.courses.courses import Membership
from server.gradebook import choices
from server.gradebook import queries as gradebook
from server.groups import groups
from server.models import Mode, Submission


@dataclass(frozen=True)
class Around:
    """A submission among its student's others.

    Attributes:
        counts: the grade is by it.
        chosen: its student, or whoever of the group is looking, chose it; otherwise the best counts.
        may_choose: the viewer may say that it counts for them.
        comments: on it, that the viewer may see.
    """

    counts: bool
    chosen: bool
    may_choose: bool
    comments: int


def around(session: Session, member: Membership, submission: Submission) -> Around:
    """What the member, who may see the submission, is told beside it."""
    theirs = member.user.id in groups.together(session, submission.assignment_id, submission.user_id)
    graded = member.user.id if theirs else submission.user_id
    grade = gradebook.grade_of(session, graded, submission.assignment_id)
    choice = choices.choice_of(session, submission.assignment_id, graded)
    return Around(
        counts=grade is not None and grade.submission_id == submission.id,
        chosen=choice is not None and choice.submission_id == submission.id,
        may_choose=theirs and not member.is_staff and submission.mode is Mode.submission,
        comments=comments.count_visible(session, submission, staff=member.is_staff),
    )
