"""The staff's solutions of an assignment, from the version that stands in the database; never from a folder."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from autograder import languages
from autograder.contract import Language
from server.courses.courses import AssignmentDetail, Membership
from server.errors import NotFoundError
from server.models import Bundle

MAX_BYTES = 2**20


@dataclass(frozen=True)
class Solution:
    """One file."""

    filename: str
    language: Language
    source: str


def are_shown(member: Membership, detail: AssignmentDetail, now: datetime) -> bool:
    """Whether the member may read them: staff always, a student as `are_released` says."""
    return member.is_staff or are_released(detail, now)


def are_released(detail: AssignmentDetail, now: datetime) -> bool:
    """Whether students may read them: the day has come, and nothing that the person uploads counts any more.

    Where there is a due date and no end, something always counts; where nothing is ever due, the day alone decides.
    """
    released = detail.row.solutions_released_at
    if released is None or released > now:
        return False
    is_ever_due = detail.due_at is not None or detail.late_until is not None
    return detail.is_closed(now) or not is_ever_due


def solutions(session: Session, member: Membership, detail: AssignmentDetail, now: datetime) -> Sequence[Solution]:
    """The solutions, by name.

    Raises:
        NotFoundError: the member may not read them yet, or there are none.
    """
    if not are_shown(member, detail, now):
        raise NotFoundError("The solutions of this assignment are not released.")
    query = select(Bundle).where(Bundle.hash == detail.version.bundle_hash).options(undefer(Bundle.data))
    found = sources_in(session.scalars(query).one().data, f"reference/{detail.slug}/solutions/")
    if not found:
        raise NotFoundError("This assignment has no solutions.")
    return found


def sources_in(bundle: bytes, prefix: str) -> list[Solution]:
    """Sources of a bundle whose names begin with `prefix`, by the rest of their names; none over `MAX_BYTES`."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(bundle)) as archive:
        for member in archive.getmembers():
            name = member.name.removeprefix(prefix)
            file = archive.extractfile(member) if member.isfile() and member.name.startswith(prefix) else None
            if file is None or languages.of_file(name) is None or member.size > MAX_BYTES:
                continue
            text = file.read().decode("utf-8", "replace")
            if record := languages.of_file(name, text):
                found.append(Solution(name, Language(record.id), text))
    return sorted(found, key=lambda solution: solution.filename)
