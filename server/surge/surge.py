"""What a due date would be like for a course's own roster, on the nodes that are in service, at measured times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Assignment as Manifest
from server.grading.service_times import GUESS_S, Job, ServiceTimes, service_times
from server.models import Assignment, AssignmentVersion, Enrolment, Lane, Mode, Role, Work
from server.nodes import nodes
from server.surge.plan import Expectation, Service, expectation


def expectations(session: Session, row: Assignment, *, now: datetime) -> Sequence[tuple[Lane, Expectation]]:
    """One for each lane that grades the assignment and that a node serves; the first lane where none does.

    It takes the lane for the assignment's own: what another course does at the same time is not in it.
    """
    version = session.get(AssignmentVersion, row.version_id) if row.version_id is not None else None
    if version is None:
        return []
    spec = codec.from_json(Manifest, version.manifest)
    lanes = [lane for lane in Lane if spec.policy(lane) is not None]
    slots = {lane: _slots(session, lane, now) for lane in lanes}
    served = [lane for lane in lanes if slots[lane]] or lanes[:1]
    students = students_of(session, row.course_id)
    return [
        (
            lane,
            expectation(students=students, slots=slots[lane], service=_service(session, spec, version.id, lane)),
        )
        for lane in served
    ]


def students_of(session: Session, course_id: int) -> int:
    """How many students are in the course now."""
    return session.scalars(
        select(func.count())
        .select_from(Enrolment)
        .where(Enrolment.course_id == course_id, Enrolment.role == Role.student, Enrolment.dropped_at.is_(None))
    ).one()


def _slots(session: Session, lane: Lane, now: datetime) -> int:
    working = nodes.working_nodes(session, now=now)
    return sum(node.slots for node in working if lane.value in node.lanes and not node.quarantine)


def _service(session: Session, spec: Manifest, version_id: int, lane: Lane) -> Service:
    times, policy = service_times(session, lane), spec.policy(lane)
    if policy is None or not policy.apart:
        return Service(_of(times, version_id, Work.all), measured=times.measured)
    return Service(_of(times, version_id, Work.check), _of(times, version_id, Work.measure), measured=times.measured)


def _of(times: ServiceTimes, version_id: int, work: Work) -> Sequence[float]:
    return times.of(Job(version_id, Mode.submission, work)) if times.measured else GUESS_S
