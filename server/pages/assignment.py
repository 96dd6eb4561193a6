"""An assignment: the handout beside the editor, and handing something in."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, TypeVar

from fastapi import APIRouter, Form, Request, UploadFile
from fastapi.responses import RedirectResponse
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.assignment import EXTENSIONS, content_hash
from autograder.contract import Lane, Language, Mode
from server import db, drafts
from server.courses import courses, quotas
from server.courses.courses import AssignmentDetail, Membership
from server.courses.quotas import Left
from server.errors import InvalidInputError, LadderError, NotFoundError
from server.gradebook import queries as gradebook
from server.gradebook.grade_inputs import Facts
from server.gradebook.queries import Charge
from server.groups import groups, views
from server.http.identity import Someone
from server.http.work import Settings, Work, arrived_at, database_of
from server.models import Submission, User
from server.nodes import nodes
from server.pages import begun_with
from server.pages.help import sections
from server.pages.highlight import listing
from server.pages.markdown import handout_html
from server.pages.points_note import speed_note
from server.pages.progress import climb, late_days
from server.pages.rendering import Slot, render, write
from server.submissions import submissions

router = APIRouter(include_in_schema=False)
ASSIGNMENT = "/courses/{course}/assignments/{slug}"
_WORD = TypeVar("_WORD", Lane, Language, Mode)


@dataclass(frozen=True)
class Allowance:
    """How much may be handed in: the limits per minute, and what is left of the assignment's own; staff have none."""

    runs_per_minute: int
    submissions_per_minute: int
    left: Left | None


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
    last = begun_with.last_of(work, member, detail)
    return _page(request, work, member, detail, begun_with.first(work, member, detail, version, last), last=last)


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
    request_key: Annotated[str, Form()] = "",
    file: UploadFile | None = None,
) -> Response:
    """Store a source and go to its page. What cannot be taken comes back with the reason, the text where it was.

    What is sent again with its `request_key`, because its answer was lost, is stored once.
    """
    # Browsers send the lines of a text area with CR LF; a file travels as it is.
    text = source.replace("\r\n", "\n")
    named = file is not None and bool(file.filename)

    def act(session: Session) -> str:
        member = courses.membership(session, who.user, course)
        content = file.file.read() if file and named else _encoded(text)
        submission = submissions.submit(
            session,
            membership=member,
            assignment=slug,
            mode=_word(Mode, mode, "mode"),
            lane=_word(Lane, lane, "lane"),
            language=(chosen := _word(Language, language, "language")),
            filename=file.filename or "" if file and named else f"{slug}.{EXTENSIONS[chosen]}",
            source=content,
            config=config,
            now=arrived_at(request, session),
            trace=request.state.trace,
            request_key=_request_key(request_key, (course, slug, mode, lane, language), content),
        )
        return submission.public_id

    try:
        public_id = write(request, act)
    except NotFoundError:
        raise
    except LadderError as error:
        return _refused(request, who.user, error, (text, language, lane))
    return RedirectResponse(f"/submissions/{public_id}", status_code=HTTPStatus.SEE_OTHER)


def _request_key(key: str, meant: tuple[str, ...], content: bytes) -> str | None:
    """The key of what this form holds: a page that somebody goes back to has the old key, and may hold another text."""
    if not key:
        return None
    return hashlib.sha256(json.dumps([key, *meant, content_hash(content)]).encode()).hexdigest()


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"Character {error.start + 1:,} of the text is half a surrogate pair, which is not a character."
        raise InvalidInputError(message, field="source") from None


def _word(kind: type[_WORD], value: str, field: str) -> _WORD:
    try:
        return kind(value)
    except ValueError:
        raise InvalidInputError(f"{field} is not one of {', '.join(kind)}.", field=field) from None


def _refused(request: Request, user: User, problem: LadderError, sent: tuple[str, str, str]) -> Response:
    """The page again, with what was sent and why it was not taken."""
    text, language, lane = sent
    with database_of(request).reading() as session:
        member = courses.membership(session, user, request.path_params["course"])
        detail = courses.assignment_of(session, member, request.path_params["slug"])
        last = begun_with.last_of(session, member, detail)
        first = begun_with.first(session, member, detail, None, last)
        begun = begun_with.Begun(
            language=Language(language) if language in list(Language) else first.language,
            lane=Lane(lane) if lane in list(Lane) else first.lane,
            source=text,
            origin="",
            kept=bool(text),
        )
        return _page(request, session, member, detail, begun, last=last, problem=problem)


def _page(
    request: Request,
    session: Session,
    member: Membership,
    detail: AssignmentDetail,
    begun: begun_with.Begun,
    *,
    last: Submission | None,
    problem: LadderError | None = None,
) -> Response:
    now = db.now(session)
    # What somebody has not handed in is theirs alone: who looks as a student does sees no draft.
    stored = {} if request.state.identity.preview else drafts.drafts_of(session, member.user, detail)
    facts = gradebook.facts_for(session, member.course, member.user.id)
    standing = gradebook.standing_of(session, facts, member.user.id)
    in_service = nodes.lanes_in_service(session, now=now, course_id=member.course.id)
    response = render(
        request,
        "assignment.html",
        status=problem.status if problem else HTTPStatus.OK,
        member=member,
        course=member.course,
        detail=detail,
        spec=detail.spec,
        handout=handout_html(detail.handout),
        sections=sections(detail.handout),
        reading=listing(detail.reading, "python"),
        draft=begun_with.newest(begun, stored),
        texts=begun_with.texts(detail, begun, stored),
        problem=problem,
        rung=climb(session, member, [detail], now, standing)[0],
        in_service=in_service,
        speed_note=speed_note([detail], in_service),
        served=nodes.served_lanes(session, now=now, course_id=member.course.id),
        is_late=detail.is_late(now),
        is_closed=detail.is_closed(now) and not member.is_staff,
        late=_late(facts, member, detail, now),
        late_days=late_days(standing),
        allowance=_allowance(request, session, member, detail, now),
        group=views.view(session, detail, member.user) if detail.row.group_size > 1 else None,
        last=last,
        request_key=secrets.token_hex(16),
    )
    if retry_after_s := getattr(problem, "retry_after_s", None):
        response.headers["retry-after"] = str(round(retry_after_s + 0.5))
    return response


def _late(facts: Facts, member: Membership, detail: AssignmentDetail, now: datetime) -> Charge | None:
    """What submitting now would cost; `None` while it costs nothing."""
    if member.is_staff or not detail.is_late(now):
        return None
    return gradebook.would_charge(facts, detail.row, member.user.id, now)


def _allowance(
    request: Request, session: Session, member: Membership, detail: AssignmentDetail, now: datetime
) -> Allowance:
    config = request.app.state.config
    left = None
    if not member.is_staff:
        together = groups.together(session, detail.row.id, member.user.id)
        left = quotas.left(session, detail.row, member.user.id, now, together=together)
    return Allowance(config.run_quota_per_minute, config.submit_quota_per_minute, left)
