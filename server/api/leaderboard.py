"""The leaderboard of an assignment, as JSON and for a spreadsheet."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from autograder.contract import Lane, Language
from server.api.responses import errors
from server.api.schemas import Read
from server.courses import service as courses
from server.courses.service import AssignmentDetail, Membership
from server.errors import NotFoundError
from server.http.identity import Someone
from server.http.work import Work
from server.leaderboard import service as leaderboard
from server.leaderboard.service import Board, Entry

router = APIRouter(tags=["leaderboard"])

ChosenLane = Annotated[Lane | None, Query(description="The device class; the assignment's first where it is left out.")]
_PATH = "/courses/{course}/assignments/{slug}/leaderboard"


class EntryRead(Read):
    """One student's place."""

    rank: Annotated[int, Field(description="Shared by entries whose intervals overlap that of their group's first.")]
    name: Annotated[str, Field(description="The name if they chose to show it, otherwise their pseudonym.")]
    own: bool
    ratio: Annotated[float, Field(description="Submission / reference; below 1 is faster than the reference.")]
    ratio_low: float
    ratio_high: float
    confirmations: Annotated[int, Field(description="How often it was graded once more, with other seeds, and passed.")]
    time_us: float
    language: Language
    at: datetime
    submission: Annotated[str | None, Field(description="Shown to its owner and to staff.")]

    @classmethod
    def of(cls, entry: Entry, *, staff: bool) -> EntryRead:
        """The entry, without its submission for others than its owner and staff."""
        shown = cls.model_validate(entry)
        return shown if staff or entry.own else shown.model_copy(update={"submission": None})


class BoardRead(Read):
    """A leaderboard."""

    course: str
    assignment: str
    title: str
    lane: Lane
    version: Annotated[int, Field(description="The current one; earlier ones stand if graded the same way.")]
    ranks: Annotated[bool, Field(description="Whether the lane has a leaderboard.")]
    practice: Annotated[bool, Field(description="Whether its times are practice and give no points.")]
    entries: list[EntryRead]

    @classmethod
    def of(cls, board: Board, detail: AssignmentDetail, member: Membership) -> BoardRead:
        """The board of this assignment as this member sees it."""
        return cls(
            course=member.course.slug,
            assignment=detail.slug,
            title=detail.title,
            lane=board.lane,
            version=board.version,
            ranks=board.ranks,
            practice=board.practice,
            entries=[EntryRead.of(entry, staff=member.is_staff) for entry in board.entries],
        )


@router.get(_PATH, responses=errors(401, 404, 422), summary="Leaderboard")
def read_leaderboard(course: str, slug: str, who: Someone, work: Work, lane: ChosenLane = None) -> BoardRead:
    """Every student's best valid result on one lane, by ratio to the reference."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    return BoardRead.of(_board(work, member, detail, lane), detail, member)


@router.get(
    f"{_PATH}.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}}, "description": "The table."}, **errors(401, 404, 422)},
    summary="Leaderboard for a spreadsheet",
)
def export_leaderboard(course: str, slug: str, who: Someone, work: Work, lane: ChosenLane = None) -> Response:
    """The same table as comma-separated values; no cell can be taken for a formula."""
    member = courses.membership(work, who.user, course)
    detail = courses.assignment_of(work, member, slug)
    board = _board(work, member, detail, lane)
    headers = {"Content-Disposition": f'attachment; filename="{detail.slug}-{board.lane}.csv"'}
    return Response(leaderboard.to_csv(board.entries), media_type="text/csv; charset=utf-8", headers=headers)


def _board(work: Work, member: Membership, detail: AssignmentDetail, lane: Lane | None) -> Board:
    chosen = lane or next(iter(leaderboard.lanes_with_board(detail.version)), None) or next(iter(detail.lanes), None)
    if chosen is None or chosen not in detail.lanes:
        raise NotFoundError(f"{detail.title} is not graded on that lane.")
    return leaderboard.board(work, assignment=detail.row, lane=chosen, viewer_id=member.user.id)
