"""A kernel's source beside its machine code or PTX, linked line by line in both directions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.listings import KernelListing, Listings, Row, rows_of
from server.courses import courses
from server.errors import NotFoundError
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import Work
from server.models import Submission
from server.pages.highlight import listing
from server.pages.rendering import render
from server.submissions import listings, submissions

router = APIRouter(include_in_schema=False)

KINDS: Mapping[str, str] = {"sass": "Machine code", "ptx": "PTX"}


@dataclass(frozen=True)
class Linked:
    """Rows with what links them.

    Attributes:
        first: the numbers of rows to which a source line leads: the first of each line.
        counts: instructions of each source line.
    """

    rows: tuple[Row, ...]
    first: Mapping[int, int]
    counts: Mapping[int, int]


def linked(rows: Sequence[Row]) -> Linked:
    """Links between the source's lines and the rows that came from them."""
    first: dict[int, int] = {}
    for number, row in enumerate(rows):
        if row.line:
            first.setdefault(row.line, number)
    return Linked(tuple(rows), first, Counter(row.line for row in rows if row.line))


@router.get("/submissions/{public_id}/machine-code", dependencies=[Turn])
def machine_code_page(
    *,
    request: Request,
    public_id: str,
    who: Someone,
    work: Work,
    target: str = "",
    kernel: int = 0,
    kind: str = "sass",
) -> Response:
    """One kernel for one target; the first of each where none is asked for."""
    submission = submissions.find(work, who.user, public_id)
    targets = listings.targets_of(work, submission)
    found = _listings(work, submission, targets, target)
    chosen = _chosen(found, kernel) if found else None
    shown = kind if kind in KINDS else "sass"
    return render(
        request,
        "machine_code.html",
        submission=submission,
        assignment=submission.assignment,
        course=submission.assignment.course,
        member=courses.membership(work, who.user, submission.assignment.course.slug),
        targets=targets,
        found=found,
        chosen=chosen,
        number=kernel,
        kind=shown,
        kinds=KINDS,
        code=linked(rows_of(getattr(chosen, shown))) if chosen else None,
        listing=listing(submissions.source_of(work, submission).decode("utf-8", "replace"), submission.language.value),
    )


def _listings(session: Session, submission: Submission, targets: Sequence[str], target: str) -> Listings | None:
    if target and target not in targets:
        raise NotFoundError("There is no code for this target.")
    return listings.listings_of(session, submission, target or targets[0]) if targets else None


def _chosen(found: Listings, number: int) -> KernelListing | None:
    if not 0 <= number < max(1, len(found.kernels)):
        raise NotFoundError("There is no such kernel.")
    return found.kernels[number] if found.kernels else None
