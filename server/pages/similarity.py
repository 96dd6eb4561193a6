"""Sources that share fragments: a list for staff to look at, with both sources side by side. Never a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder import codec
from server import db
from server.courses import courses
from server.errors import ConflictError, InvalidInputError, LadderError
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import RowId, Work, database_of
from server.models import ComparisonState, PairMark, User
from server.pages.highlight import Listing, listing
from server.pages.labels import Label
from server.pages.rendering import Slot, render, write
from server.similarity import similarity
from server.similarity.scope import Scope, Which

router = APIRouter(include_in_schema=False)
HOME = "/courses/{course}/similarity"
WHICH: Mapping[Which, str] = {
    Which.latest: "the latest of each student",
    Which.best: "the best of each student",
    Which.every: "all of them",
}
STATES: Mapping[ComparisonState, Label] = {
    ComparisonState.queued: Label("Waiting", "clock"),
    ComparisonState.running: Label("Running", "play", "busy"),
    ComparisonState.done: Label("Done", "check"),
    ComparisonState.failed: Label("Failed", "alert", "care"),
}
MARKS: Mapping[PairMark, Label] = {
    PairMark.none: Label("Not looked at", "dash"),
    PairMark.looked_at: Label("Looked at", "check"),
    PairMark.noted: Label("Noted", "eye", "care"),
}


@dataclass(frozen=True)
class Side:
    """One source of a pair.

    Attributes:
        marked: lines of fragments, with the numbers of those that begin there.
        handed_out: lines that everybody was given.
    """

    listing: Listing
    marked: Mapping[int, str]
    handed_out: frozenset[int]


@router.get(HOME)
def home_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """What was compared, and a form for the next comparison; `?assignment=` chooses of which."""
    return _home(request, work, who.user, course)


@router.post(HOME, dependencies=[Slot])
def start(
    *,
    request: Request,
    course: str,
    who: Someone,
    assignment: Annotated[str, Form()] = "",
    which: Annotated[Which, Form()] = Which.latest,
    courses_: Annotated[list[int], Form(alias="courses")] = [],  # noqa: B006  # FastAPI copies a form's default
    public: Annotated[bool, Form()] = False,
    staff: Annotated[bool, Form()] = False,
) -> Response:
    """Have a comparison done."""

    def act(session: Session) -> int:
        member = courses.staff_of(session, session.get_one(User, who.user.id), course)
        detail = courses.assignment_of(session, member, assignment)
        scope = Scope(which, tuple(sorted(set(courses_))), public, staff)
        return similarity.start(session, member, detail.row, scope, now=db.now(session)).id

    try:
        comparison_id: int = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _home(request, session, who.user, course, problem=error)
    return RedirectResponse(f"/courses/{quote(course)}/similarity/{comparison_id}", status_code=HTTPStatus.SEE_OTHER)


@router.get(HOME + "/{comparison_id}")
def results_page(request: Request, course: str, comparison_id: RowId, who: Someone, work: Work) -> Response:
    """The pairs of a comparison, the most alike first; while it runs, how far it is."""
    member = courses.membership(work, who.user, course)
    comparison = similarity.find(work, member, comparison_id)
    asked = request.query_params
    marked = {"marked": True, "open": False}.get(asked.get("show", ""))
    page = asked.get("page", "1")
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 1  # noqa: PLR2004  # of pages
    return render(
        request,
        "comparison.html",
        member=member,
        course=member.course,
        comparison=comparison,
        scope=codec.from_json(Scope, comparison.scope),
        found=similarity.results(work, member, comparison, page=number, marked=marked),
        show=asked.get("show", ""),
        **_words(),
    )


@router.get(HOME + "/pairs/{pair_id}", dependencies=[Turn])
def pair_page(request: Request, course: str, pair_id: RowId, who: Someone, work: Work) -> Response:
    """Both sources, what they share marked, what everybody was given in grey."""
    return _pair(request, work, who.user, course, pair_id)


@router.post(HOME + "/pairs/{pair_id}", dependencies=[Slot])
def mark_pair(
    *,
    request: Request,
    course: str,
    pair_id: RowId,
    who: Someone,
    mark: Annotated[PairMark, Form()],
    revision: Annotated[int, Form(ge=0, le=2**31 - 1)],
    reason: Annotated[str, Form()] = "",
) -> Response:
    """Say that somebody looked."""

    def act(session: Session) -> int:
        member = courses.staff_of(session, session.get_one(User, who.user.id), course)
        row = similarity.mark(session, member, pair_id, mark, reason=reason, revision=revision, now=db.now(session))
        return row.comparison_id

    try:
        comparison_id: int = write(request, act)
    except (ConflictError, InvalidInputError) as error:
        with database_of(request).reading() as session:
            return _pair(request, session, who.user, course, pair_id, problem=error, reason=reason)
    return RedirectResponse(
        f"/courses/{quote(course)}/similarity/{comparison_id}?show=open", status_code=HTTPStatus.SEE_OTHER
    )


def _home(
    request: Request, session: Session, user: User, course: str, *, problem: LadderError | None = None
) -> Response:
    member = courses.staff_of(session, user, course)
    details = courses.assignments_of(session, member, db.now(session))
    asked = request.query_params.get("assignment", "")
    chosen = next((detail for detail in details if detail.slug == asked), details[0] if details else None)
    return render(
        request,
        "similarity.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        details=details,
        chosen=chosen,
        cohorts=similarity.cohorts(session, member, chosen.slug) if chosen else (),
        comparisons=similarity.of_course(session, member),
        problem=problem,
        **_words(),
    )


def _pair(
    request: Request,
    session: Session,
    user: User,
    course: str,
    pair_id: int,
    *,
    problem: LadderError | None = None,
    reason: str = "",
) -> Response:
    member = courses.membership(session, user, course)
    found = similarity.evidence(session, member, pair_id)
    pair, where = found.pair, found.matches
    language = pair.left.language.value
    return render(
        request,
        "pair.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        pair=pair,
        comparison=pair.comparison,
        left=_side(found.left, language, where.left, where.left_handed_out),
        right=_side(found.right, language, where.right, where.right_handed_out),
        problem=problem,
        reason=reason or pair.reason,
        **_words(),
    )


def _side(source: str, language: str, fragments: Sequence[tuple[int, int, int]], handed_out: Sequence[int]) -> Side:
    marked: dict[int, dict[int, None]] = {}
    for number, first, last in fragments:
        for line in range(first, last + 1):
            marked.setdefault(line, {})[number] = None
    names = {line: ", ".join(str(number) for number in sorted(numbers)) for line, numbers in marked.items()}
    # The number stands where a fragment begins; further down it would only repeat.
    begins = {line: name if name != names.get(line - 1) else "" for line, name in names.items()}
    return Side(listing(source, language), begins, frozenset(handed_out))


def _words() -> dict[str, Any]:
    return {"which": WHICH, "states": STATES, "marks": MARKS}
