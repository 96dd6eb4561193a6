"""The one lock: whoever changes an attempt or a submission in the queue holds the submission's row.

With one lock there is one order, and so no deadlock. On SQLite the transaction itself is the lock: it begins
`IMMEDIATE`.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.models import Attempt, Submission


def lock_submission(session: Session, submission_id: int, *, skip_locked: bool = False) -> Submission | None:
    """The submission as it is now, its row locked until the transaction ends; `None` if another one holds it."""
    query = select(Submission).where(Submission.id == submission_id).with_for_update(skip_locked=skip_locked)
    return session.scalar(query.execution_options(populate_existing=True))


def fresh_attempt(session: Session, attempt_id: int) -> Attempt:
    """The attempt as it is now; its submission's row has to be locked."""
    query = select(Attempt).where(Attempt.id == attempt_id).execution_options(populate_existing=True)
    return session.scalars(query).one()
