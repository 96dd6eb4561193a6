"""What waits, as the policy wants it: one look at a lane, in light columns, whatever the sources weigh."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.courses.deadlines import Deadlines
from server.grading.policy import WINDOW, Claimed, Look, Queue, Running, Waiting
from server.grading.states import LIVE, WAITING
from server.models import Assignment, Attempt, Extension, Lane, Node, Submission
from server.nodes import nodes


def look_at_all(session: Session, *, now: datetime) -> Mapping[Lane, Queue]:
    """The queue of every lane in which something waits and which a node serves."""
    serving = nodes.working_nodes(session, now=now)
    waiting = session.scalars(select(Submission.lane).where(Submission.state.in_(WAITING)).distinct()).all()
    served = {lane for node in serving for lane in node.lanes}
    return {lane: Queue(look_at(session, lane, serving, now=now)) for lane in waiting if lane.value in served}


def look_at(session: Session, lane: Lane, working: Sequence[Node], *, now: datetime) -> Look:
    """One lane as it is; `working` are the nodes that take work now."""
    serving = [node for node in working if lane.value in node.lanes]
    return Look(
        now=now,
        waiting=[_with_choice(item, serving) for item in _waiting(session, lane)],
        claimed=_claimed(session, lane),
        running=_running(session, lane),
        slots=sum(node.slots for node in serving if not node.quarantine),
        quarantine=any(node.quarantine and node.slots for node in serving),
    )


def _waiting(session: Session, lane: Lane) -> list[Waiting]:
    query = (
        select(
            Submission.id, Submission.user_id, Submission.course_id, Submission.line, Submission.place_at,
            Submission.work, Assignment.due_at, Assignment.late_until, Submission.suspect, Submission.avoid_node_id,
            Submission.language, Extension.id, Extension.due_at, Extension.late_until,
        )
        .join(Assignment, Assignment.id == Submission.assignment_id)
        .outerjoin(
            Extension,
            (Extension.assignment_id == Submission.assignment_id)
            & (Extension.user_id == Submission.user_id)
            & Extension.withdrawn_at.is_(None),
        )
        .where(Submission.lane == lane, Submission.state.in_(WAITING))
    )  # fmt: skip
    return [_waits(*row) for row in session.execute(query)]


def _waits(*row: Any) -> Waiting:
    """Somebody who waits, with their own dates: who was given more time is in a hurry later."""
    *_, extension, due_at, late_until = row
    item = Waiting(*row[:-3])
    if extension is None:
        return item
    own = Deadlines(None, item.due_at, item.closes_at).extended_to(due_at, late_until)
    return dataclasses.replace(item, due_at=own.due_at, closes_at=own.late_until)


def _with_choice(item: Waiting, serving: Sequence[Node]) -> Waiting:
    """Where no other node does this work, the one that is to be avoided has to do it again."""
    if item.avoid is None or any(_could(node, item) for node in serving if node.id != item.avoid):
        return item
    return dataclasses.replace(item, avoid=None)


def _could(node: Node, item: Waiting) -> bool:
    does = item.work.value in node.works and nodes.serves(node, item.course_id)
    able = does and item.language not in nodes.lacks(node)
    return able and node.slots > 0 and node.quarantine == item.suspect


def _claimed(session: Session, lane: Lane) -> list[Claimed]:
    query = (
        select(Attempt.line, Submission.course_id)
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Attempt.lane == lane)
        .order_by(Attempt.id.desc())
        .limit(WINDOW)
    )
    return [Claimed(*row) for row in session.execute(query)]


def _running(session: Session, lane: Lane) -> list[Running]:
    query = (
        select(Submission.user_id, Attempt.line, Submission.suspect)
        .join(Submission, Submission.id == Attempt.submission_id)
        .where(Attempt.lane == lane, Attempt.state.in_(LIVE))
    )
    return [Running(*row) for row in session.execute(query)]
