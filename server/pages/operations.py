"""Whether everything is accounted for, for staff: courses, alerts, what is in flight, nodes and services."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.datastructures import FormData
from starlette.responses import Response

from server.courses import courses
from server.db import now
from server.errors import InvalidInputError, NotFoundError
from server.http.identity import Identity, Someone
from server.http.work import Settings, Work, database_of
from server.models import Course, Lane, ReconciliationRun, User
from server.nodes import nodes
from server.nodes.nodes import Grant
from server.operations import fleet, overview
from server.operations.overview import NodeAction
from server.pages.forms import SentForm, text, texts
from server.pages.rendering import Slot, render, write
from server.reconciliation import runs as reconciliation
from server.reconciliation.checks import Courses

router = APIRouter(include_in_schema=False)


@router.get("/operations")
def operations_page(request: Request, who: Someone, work: Work) -> Response:
    """The page: an admin sees the installation, the staff of a course what is their course's."""
    return _page(request, work, _scope(work, who))


def _page(request: Request, work: Session, scope: Courses, *, status: int = HTTPStatus.OK, **said: str) -> Response:
    at = now(work)
    return render(
        request,
        "operations.html",
        status=status,
        at=at,
        **{"command": "", "problem": "", **said},
        lanes=list(Lane),
        courses=work.scalars(select(Course).order_by(Course.title)).all() if scope is None else [],
        everything=scope is None,
        sums=sums(reconciliation.last_checks(work, scope), at),
        standings=reconciliation.standings(work, scope),
        leases=reconciliation.live_leases(work, scope),
        alerts=overview.alerts_of(work, scope),
        nodes=overview.nodes_now(work, at) if scope is None else [],
        services=overview.services(work) if scope is None else [],
        rehearsal=overview.last_rehearsal(work),
    )


@router.post("/operations/check", dependencies=[Slot])
def check_now(request: Request, who: Someone) -> Response:
    """Examine one's courses now instead of within a minute."""
    database = database_of(request)
    with database.reading() as session:
        scope = _scope(session, who)
        chosen = [course for course, _ in reconciliation.last_checks(session, scope)]
        found = [(course, reconciliation.examine(session, [course.id])) for course in chosen]
        session.expunge_all()
    for course, accounts in found:
        with database.transaction() as session:
            reconciliation.keep(session, course, accounts)
    return _back()


@router.post("/operations/alerts/{alert_id}/resolve")
def resolve_alert(alert_id: int, who: Someone, work: Work) -> Response:
    """End an alert that one sees."""
    overview.resolve_alert(work, alert_id, _scope(work, who), actor=_actor(work, who), now=now(work))
    return _back("alerts")


@router.post("/operations/nodes/{name}/{action}")
def act_on_node(name: str, action: str, who: Someone, work: Work, config: Settings) -> Response:
    """Drain a node, set it aside, take it out of service, or undo that; admins only."""
    if _scope(work, who) is not None or action not in set(NodeAction):
        raise _nothing()
    overview.act_on_node(work, name, NodeAction(action), actor=_actor(work, who), now=now(work), config=config)
    return _back("nodes")


@router.post("/operations/invites", dependencies=[Slot])
def invite_node(request: Request, who: Someone, config: Settings, form: SentForm) -> Response:
    """Make a code with which a machine joins, and show it this once; admins only."""

    def act(session: Session) -> str:
        name = text(form, "name", 100).strip()
        return fleet.join_command(
            config, name,
            fleet.invite(session, name=name, grant=_grant(session, form), actor=_actor(session, who), now=now(session)),
        )  # fmt: skip

    _require_admin(who)
    try:
        command, problem, status = write(request, act), "", HTTPStatus.CREATED
    except InvalidInputError as error:
        command, problem, status = "", error.message, HTTPStatus.UNPROCESSABLE_ENTITY
    with database_of(request).reading() as session:
        return _page(request, session, None, status=status, command=command, problem=problem)


@router.post("/operations/grants/{name}")
def grant_node(name: str, who: Someone, work: Work, form: SentForm) -> Response:
    """Say what a node may grade from now on; admins only."""
    _require_admin(who)
    fleet.give(work, name=name, grant=_grant(work, form), actor=_actor(work, who))
    return _back("nodes")


def _require_admin(who: Identity) -> None:
    if not who.user.is_admin:
        raise _nothing()


def _grant(session: Session, form: FormData) -> Grant:
    lanes = [Lane(lane) for lane in texts(form, "lanes") if lane in set(Lane)]
    return nodes.make_grant(session, lanes, texts(form, "courses") or None)


@dataclass(frozen=True)
class Sums:
    """What the newest checks of some courses say together.

    Attributes:
        checks: each course's, `None` where there was none.
        balanced: every course was checked lately and nothing was wrong.
        stale: some course was not checked lately.
    """

    received: int
    final: int
    in_flight: int
    checks: tuple[tuple[str, str, ReconciliationRun | None, bool], ...]
    balanced: bool
    stale: bool


def sums(checks: reconciliation.Checks, at: datetime) -> Sums:
    """Add the checks of several courses up."""
    kept = [check for _, check in checks if check is not None]
    stale = any(check is None or reconciliation.is_stale(check, at) for _, check in checks)
    wrong = any(not reconciliation.is_balanced(check) for check in kept)
    return Sums(
        received=sum(check.received for check in kept),
        final=sum(check.final for check in kept),
        in_flight=sum(check.in_flight for check in kept),
        checks=tuple(
            (course.slug, course.title, check, check is None or reconciliation.is_balanced(check))
            for course, check in checks
        ),
        balanced=not stale and not wrong,
        stale=stale,
    )


def _scope(session: Session, who: Identity) -> Courses:
    """The courses that they staff, `None` for an admin; to everybody else there is nothing here."""
    if who.user.is_admin:
        return None
    found = [member.course.id for member in courses.courses_of(session, who.user) if member.is_staff]
    if not found:
        raise _nothing()
    return found


def _nothing() -> NotFoundError:
    return NotFoundError("There is nothing here.")


def _actor(session: Session, who: Identity) -> User:
    return session.get_one(User, who.user.id)


def _back(section: str = "accounts") -> Response:
    return RedirectResponse(f"/operations#{section}", status_code=HTTPStatus.SEE_OTHER)
