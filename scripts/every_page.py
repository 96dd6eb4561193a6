"""Every address that can be looked at, filled with what a course has: for benchmarks, and for tests of all pages.

The addresses come from the application's own routes, so that a new page is looked at without being named here. A new
parameter needs a value in `_values`; a page that stays out needs its reason in `LEFT_OUT`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from server.models import (
    Announcement,
    Assignment,
    Base,
    Comparison,
    Course,
    Enrolment,
    Mode,
    Notification,
    Regrade,
    RegradeRequest,
    Role,
    RosterImport,
    SharedSource,
    SimilarPair,
    Submission,
    User,
    Verdict,
    WriteUp,
)

LEFT_OUT = {
    "/submissions/{public_id}/live": "a stream",
    "/api/v1/submissions/{public_id}/events": "a stream",
    "/api/v1/nodes": "for admins",
    "/api/v1/nodes/own": "for nodes",
    "/api/v1/attempts/{attempt}/bundle": "for nodes",
    "/api/v1/attempts/{attempt}": "for nodes",
    "/api/v1/attempts/{attempt}/artefacts": "a node's files",
    "/api/v1/attempts/{attempt}/artefacts/{name}": "a node's files",
    "/metrics": "for Prometheus, with a token",
    "/login/{provider}": "leads to another site",
    "/login/{provider}/callback": "comes from another site",
    "/second-factor": "asks who gave a password a moment ago, and leads everybody else on",
    "/notifications/{notification_id}": "leads on, and notes that it was read",
}
_PARAMETER = re.compile(r"\{(\w+)(?::\w+)?\}")


@dataclass(frozen=True)
class Asker:
    """Somebody who looks; `user_id` is `None` for a stranger."""

    role: str
    user_id: int | None


def askers(session: Session, course: Course) -> list[Asker]:
    """A stranger, the student who handed in most, a TA, and an instructor."""
    most = (
        select(Submission.user_id)
        .where(Submission.course_id == course.id, Submission.verdict == Verdict.passed)
        .group_by(Submission.user_id)
        .order_by(func.count().desc(), Submission.user_id)
    )
    return [
        Asker("anybody", None),
        Asker("student", session.scalars(most.limit(1)).one()),
        *(Asker(role.value, _first_of(session, course, role)) for role in (Role.ta, Role.instructor)),
    ]


def _first_of(session: Session, course: Course, role: Role) -> int:
    query = select(Enrolment.user_id).where(Enrolment.course_id == course.id, Enrolment.role == role)
    return session.scalars(query.order_by(Enrolment.user_id).limit(1)).one()


def addresses(app: FastAPI, session: Session, course: Course, student_id: int) -> dict[str, str | None]:
    """Every route that is looked at → an address that it has in this course; `None` where there is nothing to show."""
    values = _values(session, course, student_id)
    paths = [route.path for route in iter_route_contexts(app.routes) if "GET" in (route.methods or ())]
    return {path: _filled(path, values) for path in dict.fromkeys(paths) if path not in LEFT_OUT}


def unknown(app: FastAPI, session: Session, course: Course, student_id: int) -> list[str]:
    """Routes with a parameter of which `_values` knows nothing."""
    known = {name.rpartition(".")[2] for name in _values(session, course, student_id)}
    paths = (route.path for route in iter_route_contexts(app.routes) if "GET" in (route.methods or ()))
    return [path for path in paths if path not in LEFT_OUT and set(_PARAMETER.findall(path)) - known]


def _filled(path: str, values: Mapping[str, object]) -> str | None:
    filled = path
    for name in _PARAMETER.findall(path):
        key = f"{path.split('/')[1]}.{name}" if f"{path.split('/')[1]}.{name}" in values else name
        if values.get(key) is None:
            return None
        filled = re.sub(rf"\{{{name}(:\w+)?\}}", str(values[key]), filled)
    return filled


def _values(session: Session, course: Course, student_id: int) -> dict[str, object]:
    """By parameter, or by the first word of the address and parameter; the student's own where it can be."""
    shown = (
        select(Submission)
        .where(
            Submission.course_id == course.id,
            Submission.user_id == student_id,
            Submission.verdict == Verdict.passed,
            Submission.mode == Mode.submission,
        )
        .order_by(Submission.lane.desc(), Submission.number.desc(), Submission.id)
        .limit(1)
    )
    submission = session.scalars(shown).one()
    return {
        "course": course.slug,
        "slug": session.get_one(Assignment, submission.assignment_id).slug,
        "public_id": submission.public_id,
        "handle": session.get_one(User, student_id).handle,
        "user_id": student_id,
        "entry": _one(session, SharedSource, "public_id"),
        "writeups.public_id": _one(session, WriteUp, "public_id"),
        "import_id": _one(session, RosterImport, "public_id"),
        "comparison_id": _one(session, Comparison),
        "pair_id": _one(session, SimilarPair),
        "regrade_id": _one(session, Regrade),
        "request_id": _own(session, RegradeRequest, student_id),
        "announcement_id": _one(session, Announcement),
        "notification_id": _own(session, Notification, student_id),
    }


def _own(session: Session, model: type[Base], user_id: int) -> object:
    columns = model.__table__.c
    return session.scalar(select(columns.id).where(columns.user_id == user_id).order_by(columns.id).limit(1))


def _one(session: Session, model: type[Base], column: str = "id") -> object:
    return session.scalar(select(getattr(model, column)).order_by(*model.__table__.primary_key).limit(1))
