"""What else a large course has: groups, write-ups, rubrics, comparisons for similarity, and regrades.

Rows that grading by hand leaves are written as it leaves them; regrades are proposed, run and left to be looked at by
the course's own functions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder import codec
from autograder.assignment import Writeup, content_hash
from autograder.contract import Mode, Verdict
from scripts.large_course import Cast, Rung
from server.models import (
    Bundle,
    Comparison,
    ComparisonState,
    Group,
    GroupMember,
    PairMark,
    RegradeKind,
    RegradeState,
    RubricItem,
    RubricMark,
    RubricSheet,
    SimilarPair,
    Submission,
    User,
    WriteUp,
)
from server.models.student import WriteUpFormat
from server.regrades import proposing, runner
from server.regrades.selection import Selection, Which
from server.similarity.engine import Matches
from server.similarity.scope import Scope

_EVERY = 5
"""One rung of so many has a rubric and was compared."""
_MOST_PAIRS = 400
_RUBRIC = (("Clarity", "Says what bounds the kernel", 4.0), ("Clarity", "Measures before it claims", 3.0),
           ("Code", "Names say what things are", 2.0), ("Code", "A load is not coalesced", -2.0),
           ("Code", "Needs a comment at the mask", -1.0))  # fmt: skip


class Desk:
    """Makes what staff and groups leave in a course whose submissions are there."""

    def __init__(self, cast: Cast) -> None:
        self._cast, self._bulk, self._dice, self._session = cast, cast.bulk, cast.dice, cast.bulk.session

    def make(self) -> None:
        """Everything; the last rung is done in pairs, and the one before it asks for a write-up."""
        self._groups(self._cast.rungs[-1])
        self._write_ups(self._cast.rungs[-2])
        for rung in self._cast.rungs[::_EVERY]:
            self._rubric(rung)
            self._comparison(rung)
            self._bulk.flush()
        self._bulk.flush(all_of_it=True)

    def regrade(self) -> None:
        """One proposal to be looked at, one that was applied, and one that nobody has started."""
        first, second, third = self._cast.rungs[0], self._cast.rungs[1], self._cast.rungs[-1]
        self._propose(second, RegradeKind.rescore, RegradeState.running)
        self._propose(first, RegradeKind.rescore, RegradeState.running, RegradeState.applying)
        self._propose(third, RegradeKind.rerun)

    def _propose(self, rung: Rung, kind: RegradeKind, *states: RegradeState) -> None:
        staff = self._session.get_one(User, self._cast.staff[0])
        regrade = proposing.draft(
            self._session, staff, rung.row, kind=kind, selection=Selection(which=Which.latest), now=self._cast.now,
            reason="A case had the wrong tolerance.", tell=False,
        )  # fmt: skip
        for state in states:
            regrade.state, regrade.started_at = state, self._cast.now
            runner.step_through(self._session, regrade, now=self._cast.now)

    def _groups(self, rung: Rung) -> None:
        rung.row.group_size = 2
        for number, pair in enumerate(zip(self._cast.students[::2], self._cast.students[1::2], strict=False)):
            group = self._bulk.add(
                Group, course_id=self._cast.course.id, assignment_id=rung.row.id, code=f"large-{number:06}",
                created_at=rung.open_at,
            )  # fmt: skip
            for user in pair:
                self._bulk.add(
                    GroupMember, group_id=group, assignment_id=rung.row.id, user_id=user, joined_at=rung.open_at
                )

    def _write_ups(self, rung: Rung) -> None:
        for user in self._cast.students:
            for number in range(1, 2 + self._cast.happens(0.3)):
                text = f"# Why it is fast\n\nVersion {number} of {user}: it reads every byte once.\n".encode()
                self._bulk.add(
                    WriteUp, public_id=f"{user:08}{number:018}", number=number, course_id=self._cast.course.id,
                    assignment_id=rung.row.id, user_id=user, format=WriteUpFormat.markdown, filename="why.md",
                    data=text, size=len(text), sha256=hashlib.sha256(text).hexdigest(),
                    trace=f"{self._dice.getrandbits(128):032x}",
                    uploaded_at=self._cast.between(rung.open_at, min(rung.due_at, self._cast.now)),
                )  # fmt: skip

    def _rubric(self, rung: Rung) -> None:
        worth = {
            self._bulk.add(
                RubricItem, assignment_id=rung.row.id, group=group, text=text, points=points, position=place, revision=1
            ): points
            for place, (group, text, points) in enumerate(_RUBRIC)
        }
        for user in self._cast.students:
            if self._cast.happens(0.8):
                applies = [item for item in worth if self._cast.happens(0.4)]
                sheet = self._bulk.add(
                    RubricSheet, assignment_id=rung.row.id, user_id=user, points=sum(worth[item] for item in applies),
                    graded_by_id=self._dice.choice(self._cast.staff), graded_at=min(rung.late_until, self._cast.now),
                    revision=1,
                )  # fmt: skip
                for item in applies:
                    self._bulk.add(RubricMark, sheet_id=sheet, item_id=item)

    def _comparison(self, rung: Rung) -> None:
        sources = list(_newest(self._session, rung.row.id))
        pairs = min(_MOST_PAIRS, len(sources) * (len(sources) - 1) // 2)
        at = self._cast.now - timedelta(hours=1)
        comparison = self._bulk.add(
            Comparison, course_id=self._cast.course.id, assignment_id=rung.row.id, scope=codec.to_json(Scope()),
            state=ComparisonState.done, done=pairs, total=pairs, sources=len(sources), left_out=[],
            created_by_id=self._cast.staff[0], created_at=at, started_at=at, finished_at=at,
        )  # fmt: skip
        for _ in range(pairs):
            self._pair(comparison, self._dice.sample(sources, 2))

    def _pair(self, comparison: int, two: Sequence[int]) -> None:
        share = self._dice.betavariate(2, 6)
        self._bulk.add(
            SimilarPair, comparison_id=comparison, left_id=two[0], right_id=two[1], share=share, left_share=share,
            right_share=share * self._dice.random(), common=int(2_000 * share),
            matches=codec.to_json(Matches(left=((1, 3, 12),), right=((1, 5, 14),))), mark=PairMark.none, revision=0,
        )  # fmt: skip


def ask_for_a_write_up(session: Session, rung: Rung) -> None:
    """Let a rung ask for one, as files of its own would."""
    bundle = session.get_one(Bundle, rung.version.bundle_hash)
    # A tar may end in any number of empty blocks: other bytes, the same files.
    data = bundle.data + b"\0" * 512 * 64
    hash_ = content_hash(data)
    session.add(Bundle(hash=hash_, data=data, size=len(data), created_at=bundle.created_at))
    session.flush()
    asked = codec.to_json(Writeup("Why it is fast", points=10.0, about="What bounds the kernel, with numbers."))
    rung.version.manifest = {**rung.version.manifest, "writeup": asked}
    rung.version.bundle_hash = hash_
    session.flush()


def _newest(session: Session, assignment_id: int) -> Iterator[int]:
    """Of each student the newest submission that passed."""
    query = (
        select(Submission.user_id, Submission.id)
        .where(
            Submission.assignment_id == assignment_id,
            Submission.mode == Mode.submission,
            Submission.verdict == Verdict.passed,
        )
        .order_by(Submission.id)
    )
    yield from {user_id: number for user_id, number in session.execute(query)}.values()  # noqa: C416  # rows are no pairs
