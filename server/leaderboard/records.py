"""How the record of a board came down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server.grading.ranking import EVERYTHING, Boards, Selection, records
from server.models import Assignment


@dataclass(frozen=True)
class Record:
    """A result that was faster than every valid one handed in before it; its numbers are as an entry's."""

    at: datetime
    name: str
    language: Language
    ratio: float
    time_us: float


def records_of(
    session: Session, *, assignment: Assignment, lane: Lane, selection: Selection = EVERYTHING
) -> tuple[Record, ...]:
    """The records of a board, oldest first, among what is valid now: what staff rejected never was one."""
    return tuple(
        Record(row.uploaded_at, row.name if row.show_name else row.handle, row.language, row.ratio, row.time_us)
        for row in session.execute(records(selection, Boards([assignment.id], [lane])))
    )
