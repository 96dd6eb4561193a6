"""Files that attempts left, for the staff of their course."""

from __future__ import annotations

from fastapi import APIRouter, Response

from server.api.nodes import AttemptId, FileName
from server.api.responses import errors
from server.api.schemas import ArtefactRead
from server.errors import NotFoundError
from server.grading import interface as grading
from server.http.attachments import attachment
from server.http.identity import Identity, Someone
from server.http.work import Work
from server.models import Artefact
from server.submissions import submissions

router = APIRouter(tags=["artefacts"])

_TYPE = "application/octet-stream"


@router.get("/attempts/{attempt}/artefacts", responses=errors(401, 403, 404, 422), summary="What an attempt left")
def list_artefacts(attempt: AttemptId, who: Someone, work: Work) -> list[ArtefactRead]:
    """By name; for staff."""
    return [ArtefactRead.model_validate(item) for item in _of_staff(work, who, attempt)]


@router.get(
    "/attempts/{attempt}/artefacts/{name}",
    response_class=Response,
    responses={200: {"content": {_TYPE: {}}, "description": "The file."}, **errors(401, 403, 404, 422)},
    summary="A file that an attempt left",
)
def read_artefact(attempt: AttemptId, name: FileName, who: Someone, work: Work) -> Response:
    """The bytes, never to be shown in place: an attempt may have written anything."""
    for item in _of_staff(work, who, attempt):
        if item.name == name:
            headers = {**attachment(item.name), "x-content-type-options": "nosniff"}
            return Response(grading.data_of(work, item), media_type=_TYPE, headers=headers)
    raise NotFoundError("This attempt has no such file.")


def _of_staff(work: Work, who: Identity, attempt: str) -> list[Artefact]:
    submission, found = grading.artefacts_of(work, attempt)
    if not submissions.is_staff_of(work, who.user, submission):
        raise NotFoundError("There is no such attempt.")
    return list(found)
