"""What a run does, from its seed alone: who submits what and when, and which fault comes when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.contract import Lane, Mode, Verdict

COURSES = ("evening", "morning")
OPEN, DUE = "no_due_date", "due_tonight"
"""Assignments that the double grades; the second is due while students submit."""
REAL = "vector_add"
DUE_AFTER = 0.6
"""Of the span; what is uploaded later is late."""
RUNS = 0.09
CANCELS = 0.04
AGAIN = 0.55
"""Resubmissions of the same assignment a moment later: what superseding is for."""
DOUBLE_LANES = (Lane.h100, Lane.h200)
APART = Lane.h200
"""Here a submission is checked in one attempt and measured in another."""
NOISE = 0.1
"""Sources that do not even look like a submission: they reserve no place in the queue."""
_VERDICTS = tuple(sorted(set(Verdict) - {Verdict.grader_error, Verdict.passed}))


@dataclass(frozen=True)
class Scale:
    """How large a run is.

    Attributes:
        submissions: that the double grades, practice runs not counted.
        real: that the real judge grades.
        nodes: with the double; one more has the real judge.
        span_s: from the first submission to the last.
        rounds: how often every kind of fault comes.
        longest_s: how long most faults last at most; one in ten lasts twice as long.
        poison: submissions that kill every judge.
    """

    students: int
    submissions: int
    real: int
    nodes: int
    span_s: float
    rounds: int
    longest_s: float
    poison: int


FULL = Scale(students=300, submissions=2000, real=50, nodes=6, span_s=300, rounds=2, longest_s=8, poison=2)
QUICK = Scale(students=40, submissions=160, real=3, nodes=3, span_s=55, rounds=1, longest_s=4, poison=1)


@dataclass(frozen=True)
class Step:
    """One submission of one student.

    Attributes:
        at_s: when, from the beginning.
        key: its `Idempotency-Key`.
        cancel_after_s: when the student takes it back, from its acceptance.
        verdict: what the real judge has to find; the double says itself what it will.
    """

    at_s: float
    key: str
    student: int
    course: str
    assignment: str
    lane: Lane
    mode: Mode
    source: str
    cancel_after_s: float | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Fault:
    """Something that breaks.

    Attributes:
        seconds: how long; of what is over at once, nothing.
        pick: from 0 to 1, chooses among what it may hit.
    """

    at_s: float
    kind: str
    seconds: float
    pick: float


def courses_of(student: int) -> tuple[str, ...]:
    """The courses that a student is in; every tenth is in both."""
    return COURSES if student % 10 == 0 else (COURSES[student % len(COURSES)],)


def make_steps(seed: int, scale: Scale, examples: Sequence[tuple[Verdict, str]]) -> list[Step]:
    """Everything that is submitted, in order of time.

    Args:
        examples: verdict and source, for the real judge.
    """
    chance = random.Random(f"steps {seed}")
    steps: list[Step] = []
    while sum(step.mode is Mode.submission for step in steps) < scale.submissions:
        steps += _evening(chance, scale, len(steps))
    steps += [_poison(chance, scale, index) for index in range(scale.poison)]
    steps += [_real(chance, scale, index, *examples[index % len(examples)]) for index in range(scale.real)]
    return sorted(steps, key=lambda step: (step.at_s, step.key))


def _evening(chance: random.Random, scale: Scale, first: int) -> list[Step]:
    """One student works on one assignment: a few submissions, soon after each other; more come towards the end."""
    student = chance.randrange(scale.students)
    course, assignment = chance.choice(courses_of(student)), chance.choice((OPEN, DUE, DUE))
    lane, at_s = chance.choice(DOUBLE_LANES), scale.span_s * chance.random() ** 0.7
    steps: list[Step] = []
    while True:
        steps.append(
            Step(
                at_s=min(at_s, scale.span_s),
                key=f"s{first + len(steps)}",
                student=student,
                course=course,
                assignment=assignment,
                lane=lane,
                mode=Mode.run if chance.random() < RUNS else Mode.submission,
                source=_source(chance, first + len(steps)),
                cancel_after_s=chance.uniform(0, 2) if chance.random() < CANCELS else None,
            )
        )
        at_s += chance.uniform(0.2, 4)
        if chance.random() > AGAIN:
            return steps


def _source(chance: random.Random, number: int) -> str:
    """A source that tells the double what to find, and how long to take."""
    lines = [f"sleep {_duration_s(chance):.2f}"]
    if chance.random() < 0.6:
        lines.append(f"ratio {chance.uniform(0.6, 4):.3f}")
        lines += ["held"] if chance.random() < 0.05 else []
    else:
        lines.append(f"verdict {chance.choice(_VERDICTS)}")
    entry = "" if chance.random() < NOISE else "def double(a, out, negative, m, n, a_row): ...\n"
    # A statement, no comment: samples of the same kernel would be pooled, and each of these is to count for itself.
    return f"NUMBER = {number}\n" + "".join(f"# judge: {line}\n" for line in lines) + entry


def _duration_s(chance: random.Random) -> float:
    return chance.uniform(4, 10) if chance.random() < 0.01 else min(3.0, chance.expovariate(1 / 0.25))


def _poison(chance: random.Random, scale: Scale, index: int) -> Step:
    return Step(
        at_s=scale.span_s * chance.uniform(0.1, 0.6),
        key=f"poison{index}",
        student=index,
        course=courses_of(index)[0],
        assignment=OPEN,
        lane=DOUBLE_LANES[0],
        mode=Mode.submission,
        source=f"# poison {index}\n# judge: die\n",
        verdict=Verdict.grader_error,
    )


def _real(chance: random.Random, scale: Scale, index: int, verdict: Verdict, source: str) -> Step:
    # Even ones, which are all in the first course.
    student = 2 * chance.randrange(scale.students // 2)
    return Step(
        at_s=scale.span_s * 0.8 * chance.random(),
        key=f"real{index}",
        student=student,
        course=COURSES[0],
        assignment=REAL,
        lane=Lane.cpu,
        mode=Mode.submission,
        source=f"{source}\n# number {index}\n",
        verdict=verdict,
    )


def quota(steps: Sequence[Step], mode: Mode) -> int:
    """The most that one student submits in all: a quota of this refuses nobody, unless something counts twice."""
    counts: dict[int, int] = {}
    for step in steps:
        counts[step.student] = counts.get(step.student, 0) + (step.mode is mode)
    return max(1, *counts.values())


def make_faults(seed: int, scale: Scale, kinds: Sequence[str]) -> list[Fault]:
    """Every kind `scale.rounds` times, in an order of the seed's, spread over the time in which students submit."""
    chance = random.Random(f"faults {seed}")
    deck: list[str] = []
    for _ in range(scale.rounds):
        deck += chance.sample(kinds, len(kinds))
    gap_s = scale.span_s / (len(deck) + 1)
    return [
        Fault(
            at_s=(index + chance.uniform(0.5, 1.5)) * gap_s,
            kind=kind,
            seconds=chance.uniform(0.5, 1) * scale.longest_s * (2 if chance.random() < 0.1 else 1),
            pick=chance.random(),
        )
        for index, kind in enumerate(deck)
    ]
