"""Which pool a submission's samples belong to: whose it is, of what, and where those of a rejected submission lie.

A pool keeps the name that it was opened under. Groups come and change; so it is asked first whether somebody of those
who do the assignment together now has a pool for the same kernel, and only where nobody has is another one opened:
nobody draws samples anew by forming a group, by a change of one, or by being graded again in the same way.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from autograder.assignment import content_hash
from autograder.contract import Language, Mode, Review
from server.grading.source_normalization import normal
from server.groups import groups
from server.models import ERASED_HASH, AssignmentVersion, Submission

MOST_KERNELS = 8192
"""So many sources are remembered by their normal form."""


def pool_of(session: Session, submission: Submission) -> str | None:
    """Where a submission's samples are added; its pool is found or opened once. `None` for practice."""
    if submission.pool is None and submission.mode is Mode.submission:
        submission.pool = pool_by(session, submission, session.get_one(AssignmentVersion, submission.version_id))
    return pool_for(submission, submission.pool) if submission.pool is not None else None


def pool_by(session: Session, submission: Submission, version: AssignmentVersion) -> str:
    """Its pool where it is graded as this version says: the one that it has, or one of its group's, or another one.

    Until the transaction ends nobody else is told a pool for the same kernel: of two who ask at once the second is told
    what the first was.
    """
    now = session.get_one(AssignmentVersion, submission.version_id)
    if submission.pool is not None and now.grading_hash == version.grading_hash:
        return submission.pool
    fresh = select(Submission.source).where(Submission.id == submission.id)
    kernel = _kernels.of(session.scalars(fresh).one(), submission.language)
    what = (submission.assignment_id, version.grading_hash, submission.lane, submission.language, kernel)
    lock_pool(session, _name("kernel", *what))
    return _existing(session, submission, version, kernel) or _name(_owner(session, submission), *what)


def pool_for(submission: Submission, name: str) -> str:
    """Where its samples of this pool lie: there, or apart from everybody else's while staff reject the submission."""
    return pool_apart(submission, name) if submission.review is Review.rejected else name


def pool_apart(submission: Submission, name: str) -> str:
    """Where its samples of this pool lie while it is rejected."""
    return _name(name, f"rejected {submission.id}")


def lock_pool(session: Session, pool: str) -> None:
    """Let nobody else add to this pool until the transaction ends; on SQLite the transaction is the lock."""
    if session.get_bind().dialect.name == "postgresql":
        key = int.from_bytes(hashlib.sha256(pool.encode()).digest()[:8], "big", signed=True)
        session.execute(select(func.pg_advisory_xact_lock(key)))


def _owner(session: Session, submission: Submission) -> str:
    """For whom a pool is opened."""
    group = groups.group_of(session, submission.assignment_id, submission.user_id)
    return f"group {group.id}" if group else str(submission.user_id)


def _existing(session: Session, submission: Submission, version: AssignmentVersion, kernel: str) -> str | None:
    """The oldest pool for this kernel of those who do the assignment together now."""
    people = groups.together(session, submission.assignment_id, submission.user_id)
    oldest = (
        select(func.min(Submission.id))
        .join(AssignmentVersion, AssignmentVersion.id == Submission.version_id)
        .where(
            Submission.user_id.in_(people),
            Submission.assignment_id == submission.assignment_id,
            Submission.lane == submission.lane,
            Submission.language == submission.language,
            AssignmentVersion.grading_hash == version.grading_hash,
            Submission.pool.is_not(None),
            # Erased, all of them would be the same.
            Submission.source_hash != ERASED_HASH,
        )
        .group_by(Submission.pool)
    )
    query = select(Submission.pool, Submission.source).where(Submission.id.in_(oldest)).order_by(Submission.id)
    found = (pool for pool, source in session.execute(query) if _kernels.of(source, submission.language) == kernel)
    return next(found, None)


def _name(*parts: object) -> str:
    return content_hash("\0".join(str(part) for part in parts).encode())


class _Kernels:
    """Hashes of normal forms, by what they are of: a person's earlier sources are looked at with every new one."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, Language], str] = {}

    def of(self, source: bytes, language: Language) -> str:
        """The same for two sources that are one kernel."""
        key = hashlib.sha256(source).digest(), language
        found = self._known.get(key)
        if found is None:
            found = hashlib.sha256(normal(source, language)).hexdigest()
            if len(self._known) >= MOST_KERNELS:
                self._known.clear()
            self._known[key] = found
        return found


_kernels = _Kernels()
