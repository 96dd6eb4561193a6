"""What a node gets and gives by HTTP for an attempt of its own: the assignment's files, and what is kept for staff."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session, undefer

from autograder.profiles import MAX_REPORT_BYTES, REPORT
from server.config import Config
from server.errors import ConflictError, InvalidInputError, NotFoundError, TooLargeError, TooManyError
from server.grading.lock import lock_submission
from server.grading.states import LIVE
from server.models import (
    ERASED_HASH,
    Artefact,
    AssignmentVersion,
    Attempt,
    Bundle,
    Node,
    RegradeItem,
    Submission,
    Trial,
)

MAX_BYTES = 2**20
MAX_FILES = 8
"""Per attempt."""
LATE_BY = timedelta(minutes=15)
"""So long after its end an attempt may still get files: they are sent after its result."""
FORGET_LIMIT = 200
"""At most so many are removed at once; the rest is the next time's."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")


def is_live(session: Session, node: Node, attempt: str, fence: int) -> bool:
    """Whether this node still has this attempt; false for one that is over, another's, or none."""
    return session.scalar(_own(node, attempt, fence).where(Attempt.state.in_(LIVE))) is not None


def bundle_of(session: Session, node: Node, attempt: str, fence: int) -> bytes:
    """The files of the assignment that the node grades in this attempt, as one tar, while it holds it.

    Held is what the dispatcher gave it and the sweeper did not take back: the lease. Its own date would be the wrong
    one to ask, as no lease ends while nobody hears what nodes say.

    Raises:
        NotFoundError: it does not hold such an attempt.
    """
    version = func.coalesce(RegradeItem.version_id, Submission.version_id)
    query = (
        _own(node, attempt, fence)
        .where(Attempt.state.in_(LIVE))
        .join(Submission, Submission.id == Attempt.submission_id)
        .outerjoin(Trial, Trial.attempt_id == Attempt.id)
        .outerjoin(RegradeItem, RegradeItem.id == Trial.item_id)
        .join(AssignmentVersion, AssignmentVersion.id == version)
        .join(Bundle, Bundle.hash == AssignmentVersion.bundle_hash)
    )
    data = session.scalar(query.with_only_columns(Bundle.data))
    if data is None:
        raise NotFoundError("This node does not have this attempt.")
    return bytes(data)


def store_artefact(
    session: Session, node: Node, *, attempt: str, fence: int, name: str, data: bytes, now: datetime
) -> Artefact:
    """Keep a file that an attempt of this node left; the same again changes nothing.

    Raises:
        NotFoundError: this node has no such attempt, it ended long ago, or its work was erased meanwhile.
        InvalidInputError, TooLargeError, TooManyError: a name, a size or a number that is not taken.
        ConflictError: there is another file of this name.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError("A file's name has letters, digits, . _ and -, at most 100.", field="name")
    if len(data) > (most := MAX_REPORT_BYTES if name == REPORT else MAX_BYTES):
        raise TooLargeError(f"A file has at most {most:,} bytes.")
    row = session.scalar(_own(node, attempt, fence))
    # One attempt's files are counted one by one.
    work = lock_submission(session, row.submission_id) if row is not None else None
    if row is None or work is None or work.source_hash == ERASED_HASH or _long_over(row, now):
        raise NotFoundError("This node has no such attempt.")
    digest = hashlib.sha256(data).hexdigest()
    kept = session.scalar(select(Artefact).where(Artefact.attempt_id == row.id, Artefact.name == name))
    if kept is not None:
        return _same(kept, digest)
    if _count(session, row.id) >= MAX_FILES:
        raise TooManyError(f"An attempt leaves at most {MAX_FILES} files.", retry_after_s=LATE_BY.total_seconds())
    made = Artefact(attempt_id=row.id, name=name, data=data, size=len(data), sha256=digest, created_at=now)
    session.add(made)
    session.flush()
    return made


def artefacts_of(session: Session, attempt: str) -> tuple[Submission, Sequence[Artefact]]:
    """What an attempt left, by name, and whose it is: the caller decides who may see it.

    Raises:
        NotFoundError: there is no such attempt.
    """
    submission = session.scalar(
        select(Submission).join(Attempt, Attempt.submission_id == Submission.id).where(Attempt.public_id == attempt)
    )
    if submission is None:
        raise NotFoundError("There is no such attempt.")
    query = select(Artefact).join(Attempt, Attempt.id == Artefact.attempt_id).where(Attempt.public_id == attempt)
    return submission, session.scalars(query.order_by(Artefact.name)).all()


def data_of(session: Session, artefact: Artefact) -> bytes:
    """A file's bytes."""
    query = select(Artefact).where(Artefact.id == artefact.id).options(undefer(Artefact.data))
    return session.scalars(query.execution_options(populate_existing=True)).one().data


def forget_artefacts(session: Session, *, now: datetime, config: Config) -> int:
    """Remove files that were kept long enough, the oldest first; how many."""
    old = Artefact.created_at < now - timedelta(days=config.artefact_days)
    oldest = session.scalars(select(Artefact.id).where(old).order_by(Artefact.created_at).limit(FORGET_LIMIT)).all()
    if oldest:
        session.execute(delete(Artefact).where(Artefact.id.in_(oldest)))
    return len(oldest)


def _own(node: Node, attempt: str, fence: int) -> Select[Attempt]:
    own = (Attempt.public_id == attempt, Attempt.fence == fence, Attempt.node_id == node.id)
    return select(Attempt).where(*own)


def _long_over(attempt: Attempt, now: datetime) -> bool:
    return attempt.finished_at is not None and now - attempt.finished_at > LATE_BY


def _same(kept: Artefact, digest: str) -> Artefact:
    if kept.sha256 != digest:
        raise ConflictError("There is another file of this name.")
    return kept


def _count(session: Session, attempt_id: int) -> int:
    return session.scalars(select(func.count()).select_from(Artefact).where(Artefact.attempt_id == attempt_id)).one()
