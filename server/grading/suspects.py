"""Submissions under which a node went silent: whose fault it was is not known, so no second node is risked twice.

A suspect runs in quarantine (`server.grading.policy`). One that used up its attempts is held: a person looks.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from server import alerts
from server.grading.grades import set_points
from server.models import AlertKind, ChangeReason, Result, Review, Submission


def is_known_suspect(session: Session, user_id: int, source_hash: str) -> bool:
    """Whether this person has handed in the same bytes before, and they are a suspect still."""
    same = (Submission.user_id == user_id, Submission.source_hash == source_hash, Submission.suspect)
    return bool(session.scalar(select(exists().where(*same))))


def hold(session: Session, submission: Submission, *, now: datetime) -> None:
    """It used up its attempts under suspicion: staff have to look at it before it counts or runs again."""
    if submission.review is Review.none:
        submission.review = Review.held
    if submission.result_id is not None:
        counts = session.get_one(Result, submission.result_id)
        set_points(session, submission, counts, ChangeReason.reviewed, now=now)
    message = (
        f"A node fell silent while it ran submission {submission.public_id}, and no later attempt has given a result. "
        "It is held. Read its source before you grade it again; it then runs in quarantine."
    )
    alerts.raise_alert(session, AlertKind.suspect_held, f"submission:{submission.public_id}", message, now)
