"""A receipt of a grade: everything that it follows from, signed by the server, and the same grade worked out again.

There are two copies. The staff's is whole. The student's has of hidden cases the category and the verdict only, and no
finding; whatever ranks is public, so that both say enough to recompute the score (`recompute`), anywhere and without a
GPU. Seeds are in neither: nobody keeps them.

A receipt travels as JSON with a signature beside it (`autograder.signing`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from autograder import codec
from autograder.assignment import LanePolicy
from autograder.contract import (
    CaseResult,
    Finding,
    GpuFacts,
    Lane,
    Language,
    Measurement,
    RequirementResult,
    Review,
    Verdict,
    Visibility,
    Work,
)
from autograder.counters import points_of
from autograder.errors import ContractError
from autograder.samples import pooled
from autograder.scores import FORMULA_VERSION, Speed, correctness_of, speed_fraction, speed_over
from autograder.signing import SIGNATURE, SignatureError, SigningKey, verify

FORMAT = 1
RELATIVE, ABSOLUTE = 1e-9, 1e-9
"""How far a number may be from the one worked out again: another order of additions, nothing more."""


class Copy(StrEnum):
    """Who a copy is for."""

    student = "student"
    staff = "staff"


@dataclass(frozen=True)
class Formula:
    """What points followed from: see `autograder.scores`.

    Attributes:
        counted: counters gave the speed points.
    """

    version: int
    correctness: float
    speed: float
    speed_points: bool
    r_full: float
    r_zero: float
    counted: bool = False


@dataclass(frozen=True)
class Group:
    """A correctness group of the assignment."""

    name: str
    passed: bool


@dataclass(frozen=True)
class AttemptFacts:
    """One attempt whose findings or samples count.

    Attributes:
        submission: the receipt number of what it was an attempt at: the pool of an identical source may hold several.
        environment: versions, image, device and clocks, as they were recorded.
    """

    attempt: str
    submission: str
    node: str
    work: Work
    finished_at: str
    environment: dict[str, str] = field(default_factory=dict)
    promises: tuple[str, ...] = ()
    gpu: GpuFacts | None = None


@dataclass(frozen=True)
class Sampled:
    """What an attempt sampled of one ranked case."""

    attempt: str
    measurement: Measurement


@dataclass(frozen=True)
class Change:
    """The points became other ones."""

    at: str
    reason: str
    before: float | None
    after: float | None
    formula_version: int


@dataclass(frozen=True)
class Grade:
    """What it came to.

    Attributes:
        settled: false while its times have to be taken again: speed points wait.
        points: correctness, and speed where it counts.
        confirmations: how often it was graded once more and passed.
        speed_floor: speed points that a regrade left standing although the formula gives fewer; 0 where there are none.
    """

    verdict: Verdict
    review: Review
    settled: bool
    speed: Speed | None
    correctness_points: float
    speed_points: float
    points: float | None
    confirmations: int = 0
    speed_floor: float = 0.0


@dataclass(frozen=True)
class Receipt:
    """The grade of one submission at one time.

    Attributes:
        number: the receipt number.
        grading_hash: of what decides verdicts and ratios in this version of the assignment.
        days_late: by the upload; what is charged for it is the course's matter.
        ranked: names of the cases that speed is taken over.
        samples: of every attempt that counts, oldest first.
        withheld: how many ranked cases are left out of this copy.
        findings: of the staff's copy.
    """

    number: str
    copy: Copy
    made_at: str
    course: str
    assignment: str
    version: int
    bundle: str
    grading_hash: str
    lane: Lane
    language: Language
    submission: int
    source_hash: str
    uploaded_at: str
    days_late: int
    formula: Formula
    groups: tuple[Group, ...]
    cases: tuple[CaseResult, ...]
    ranked: tuple[str, ...]
    attempts: tuple[AttemptFacts, ...]
    samples: tuple[Sampled, ...]
    grade: Grade
    changes: tuple[Change, ...] = ()
    withheld: int = 0
    findings: tuple[Finding, ...] = ()
    held_reason: str = ""
    format: int = FORMAT
    requirements: tuple[RequirementResult, ...] = ()

    def for_student(self) -> Receipt:
        """The student's copy."""
        hidden = {case.name for case in self.cases if case.visibility is Visibility.hidden}
        samples = (item for item in self.samples if item.measurement.case not in hidden)
        return dataclasses.replace(
            self,
            copy=Copy.student,
            cases=tuple(case.for_student() for case in self.cases),
            ranked=tuple(name for name in self.ranked if name not in hidden),
            withheld=len(hidden.intersection(self.ranked)),
            # Why something is held is for staff: it says where the thresholds are.
            samples=tuple(
                dataclasses.replace(item, measurement=dataclasses.replace(item.measurement, held="", remeasure=""))
                for item in samples
            ),
            # Looks at the GPU come at fixed times: their number would tell how long hidden cases took.
            attempts=tuple(
                dataclasses.replace(item, gpu=dataclasses.replace(item.gpu, samples=())) if item.gpu else item
                for item in self.attempts
            ),
            findings=(),
            held_reason="",
        )


def issue(receipt: Receipt, key: SigningKey) -> dict[str, Any]:
    """The receipt as a signed JSON document."""
    return key.sign(codec.to_json(receipt))


def read(document: Mapping[str, Any], public: str | None = None) -> tuple[Receipt, str]:
    """The receipt in a signed document, and the key that signed it.

    Raises:
        SignatureError: it was not signed by `public`, or changed since.
        ContractError: it is no receipt that this program can read.
    """
    signed_by = verify(document, public)
    receipt = codec.from_json(Receipt, {name: item for name, item in document.items() if name != SIGNATURE})
    if receipt.format != FORMAT:
        raise ContractError(f"it has the format {receipt.format}; this program reads {FORMAT}")
    return receipt, signed_by


def recompute(receipt: Receipt) -> list[str]:
    """What in the receipt does not follow from its own samples and verdicts; empty if all of it does.

    Raises:
        ContractError: it cannot be worked out here; the message says why.
    """
    if receipt.formula.version != FORMULA_VERSION:
        raise ContractError(
            f"its points are by version {receipt.formula.version} of the formula; this program has {FORMULA_VERSION}"
        )
    if receipt.withheld:
        raise ContractError(f"{receipt.withheld} ranked cases are hidden and not in this copy; the staff's has them")
    grade, formula = receipt.grade, receipt.formula
    if not 0 < formula.r_full < formula.r_zero:
        raise ContractError(f"its tiers, {formula.r_full} and {formula.r_zero}, are none that an assignment has")
    passed = _groups_passed(receipt)
    complete = grade.verdict is Verdict.passed and passed == len(receipt.groups) > 0
    correctness = correctness_of(formula.correctness, passed, len(receipt.groups))
    speed = _speed(receipt) if grade.verdict is Verdict.passed else None
    policy = LanePolicy(speed_points=formula.speed_points, r_full=formula.r_full, r_zero=formula.r_zero)
    speed_points = formula.speed * speed_fraction(policy, speed.ratio) if complete and speed else 0.0
    speed_points += points_of(receipt.requirements) if complete and formula.counted else 0.0
    speed_points = max(speed_points, grade.speed_floor) if complete else speed_points
    counts = grade.review is Review.cleared or (grade.review is Review.none and grade.settled)
    return [
        *_differences("ratio", grade.speed, speed),
        *_differs("correctness points", grade.correctness_points, correctness),
        *_differs("speed points", grade.speed_points, speed_points),
        *_differs("points", grade.points, correctness + (speed_points if counts else 0.0)),
    ]


def _groups_passed(receipt: Receipt) -> int:
    """How many groups passed by their cases; what the receipt says of a group without cases is false."""
    verdicts: dict[str, list[Verdict | None]] = {group.name: [] for group in receipt.groups}
    for case in receipt.cases:
        verdicts.setdefault(case.group, []).append(case.verdict)
    return sum(bool(found) and all(item is Verdict.passed for item in found) for found in verdicts.values())


def _speed(receipt: Receipt) -> Speed | None:
    """Over the pooled samples of every ranked case; `None` where one has none."""
    by_case: dict[str, list[Measurement]] = {name: [] for name in receipt.ranked}
    for item in receipt.samples:
        if item.measurement.case in by_case:
            by_case[item.measurement.case].append(item.measurement)
    if not by_case or not all(by_case.values()):
        return None
    return speed_over([pooled(items) for items in by_case.values()])


def _differences(name: str, said: Speed | None, found: Speed | None) -> list[str]:
    if said is None or found is None:
        return [] if said is found else [f"{name}: the receipt says {said}, its samples {found}"]
    parts = (
        ("", said.ratio, found.ratio),
        ("'s lower end", said.low, found.low),
        ("'s upper end", said.high, found.high),
    )
    return [
        *(line for part, one, other in parts for line in _differs(f"{name}{part}", one, other)),
        *_differs("time", said.time_us, found.time_us),
    ]


def _differs(name: str, said: float | None, found: float) -> list[str]:
    if said is not None and math.isclose(said, found, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
        return []
    return [f"{name}: the receipt says {said}, its samples and verdicts {found}"]


__all__ = [
    "AttemptFacts",
    "Change",
    "Copy",
    "Formula",
    "Grade",
    "Group",
    "Receipt",
    "Sampled",
    "SignatureError",
    "issue",
    "read",
    "recompute",
]
