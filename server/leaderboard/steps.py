"""The published milestones of an assignment, as one person may see them.

A milestone's source is open to who has beaten it: to whom a valid result of theirs, or of their group, in its language
is faster on a lane where it was graded too. Once the due date is over, it is open to all; to staff always. Until then
there are its name, its ratios and its first sentence. That a copied one is found is similarity's part.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server.courses.courses import AssignmentDetail, Membership
from server.groups import groups
from server.leaderboard.milestones import baselines, title
from server.models import Best, MilestoneKind

_QUOTES = '"""'


class Opened(StrEnum):
    """Why a milestone's source is open to somebody."""

    beaten = "beaten"
    due = "due"
    staff = "staff"


@dataclass(frozen=True)
class Step:
    """A published milestone.

    Attributes:
        filename: below `milestones/` of the assignment.
        about: what it does, in a sentence.
        ratios: its time over the reference's on each lane on which it was graded.
        opened: why its source is open; `None` while it is closed.
        source: `""` while it is closed.
    """

    name: str
    language: Language
    filename: str
    about: str
    ratios: Mapping[Lane, float]
    opened: Opened | None
    source: str


def steps(session: Session, member: Membership, detail: AssignmentDetail, now: datetime) -> tuple[Step, ...]:
    """The milestones of the current version, slowest first in each language, languages as the assignment has them."""
    offered = list(detail.spec.languages)
    published = [item for item in detail.version.milestones if item["language"] in offered]
    if not published:
        return ()
    measured = _ratios(session, detail)
    own = {} if member.is_staff else _own(session, member, detail)
    found = []
    for item in published:
        language = Language(item["language"])
        ratios = measured.get((item["name"], language), {})
        beaten = any(own.get((lane, language), ratio) < ratio for lane, ratio in ratios.items())
        opened = _opened(member, detail, now, beaten=beaten)
        about, source = first_sentence(item["source"]), item["source"] if opened else ""
        found.append(Step(title(item["name"]), language, item["filename"], about, ratios, opened, source))
    return tuple(sorted(found, key=lambda step: (offered.index(step.language), step.filename)))


def closed_files(found: Iterable[Step]) -> frozenset[str]:
    """Those whose sources must not leave the server, as the assignment's folder names them."""
    return frozenset(f"milestones/{step.filename}" for step in found if step.opened is None)


def first_sentence(source: str) -> str:
    """What a milestone's file says of it first, without its number: `Softmax, first milestone: …` is `…`."""
    # A line that names the language may come before.
    head = "".join(itertools.dropwhile(lambda line: line.startswith("#") or not line.strip(), source.splitlines(True)))
    said = head[len(_QUOTES) :].split(_QUOTES)[0] if head.startswith(_QUOTES) else _comment(head)
    paragraph = " ".join(said.split("\n\n")[0].split())
    about = paragraph.partition("milestone: ")[2] or paragraph
    return about[:1].upper() + about[1:]


def _comment(head: str) -> str:
    """The lines of comment that a text begins with, without their slashes."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), head.splitlines())
    return "\n".join(line.removeprefix("//").strip() for line in lines)


def _opened(member: Membership, detail: AssignmentDetail, now: datetime, *, beaten: bool) -> Opened | None:
    if member.is_staff:
        return Opened.staff
    if beaten:
        return Opened.beaten
    return Opened.due if detail.due_at is not None and detail.is_late(now) else None


def _ratios(session: Session, detail: AssignmentDetail) -> dict[tuple[str, Language], dict[Lane, float]]:
    """By name of the file and language."""
    found: dict[tuple[str, Language], dict[Lane, float]] = {}
    for lane in detail.lanes:
        for item in baselines(session, detail.row, lane):
            if item.kind is MilestoneKind.published:
                found.setdefault((item.stem, item.language), {})[lane] = item.ratio
    return found


def _own(session: Session, member: Membership, detail: AssignmentDetail) -> dict[tuple[Lane, Language], float]:
    """The least ratio of the person or their group by lane and language."""
    people: Sequence[int] = groups.together(session, detail.row.id, member.user.id)
    rows = session.execute(
        select(Best.lane, Best.language, Best.ratio)
        .where(
            Best.assignment_id == detail.row.id,
            Best.grading_hash == detail.version.grading_hash,
            Best.user_id.in_(people),
        )
        .order_by(Best.ratio.desc())
    )
    return {(lane, language): ratio for lane, language, ratio in rows}
