"""What the editor keeps while somebody writes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from autograder.contract import Language
from server import drafts
from server.api.responses import errors
from server.courses import courses
from server.db import now
from server.http.identity import Someone
from server.http.work import Work
from server.models import Draft

router = APIRouter(tags=["drafts"])
_PATH = "/courses/{course}/assignments/{slug}/drafts"


class DraftRead(BaseModel):
    """What somebody wrote and has not handed in."""

    language: Language
    text: str
    revision: Annotated[int, Field(description="Counts how often it was saved.")]
    saved_at: datetime

    @classmethod
    def of(cls, draft: Draft) -> DraftRead:
        """As the API shows it."""
        return cls(language=draft.language, text=draft.text, revision=draft.revision, saved_at=draft.saved_at)


class DraftSave(BaseModel):
    """A text to keep."""

    text: str
    revision: Annotated[int, Field(ge=0, le=2**31 - 2, description="Of the draft that it began from; 0: of none.")] = 0


@router.get(_PATH, responses=errors(401, 404), summary="My drafts")
def read_drafts(course: str, slug: str, who: Someone, work: Work) -> list[DraftRead]:
    """One's own, one for each language that has any; nobody else's, even where a page is looked at as its student."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    if who.preview is not None:
        return []
    return [DraftRead.of(draft) for draft in drafts.drafts_of(work, member.user, detail).values()]


@router.put(f"{_PATH}/{{language}}", responses=errors(401, 403, 404, 409, 413, 422), summary="Keep a draft")
def save_draft(*, course: str, slug: str, language: Language, body: DraftSave, who: Someone, work: Work) -> DraftRead:
    """Store the text; 409 where a newer one was saved meanwhile, which is then left as it is."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    draft = drafts.save(work, member, detail, language=language, text=body.text, revision=body.revision, now=now(work))
    return DraftRead.of(draft)
