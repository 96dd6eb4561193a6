"""An assignment: the handout beside the editor, and handing something in."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, TypeVar

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.assignment import EXTENSIONS
from autograder.contract import Lane, Language, Mode
from server import db
from server.courses import service as courses
from server.courses.service import AssignmentDetail, Membership
from server.errors import InvalidInputError, LadderError, NotFoundError
from server.http.identity import Someone
from server.http.work import Settings, Work, arrived_at, database_of
from server.models import Submission, User
from server.nodes import service as nodes
from server.pages.markdown import handout_html
from server.pages.progress import climb
from server.pages.rendering import Slot, render, write
from server.submissions import service as submissions

router = APIRouter(include_in_schema=False)
ASSIGNMENT = "/courses/{course}/assignments/{slug}"
HISTORY_ROWS = 50
_WORD = TypeVar("_WORD", Lane, Language, Mode)


@dataclass(frozen=True)
class Draft:
    """What stands in the form.

    Attributes:
        at: when the text was handed in, in seconds; a draft in the browser that is newer wins. 0 for a starter.
        kept: the text was sent and refused, or asked for by name: no draft may replace it.
    """

    language: Language
    lane: Lane
    source: str
    origin: str
    at: float = 0.0
    kept: bool = False


@router.get(ASSIGNMENT)
def assignment_page(
    *,
    request: Request,
    course: str,
    slug: str,
    who: Someone,
    work: Work,
    version: str | None = None,
) -> Response:
    """The page; `version` is a submission whose text to begin with."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    return _page(request, work, member, detail, _first_draft(work, member, detail, version))


@router.post(ASSIGNMENT + "/submissions", dependencies=[Slot])
def submit(
    *,
    request: Request,
    course: str,
    slug: str,
    who: Someone,
    config: Settings,
    mode: Annotated[str, Form()] = Mode.submission.value,
    language: Annotated[str, Form()] = "",
    lane: Annotated[str, Form()] = "",
    source: Annotated[str, Form()] = "",
    file: UploadFile | None = None,
) -> Response:
    """Store a source and go to its page. What cannot be taken comes back with the reason, the text where it was."""
    # Browsers send the lines of a text area with CR LF; a file travels as it is.
    text = source.replace("\r\n", "\n")
    named = file is not None and bool(file.filename)

    def act(session: Session) -> str:
        member = courses.membership(session, who.user, course)
        submission = submissions.submit(
            session,
            membership=member,
            assignment=slug,
            mode=_word(Mode, mode, "mode"),
            lane=_word(Lane, lane, "lane"),
            language=(chosen := _word(Language, language, "language")),
            filename=file.filename or "" if file and named else f"{slug}.{EXTENSIONS[chosen]}",
            source=file.file.read() if file and named else _encoded(text),
            config=config,
            now=arrived_at(request, session),
            trace=request.state.trace,
        )
        return submission.public_id

    try:
        public_id = write(request, act)
    except NotFoundError:
        raise
    except LadderError as error:
        return _refused(request, who.user, error, (text, language, lane))
    return RedirectResponse(f"/submissions/{public_id}", status_code=HTTPStatus.SEE_OTHER)


@router.get(ASSIGNMENT + "/submissions")
def history_page(
    *, request: Request, course: str, slug: str, who: Someone, work: Work, before: str | None = None
) -> Response:
    """Submissions and runs, newest first; a student's own, everybody's for staff."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    rows = submissions.history(work, member, assignment=slug, before=before, limit=HISTORY_ROWS + 1)
    return render(
        request,
        "history.html",
        member=member,
        course=member.course,
        detail=detail,
        rows=rows[:HISTORY_ROWS],
        before=rows[HISTORY_ROWS - 1].public_id if len(rows) > HISTORY_ROWS else None,
    )


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"Character {error.start + 1:,} of the text is half a surrogate pair, which is no character."
        raise InvalidInputError(message, field="source") from None


def _word(kind: type[_WORD], value: str, field: str) -> _WORD:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInputError(f"{field} is none of {', '.join(kind)}.", field=field) from None


def _refused(request: Request, user: User, problem: LadderError, sent: tuple[str, str, str]) -> Response:
    """The page again, with what was sent and why it was not taken."""
    text, language, lane = sent
    with database_of(request).reading() as session:
        member = courses.membership(session, user, request.path_params["course"])
        detail = courses.assignment_of(session, member, request.path_params["slug"])
        first = _first_draft(session, member, detail, None)
        draft = Draft(
            language=Language(language) if language in list(Language) else first.language,
            lane=Lane(lane) if lane in list(Lane) else first.lane,
            source=text,
            origin="",
            kept=bool(text),
        )
        return _page(request, session, member, detail, draft, problem=problem)


def _page(
    request: Request,
    session: Session,
    member: Membership,
    detail: AssignmentDetail,
    draft: Draft,
    *,
    problem: LadderError | None = None,
) -> Response:
    now = db.now(session)
    config = request.app.state.config
    response = render(
        request,
        "assignment.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        detail=detail,
        spec=detail.spec,
        handout=handout_html(detail.handout),
        draft=draft,
        problem=problem,
        rung=climb(session, member, [detail], now)[0],
        in_service=nodes.lanes_in_service(session, now=now),
        is_late=detail.is_late(now),
        is_closed=detail.is_closed(now) and not member.is_staff,
        run_quota=config.run_quota_per_minute,
        submit_quota=config.submit_quota_per_minute,
        last=next(iter(_own(session, member, detail, limit=1)), None),
    )
    if retry_after_s := getattr(problem, "retry_after_s", None):
        response.headers["retry-after"] = str(round(retry_after_s + 0.5))
    return response


def _own(session: Session, member: Membership, detail: AssignmentDetail, *, limit: int) -> list[Submission]:
    return submissions.history(session, member, assignment=detail.slug, user=member.user, limit=limit)


def _first_draft(session: Session, member: Membership, detail: AssignmentDetail, version: str | None) -> Draft:
    """What to begin with: the version that was asked for, else what was last handed in, else the starter."""
    if version is not None:
        return _draft_of(session, submissions.find(session, member.user, version), kept=True)
    for submission in _own(session, member, detail, limit=1):
        return _draft_of(session, submission, kept=False)
    language = detail.spec.languages[0]
    return Draft(language, _first_lane(session, detail), detail.starters.get(language.value, ""), "the starter")


def _draft_of(session: Session, submission: Submission, *, kept: bool) -> Draft:
    source = submissions.source_of(session, submission).decode("utf-8", "replace")
    word = "run" if submission.mode is Mode.run else "submission"
    return Draft(
        submission.language,
        submission.lane,
        source,
        f"{word} {submission.number}",
        at=submission.uploaded_at.timestamp(),
        kept=kept,
    )


def _first_lane(session: Session, detail: AssignmentDetail) -> Lane:
    """The first lane on which something could be graded now, else the first that there is."""
    in_service = nodes.lanes_in_service(session, now=db.now(session))
    available = [lane for lane in detail.lanes if lane in in_service]
    return next(iter([*available, *detail.lanes]), Lane.cpu)
