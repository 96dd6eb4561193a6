"""What happened in a course: who changed what, when and why, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import audit
from server.audit import PAGE, Entry
from server.courses import courses
from server.errors import InvalidInputError
from server.http.identity import Someone
from server.http.work import Work
from server.models import Assignment, Enrolment
from server.pages import formats
from server.pages.rendering import render
from server.roster import picking, roster

router = APIRouter(include_in_schema=False)
PATH = "/courses/{course}/audit"
_LARGEST = 2**31 - 1

SAID: Mapping[str, str] = {
    "assignment.dates_set": "Dates were changed",
    "assignment.versioned": "A new version of the files",
    "course.created": "The course was created",
    "course.late_policy_set": "The late policy was changed",
    "enrolment.set": "Enrolled",
    "extension.given": "An extension was given",
    "extension.withdrawn": "An extension was withdrawn",
    "grade.overridden": "Points were overridden",
    "grade.override_undone": "An override was undone",
    "grades.published": "Grades were published",
    "grades.withdrawn": "Grades were withdrawn",
    "late_days.granted": "Late days were given or taken",
    "quiz.versioned": "A new version of the questions",
    "shared_source.closed": "A source is no longer shared on the leaderboard",
    "shared_source.opened": "A source was shared on the leaderboard",
    "submission.best_chosen": "The best submission counts again",
    "submission.chosen": "The student chose which submission counts",
}
"""What an action is called; any other one is its own words."""
_WORDS = {"due_at": "due", "late_until": "closes", "open_at": "opens"}
_NONE = {"due_at": "no due date", "late_until": "never closes"}
"""What it means where nothing is said."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d")
_QUIET = frozenset({"user", "assignment", "submission", "course", "bundle", "students", "version", "quiz"})
"""Parts of a detail that are shown in another way, or say nothing to a reader."""


@router.get(PATH)
def audit_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    work: Work,
    user: Annotated[str, Query(max_length=20)] = "",
    student: Annotated[str, Query(max_length=254)] = "",
    assignment: Annotated[str, Query(max_length=60)] = "",
    before: Annotated[int | None, Query(ge=1, le=2**62)] = None,
) -> Response:
    """The log, the newest first; of one person, of one assignment.

    `user` is a person's id, as links have it; `student` is what somebody typed.
    """
    member = courses.staff_of(work, who.user, course)
    people, rungs = roster.students(work, member.course.id, even_dropped=True), _rungs(work, member.course.id)
    about_id, problem = int(user) if user.isascii() and user.isdigit() and int(user) <= _LARGEST else None, ""
    if student.strip():
        try:
            about_id = picking.one(people, student, field="student")
        except InvalidInputError as error:
            about_id, problem = None, error.message
    rung_id = next((row.id for row in rungs if row.slug == assignment), None)
    found: Sequence[Entry] = []
    if not problem:
        found = audit.log_of(
            work, member.course.id, about_id=about_id, assignment_id=rung_id, before=before, limit=PAGE + 1
        )
    return render(
        request,
        "audit.html",
        member=member,
        course=member.course,
        entries=found[:PAGE],
        next_before=found[PAGE - 1].row.id if len(found) > PAGE else None,
        is_first=before is None,
        people=people,
        rungs=rungs,
        asked={"user": about_id, "assignment": assignment if rung_id else ""},
        typed=student if problem else _email(people, about_id),
        problem=problem,
        sentence_of=sentence_of,
    )


def sentence_of(entry: Entry, zone: str) -> str:
    """What was done: `Points were overridden: 7 → 9`; times on the clock in `zone`."""
    action, detail = entry.row.action, dict(entry.row.detail)
    said = SAID.get(action) or action.replace(".", " ").replace("_", " ").capitalize()
    change = [_change(detail.pop("before"), detail.pop("after"), zone)] if _is_change(detail) else []
    parts = [*change, *(_part(name, value, zone) for name, value in detail.items() if name not in _QUIET)]
    found = [part for part in parts if part]
    return f"{said}: {', '.join(found)}" if found else said


def _is_change(detail: Mapping[str, Any]) -> bool:
    return detail.get("before") is not None and detail.get("after") is not None


def _part(name: str, value: Any, zone: str) -> str:
    """One thing of a detail: `late penalty 0.2`, `late days 5 → 3`; nothing where it says nothing."""
    word = _WORDS.get(name) or name.replace("_", " ")
    if value is None or value in ("", [], {}):
        return _NONE.get(name, "")
    if isinstance(value, bool):
        return word if value else f"not {word}"
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004  # before and after
        return f"{word} {_change(value[0], value[1], zone)}"
    if isinstance(value, dict):
        return ", ".join(part for part in (_part(key, inner, zone) for key, inner in value.items()) if part)
    return f"{word} {_plain(value, zone)}"


def _change(before: Any, after: Any, zone: str) -> str:
    return f"{_plain(before, zone)} → {_plain(after, zone)}"


def _plain(value: Any, zone: str) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return formats.points(value)
    if isinstance(value, list):
        return ", ".join(_plain(one, zone) for one in value)
    text = str(value)[:200]
    return formats.moment(datetime.fromisoformat(text), zone) if _TIME.fullmatch(text) else text


def _email(people: Sequence[Enrolment], user_id: int | None) -> str:
    """What the field says of the person whose entries are shown."""
    return next((row.user.email for row in people if row.user_id == user_id), "")


def _rungs(session: Session, course_id: int) -> list[Assignment]:
    query = select(Assignment).where(Assignment.course_id == course_id).order_by(Assignment.rung, Assignment.slug)
    return list(session.scalars(query))
