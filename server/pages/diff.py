"""Two versions of a kernel side by side, with what became of each ranked case: which edit made it faster."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from fastapi import APIRouter, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from autograder.contract import Measurement
from server.apart.asking import APART, GivenUpError
from server.courses import courses
from server.db import let_go
from server.errors import InvalidInputError
from server.groups import groups
from server.http.identity import Someone
from server.http.turns import Turn
from server.http.work import Work
from server.lexing import lines
from server.models import AssignmentVersion, Mode, Submission, User
from server.pages.compiled_diff import InstructionChange, compiled_changes, instruction_changes
from server.pages.highlight import Line, listing, source_lines
from server.pages.rendering import render
from server.submissions import listings, submissions
from server.submissions.submissions import SubmissionView

router = APIRouter(include_in_schema=False)

CONTEXT = 4
"""Lines shown around a change."""

COMPARED_S = 1.0
"""Of processor time."""

MOST_VERSIONS = 200
"""Offered to choose from, newest first."""


@dataclass(frozen=True)
class Row:
    """A line of the older version beside one of the newer; `None` where there is none."""

    old: Line | None
    new: Line | None
    changed: bool


@dataclass(frozen=True)
class Hunk:
    """Lines that belong together; `skipped` equal ones before them are not shown."""

    skipped: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Diff:
    """What changed.

    Attributes:
        left_out: so many equal lines follow the last hunk.
        cut: a source was too long to show whole.
        whole: every part was compared line by line; one that is too different stands as removed and added.
    """

    hunks: tuple[Hunk, ...]
    added: int
    removed: int
    left_out: int
    cut: bool
    whole: bool = True


@dataclass(frozen=True)
class Change:
    """One ranked case in both versions.

    Attributes:
        factor: the newer ratio to the reference over the older one; below 1 is faster. `None` where one is missing.
        noise: their intervals overlap, so that the factor says nothing.
    """

    case: str
    old: Measurement | None
    new: Measurement | None
    factor: float | None
    noise: bool


@router.get("/submissions/{public_id}/diff", dependencies=[Turn])
def diff_page(request: Request, public_id: str, who: Someone, work: Work) -> Response:
    """This version against `from`, or against the one before it."""
    new = submissions.find(work, who.user, public_id)
    versions = _versions(work, new, who.user)
    asked = request.query_params.get("from")
    old = submissions.find(work, who.user, asked) if asked else _before(versions, new)
    if old is not None and not _belong_together(work, old, new):
        raise InvalidInputError("These are not two versions of one kernel for one assignment.", field="from")
    assignment = new.assignment
    views = [_view(work, who.user, one) for one in (old, new)] if old else []
    return render(
        request,
        "diff.html",
        old=old,
        new=new,
        versions=versions,
        assignment=assignment,
        course=assignment.course,
        author=work.get_one(User, new.user_id),
        diff=_diff(work, old, new) if old else None,
        changes=_changes(work, (old, views[0]), (new, views[1])) if old else (),
        kernels=compiled_changes(views[0].compiled, views[1].compiled) if old else (),
        instructions=_instructions(work, old, new) if old else (),
        member=courses.membership(work, who.user, assignment.course.slug),
    )


def _belong_together(session: Session, old: Submission, new: Submission) -> bool:
    """Whether one person, or one group, wrote both for the same assignment."""
    together = groups.together(session, new.assignment_id, new.user_id)
    return old.assignment_id == new.assignment_id and old.user_id in together


def compare(old: str, new: str, old_language: str, new_language: str) -> Diff:
    """What is other in `new`: lines in order, changed ones beside each other, equal ones further away left out."""
    before, after = listing(old, old_language), listing(new, new_language)
    # Compared as text: the same line is coloured otherwise inside a string.
    texts = source_lines(old)[: len(before.lines)], source_lines(new)[: len(after.lines)]
    matcher, whole = _matched(*texts)
    hunks, at = [], 0
    for group in matcher.get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        rows = tuple(row for opcode in group for row in _rows(opcode, before.lines, after.lines))
        hunks.append(Hunk(first[1] - at, rows))
        at = last[2]
    changed = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
    return Diff(
        tuple(hunks),
        added=sum(to - start for _, _, _, start, to in changed),
        removed=sum(to - start for _, start, to, _, _ in changed),
        left_out=len(before.lines) - at,
        cut=bool(before.left_out or after.left_out),
        whole=whole,
    )


class _Matcher(difflib.SequenceMatcher[str]):
    """Groups changes as difflib does, of lines that were matched elsewhere."""

    def __init__(self, blocks: Sequence[difflib.Match]) -> None:
        super().__init__(None, (), ())
        self._blocks = list(blocks)

    def get_matching_blocks(self) -> list[difflib.Match]:
        """Those that were given."""
        return self._blocks


def _matched(old: Sequence[str], new: Sequence[str]) -> tuple[_Matcher, bool]:
    """Which lines are the same, and whether all of them were looked at."""
    try:
        where, whole = APART.ask(lines.same_lines, *lines.numbered(old, new), seconds=COMPARED_S)
    except GivenUpError:
        where, whole = [-1] * len(old), False
    blocks: list[difflib.Match] = []
    for was, now in enumerate(where):
        last = blocks[-1] if blocks else difflib.Match(-1, -1, 0)
        if now >= 0 and (last.a + last.size, last.b + last.size) == (was, now):
            blocks[-1] = last._replace(size=last.size + 1)
        elif now >= 0:
            blocks.append(difflib.Match(was, now, 1))
    return _Matcher([*blocks, difflib.Match(len(old), len(new), 0)]), whole


def _rows(opcode: tuple[str, int, int, int, int], before: Sequence[Line], after: Sequence[Line]) -> list[Row]:
    kind, old_from, old_to, new_from, new_to = opcode
    pairs = zip_longest(before[old_from:old_to], after[new_from:new_to])
    return [Row(old, new, changed=kind != "equal") for old, new in pairs]


def _diff(session: Session, old: Submission, new: Submission) -> Diff:
    before, after = (submissions.source_of(session, one).decode("utf-8", "replace") for one in (old, new))
    let_go(session)
    return compare(before, after, old.language.value, new.language.value)


def _versions(session: Session, submission: Submission, viewer: User) -> list[Submission]:
    """All of its student's for this assignment, newest first; runs too, but not for others of a group."""
    own = viewer.id == submission.user_id or submissions.is_staff_of(session, viewer, submission)
    query = (
        select(Submission)
        .where(
            Submission.user_id == submission.user_id,
            Submission.assignment_id == submission.assignment_id,
            Submission.mode.in_(Mode if own else [Mode.submission]),
        )
        .order_by(Submission.id.desc())
        .limit(MOST_VERSIONS)
    )
    return list(session.scalars(query))


def _before(versions: Sequence[Submission], new: Submission) -> Submission | None:
    """The one before it of the same kind; a run may follow a submission."""
    older = [one for one in versions if one.id < new.id]
    return next((one for one in older if one.mode is new.mode), older[0] if older else None)


def _view(session: Session, viewer: User, submission: Submission) -> SubmissionView:
    staff = submissions.is_staff_of(session, viewer, submission)
    return submissions.view(session, submission, staff=staff, max_attempts=1, wait=None)


def _changes(
    session: Session, old: tuple[Submission, SubmissionView], new: tuple[Submission, SubmissionView]
) -> tuple[Change, ...]:
    """What became of every ranked case; ratios on two lanes, or to two references, are not held against each other."""
    hashes = {_version(session, one).grading_hash for one, _ in (old, new)}
    if old[0].lane is not new[0].lane or len(hashes) > 1:
        return ()
    before, after = ({item.case: item for item in view.measurements} for _, view in (old, new))
    cases = dict.fromkeys([*before, *after])
    return tuple(_change(case, before.get(case), after.get(case)) for case in cases)


def _change(case: str, old: Measurement | None, new: Measurement | None) -> Change:
    if old is None or new is None:
        return Change(case, old, new, None, noise=False)
    noise = old.ratio_low <= new.ratio_high and new.ratio_low <= old.ratio_high
    return Change(case, old, new, new.ratio / old.ratio, noise)


def _instructions(session: Session, old: Submission, new: Submission) -> tuple[InstructionChange, ...]:
    both = [set(listings.targets_of(session, one)) for one in (old, new)]
    pairs = ([listings.listings_of(session, one, target) for one in (old, new)] for target in sorted(both[0] & both[1]))
    return tuple(change for before, after in pairs if before and after for change in instruction_changes(before, after))


def _version(session: Session, submission: Submission) -> AssignmentVersion:
    return session.get_one(AssignmentVersion, submission.version_id)
