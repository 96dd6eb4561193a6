"""Every submission of a course, for its staff: found by what it is, and chosen for a regrade."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.datastructures import QueryParams
from starlette.responses import Response

from server.courses import courses
from server.errors import InvalidInputError
from server.http.identity import Someone
from server.http.work import Work
from server.models import Lane, Language, Mode, Review, State, Verdict
from server.pages.rendering import render
from server.submissions import listing
from server.submissions.listing import Filter

router = APIRouter(include_in_schema=False)
W = TypeVar("W", bound=StrEnum)
NO_SECTION = "-"
"""In an address: those who are in no section."""


@router.get("/courses/{course}/submissions")
def list_page(request: Request, course: str, who: Someone, work: Work) -> Response:
    """The list; what is asked for stands in the address."""
    member = courses.staff_of(work, who.user, course)
    asked = request.query_params
    wanted = filter_of(asked)
    found = listing.page(work, member, wanted, before=asked.get("before", ""), after=asked.get("after", ""))
    return render(
        request,
        "submissions_list.html",
        member=member,
        course=member.course,
        wanted=wanted,
        found=found,
        choices=listing.choices(work, member),
        no_section=NO_SECTION,
        kept=kept(wanted),
        enums={"states": State, "verdicts": Verdict, "reviews": Review, "lanes": Lane, "languages": Language,
               "modes": Mode},
    )  # fmt: skip


def filter_of(asked: QueryParams) -> Filter:
    """What an address asks for.

    Raises:
        InvalidInputError: a word in it is none of those that there are.
    """
    section = asked.get("section", "")
    return Filter(
        assignment=asked.get("assignment", "")[:60],
        student=asked.get("student", "").strip()[: listing.MAX_STUDENT_CHARS],
        section=("" if section == NO_SECTION else section) if section else None,
        verdict=_word(Verdict, asked, "verdict"),
        state=_word(State, asked, "state"),
        review=_word(Review, asked, "review"),
        lane=_word(Lane, asked, "lane"),
        language=_word(Language, asked, "language"),
        mode=_word(Mode, asked, "mode"),
    )


def kept(wanted: Filter) -> str:
    """The same as the end of an address, without the place: `verdict=passed&`, or nothing."""
    given = {name: value for name, value in vars(wanted).items() if value}
    if wanted.section is not None:
        given["section"] = wanted.section or NO_SECTION
    return urlencode(given) + "&" if given else ""


def _word(words: type[W], asked: QueryParams, name: str) -> W | None:
    text = asked.get(name, "")
    if not text:
        return None
    try:
        return words(text)
    except ValueError:
        raise InvalidInputError(f"There is no {name} {text[:40]!r}.", field=name) from None
