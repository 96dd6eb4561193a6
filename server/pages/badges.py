"""Badges: a public board's record, or a place on it, as a small picture for another page."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from autograder.contract import Lane, Language
from server import db
from server.errors import NotFoundError
from server.http.templates import clip
from server.http.work import Work
from server.leaderboard.badges import Badge, badge
from server.leaderboard.viewer import Wish
from server.pages import labels
from server.pages.formats import ratio
from server.pages.rendering import fragment

router = APIRouter(include_in_schema=False)
KEPT_S = 300
"""So long may anybody keep a badge."""
_CHARACTER, _PAD = 6.6, 7.0
"""Units: of a character of the badge's font on the average, and beside a text."""
_MOST = 48


@dataclass(frozen=True)
class Drawn:
    """A badge's two texts with their widths, in units."""

    label: str
    value: str
    left: float
    right: float
    pad: float = _PAD

    @property
    def width(self) -> float:
        """Of both."""
        return self.left + self.right


@router.get("/badge/{course}/{slug}.svg")
def record_badge(
    *,
    request: Request,
    course: str,
    slug: str,
    work: Work,
    lane: Annotated[str, Query()] = "",
    language: Annotated[str, Query()] = "",
) -> Response:
    """The record of a board."""
    return _picture(request, badge(work, course, slug, db.now(work), _wish(lane, language)))


@router.get("/badge/{course}/{slug}/{handle}.svg")
def place_badge(
    *,
    request: Request,
    course: str,
    slug: str,
    handle: str,
    work: Work,
    lane: Annotated[str, Query()] = "",
    language: Annotated[str, Query()] = "",
) -> Response:
    """Somebody's place, by their pseudonym."""
    return _picture(request, badge(work, course, slug, db.now(work), _wish(lane, language), handle=handle))


def drawn(found: Badge) -> Drawn:
    """The texts of a badge, and how wide they are."""
    label = f"{clip(found.title, _MOST)} · {labels.LANES[found.lane]}"
    return Drawn(label, value := _value(found), _width(label), _width(value))


def _value(found: Badge) -> str:
    if found.entry is None:
        return "no record yet"
    said = ratio(found.entry.ratio)
    return f"record {said}" if found.is_record else f"rank {found.entry.rank} of {found.of} · {said}"


def _width(text: str) -> float:
    return round(len(text) * _CHARACTER + 2 * _PAD, 1)


def _picture(request: Request, found: Badge) -> Response:
    text = fragment(request, "badge.svg", badge=drawn(found))
    tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
    headers = {
        "cache-control": f"public, max-age={KEPT_S}",
        "etag": tag,
        # Other sites show it; that is what it is for.
        "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(text, media_type="image/svg+xml", headers=headers)


def _wish(lane: str, language: str) -> Wish:
    if lane and lane not in list(Lane):
        raise NotFoundError("There is no such lane.")
    if language and language not in list(Language):
        raise NotFoundError("There is no such language.")
    return Wish(Lane(lane) if lane else None, Language(language) if language else None)
