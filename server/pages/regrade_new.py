"""The form that drafts a proposal to grade again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from server import db
from server.courses import courses
from server.courses.courses import Membership
from server.errors import InvalidInputError, LadderError, NotFoundError
from server.http.identity import Someone
from server.http.work import Work, database_of
from server.models import Lane, Regrade, RegradeKind, Verdict
from server.pages import regrade_words
from server.pages.forms import course_path
from server.pages.rendering import Slot, render, write
from server.regrades import proposing
from server.regrades.selection import Selection, Which
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
BASE = "/courses/{course}/regrades"


@dataclass(frozen=True)
class Typed:
    """The form as it was filled in, and what could not be taken."""

    assignment: str = ""
    kind: RegradeKind = RegradeKind.rerun
    version: str = ""
    which: Which = Which.counting
    lane: str = ""
    verdicts: tuple[str, ...] = ()
    picked: str = ""
    reason: str = ""
    may_lower: bool = False
    tell: bool = True
    problems: Mapping[str, str] = field(default_factory=dict)


@router.get(f"{BASE}/new")
def form_page(
    *,
    request: Request,
    course: str,
    who: Someone,
    work: Work,
    assignment: Annotated[str, Query(max_length=60)] = "",
    selection: Which = Which.counting,
    picked: Annotated[list[str], Query()] = [],  # noqa: B006  # FastAPI copies a query's default
) -> Response:
    """The form; the list of submissions sends here who picked some of them."""
    member = courses.staff_of(work, who.user, course)
    names = [name[:26] for name in picked[:500]]
    if names and not assignment:
        assignment = submissions.find(work, who.user, names[0]).assignment.slug
    which = Which.picked if names else selection
    return _form(request, work, member, Typed(assignment=assignment, which=which, picked="\n".join(names)))


@router.post(BASE, dependencies=[Slot])
def propose(
    *,
    request: Request,
    course: str,
    who: Someone,
    assignment: Annotated[str, Form(max_length=60)] = "",
    kind: Annotated[RegradeKind, Form()] = RegradeKind.rerun,
    version: Annotated[str, Form(max_length=10)] = "",
    which: Annotated[Which, Form()] = Which.counting,
    lane: Annotated[str, Form(max_length=20)] = "",
    verdict: Annotated[list[Verdict], Form()] = [],  # noqa: B006  # FastAPI copies a form's default
    picked: Annotated[str, Form(max_length=40_000)] = "",
    reason: Annotated[str, Form(max_length=20_000)] = "",
    may_lower: Annotated[bool, Form()] = False,
    tell: Annotated[bool, Form()] = False,
) -> Response:
    """Draft one; what cannot be taken comes back beside its field."""
    typed = Typed(
        assignment, kind, version, which, lane, tuple(verdict), picked, reason, may_lower=may_lower, tell=tell
    )

    def act(session: Session) -> int:
        member = courses.staff_of(session, who.user, course)
        return _propose(session, member, typed).id

    try:
        made: int = write(request, act)
    except InvalidInputError as error:
        with database_of(request).reading() as session:
            problems = {error.field: error.message}
            refused = Typed(**{**typed.__dict__, "problems": problems})
            return _form(request, session, courses.staff_of(session, who.user, course), refused, status=error.status)
    return RedirectResponse(f"{course_path(course)}/regrades/{made}", status_code=HTTPStatus.SEE_OTHER)


def _propose(session: Session, member: Membership, typed: Typed) -> Regrade:
    now = db.now(session)
    try:
        detail = courses.assignment_of(session, member, typed.assignment, now)
    except NotFoundError:
        raise InvalidInputError("Choose an assignment.", field="assignment") from None
    return proposing.propose(
        session,
        member,
        detail.row,
        kind=typed.kind,
        selection=_selection(typed),
        reason=typed.reason,
        now=now,
        version=_version(typed.version),
        may_lower=typed.may_lower,
        tell=typed.tell,
    )


def _selection(typed: Typed) -> Selection:
    if typed.lane and typed.lane not in {lane.value for lane in Lane}:
        raise InvalidInputError("There is no such lane.", field="lane")
    picked = tuple(dict.fromkeys(typed.picked.replace(",", " ").split())) if typed.which is Which.picked else ()
    verdicts = tuple(Verdict(name) for name in typed.verdicts) if typed.which is Which.verdict else ()
    return Selection(typed.which, Lane(typed.lane) if typed.lane else None, verdicts, picked)


def _version(typed: str) -> int | None:
    if not typed.strip():
        return None
    if not typed.strip().isdecimal():
        raise InvalidInputError("A version is a number; leave it empty for the current one.", field="version")
    return int(typed)


def _form(
    request: Request, session: Session, member: Membership, typed: Typed, *, status: int = HTTPStatus.OK
) -> Response:
    details = courses.assignments_of(session, member, db.now(session))
    return show_page(
        request, "regrade_new.html", member, status=status, typed=typed, details=details, whiches=Which,
        kinds=RegradeKind, verdicts=[verdict for verdict in Verdict if verdict is not Verdict.grader_error], lanes=Lane,
    )  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """What could not be done; `field` is `""` where it is about no field."""

    message: str
    field: str


def problem_of(error: LadderError | None) -> Problem | None:
    """A refusal as a page shows it."""
    return Problem(error.message, getattr(error, "field", "")) if error is not None else None


def show_page(
    request: Request, name: str, member: Membership, *, status: int = HTTPStatus.OK, **context: Any
) -> Response:
    """A page of regrades, with their words."""
    return render(request, name, status=status, member=member, course=member.course, said=regrade_words, **context)
