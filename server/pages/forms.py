"""What form pages share: forms with as many fields as a course has rungs, and going back with what was done."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Depends, Query, Request
from fastapi.responses import RedirectResponse
from pydantic import BaseModel
from starlette.datastructures import FormData

_MINUS = "-\N{MINUS SIGN}"
MOST_FIELDS = 4000
"""For routes whose form has a row of fields for each rung."""


async def _sent_form(request: Request) -> FormData:
    return await request.form()


SentForm = Annotated[FormData, Depends(_sent_form)]
"""Every field of a form, for those whose names depend on what the course has."""


def text(form: FormData, name: str, most: int = 4000) -> str:
    """A field's text; `""` where there is none, or a file."""
    value = form.get(name, "")
    return value[:most] if isinstance(value, str) else ""


def texts(form: FormData, name: str) -> list[str]:
    """All texts of a field that may be sent several times."""
    return [value for value in form.getlist(name) if isinstance(value, str)]


def whole(value: str, otherwise: int = -1) -> int:
    """A number in a hidden field; one that somebody else made up is `otherwise`."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else otherwise  # noqa: PLR2004  # 32 bits


def signed(value: str) -> int | None:
    """A number that somebody types with or without one sign; `None` for what is none."""
    value = value.strip()
    below = value.startswith(tuple(_MINUS))
    number = whole(value[1:] if below or value.startswith("+") else value)
    if number < 0:
        return None
    return -number if below else number


def back(path: str, done: str = "", *, count: int | None = None, anchor: str = "", **params: str) -> RedirectResponse:
    """To a page of ours that says what was done: a word that `said` knows there, and how many."""
    asked = {**params, **({"done": done} if done else {}), **({"count": str(count)} if count is not None else {})}
    query = f"?{urlencode(asked)}" if asked else ""
    return RedirectResponse(f"{path}{query}{f'#{anchor}' if anchor else ''}", status_code=HTTPStatus.SEE_OTHER)


class Done(BaseModel):
    """What the address says was done; only words that a page knows are shown, never text from the address."""

    done: str = ""
    count: int = 0

    def said(self, messages: Mapping[str, str]) -> str:
        """The sentence, `""` for none. In a message `{}` stands for how many."""
        return messages.get(self.done, "").format(min(max(self.count, 0), 10**6))


WhatWasDone = Annotated[Done, Query()]


def course_path(course: str, below: str = "") -> str:
    """The address of a course's page."""
    return f"/courses/{quote(course)}{below}"
