"""A submission: where it is, what was found, and the source."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from server.errors import NotFoundError
from server.http.identity import Someone
from server.http.work import Work
from server.pages.highlight import listing
from server.pages.rendering import render
from server.pages.sheet import sheet_of
from server.submissions import service as submissions

router = APIRouter(include_in_schema=False)
PARTS = ("head", "progress", "detail", "cases", "receipt")
"""What changes while a submission is graded, each a template of its own under `submission/`."""


@router.get("/submissions/{public_id}")
def submission_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """The page; its parts are the ones that the live stream sends again."""
    submission = submissions.find(work, who.user, public_id)
    sheet = sheet_of(work, submission, who.user, max_attempts=request.app.state.config.max_attempts)
    source = submissions.source_of(work, submission).decode("utf-8", "replace")
    return render(
        request,
        "submission.html",
        sheet=sheet,
        view=sheet.view,
        parts=PARTS,
        own=submission.user_id == who.user.id,
        source=source,
        listing=listing(source, submission.language.value),
        marked={frame.line: sheet.error.kind for frame in sheet.error.frames[-1:]} if sheet.error else {},
    )


@router.get("/submissions/{public_id}/source")
def source_file(public_id: str, who: Someone, work: Work) -> Response:
    """The bytes as they were handed in, as a file."""
    submission = submissions.find(work, who.user, public_id)
    content = submissions.source_of(work, submission)
    if not submission.filename.isprintable():
        raise NotFoundError("There is no such file.")
    name = submission.filename.encode("ascii", "replace").decode().replace('"', "_").replace("?", "_")
    return Response(
        content,
        media_type="text/plain; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )
