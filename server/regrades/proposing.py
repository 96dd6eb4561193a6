"""Drafting a proposal: which submissions, by which version, why."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from autograder import codec
from server import audit
from server.courses.courses import Membership
from server.errors import InvalidInputError
from server.gradebook.people import checked_reason
from server.models import (
    Assignment,
    AssignmentVersion,
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    RegradeState,
    User,
)
from server.regrades.selection import Selection, chosen

MAX_REASON_CHARS = 2000


def propose(
    session: Session,
    member: Membership,
    assignment: Assignment,
    *,
    kind: RegradeKind,
    selection: Selection,
    reason: str,
    now: datetime,
    version: int | None = None,
    may_lower: bool = False,
    tell: bool = True,
) -> Regrade:
    """Draft a proposal; nothing is graded before it is started.

    Args:
        version: number of the assignment's version to grade or score by; `None`: the current one.
        reason: whose points change reads it.
        may_lower: a declared correction of a mistake.

    Raises:
        ForbiddenError: only staff may.
        InvalidInputError: no reason, no such version, or nothing is chosen.
    """
    member.require_staff()
    return draft(
        session, member.user, assignment, kind=kind, selection=selection, reason=reason, now=now, version=version,
        may_lower=may_lower, tell=tell,
    )  # fmt: skip


def draft(
    session: Session,
    actor: User | None,
    assignment: Assignment,
    *,
    kind: RegradeKind,
    selection: Selection,
    reason: str,
    now: datetime,
    version: int | None = None,
    may_lower: bool = False,
    tell: bool = True,
) -> Regrade:
    """`propose` for whoever was found to be allowed to, such as a command on the server's own console."""
    reason = checked_reason(reason, most=MAX_REASON_CHARS)
    rows = chosen(session, assignment.id, selection)
    regrade = Regrade(
        course_id=assignment.course_id,
        assignment_id=assignment.id,
        version_id=_version(session, assignment, version).id,
        kind=kind,
        selection=codec.to_json(selection),
        reason=reason,
        may_lower=may_lower,
        tell=tell,
        state=RegradeState.drafted,
        actor_id=actor.id if actor else None,
        created_at=now,
    )
    session.add(regrade)
    session.flush()
    _add_items(session, regrade, [row[0] for row in rows], dict(rows))
    detail = {"kind": kind.value, "submissions": len(rows), "may_lower": may_lower}
    note(session, regrade, "proposed", actor, detail=detail, reason=reason)
    return regrade


def _add_items(session: Session, regrade: Regrade, ids: list[int], people: Mapping[int, int]) -> None:
    same = {
        "regrade_id": regrade.id, "version_id": regrade.version_id, "state": RegradeItemState.waiting,
        "stopped": False, "queue": {}, "moves": False, "before": {}, "scores": {}, "note": "", "after": {},
    }  # fmt: skip
    session.execute(insert(RegradeItem), [{**same, "submission_id": one, "user_id": people[one]} for one in ids])


def _version(session: Session, assignment: Assignment, number: int | None) -> AssignmentVersion:
    query = select(AssignmentVersion).where(AssignmentVersion.assignment_id == assignment.id)
    wanted = AssignmentVersion.id == assignment.version_id if number is None else AssignmentVersion.number == number
    found = session.scalar(query.where(wanted))
    if found is None:
        raise InvalidInputError("The assignment has no such version.", field="version")
    return found


def note(
    session: Session,
    regrade: Regrade,
    action: str,
    actor: User | None,
    *,
    detail: Mapping[str, Any] | None = None,
    reason: str = "",
) -> None:
    """Leave an entry in the trail of the assignment."""
    audit.record(
        session,
        action=f"regrade.{action}",
        subject=f"assignment:{regrade.assignment_id}",
        actor=actor,
        detail={"regrade": regrade.id, **(detail or {})},
        reason=reason,
    )
