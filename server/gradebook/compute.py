"""What the facts about a student come to: which submission counts in each assignment, and its grade. Pure.

The best submission counts, after what lateness leaves of it, unless the student chose one. What was uploaded after the
end counts for nothing. Where staff set the points, those are the grade, and that assignment uses no late day: a new
submission there could otherwise take a day away from where it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from server.courses.courses import AssignmentDetail
from server.gradebook.grade_inputs import Facts, HandedIn, Place
from server.gradebook.latedays import Answered, Candidate, Counted, LatePolicy, spend

NOTHING = 0
"""Key of a candidate that is no submission: only the quiz was answered."""


@dataclass(frozen=True)
class Outcome:
    """The columns of a `Grade` that follow from the facts; `server.models.Grade` says what each means."""

    assignment_id: int
    submission_id: int | None
    chosen: bool
    submission_points: float
    quiz_points: float
    rubric_points: float
    days_late: int
    late_days: int
    late_penalty: float
    override_points: float | None
    points: float
    possible: float


def outcomes(facts: Facts, user_id: int) -> list[Outcome]:
    """The student's grades, in the order of `facts.details`."""
    candidates = [_candidates(facts, user_id, detail) for detail in facts.details]
    set_by_staff = [(user_id, detail.row.id) in facts.overrides for detail in facts.details]
    policy = facts.policy(user_id)
    spent = spend(policy, [[] if is_set else some for some, is_set in zip(candidates, set_by_staff, strict=True)])
    found = []
    for detail, some, is_set, counted in zip(facts.details, candidates, set_by_staff, spent, strict=True):
        alone = spend(LatePolicy(0, penalty=policy.penalty), [some])[0] if is_set else counted
        found.append(_outcome(facts, (user_id, detail.row.id), detail, alone))
    return found


def eligible(facts: Facts, user_id: int, detail: AssignmentDetail) -> Sequence[HandedIn]:
    """The submissions that were not uploaded after the end; among several as late as each other the best alone."""
    dates = facts.deadlines(user_id, detail)
    best: dict[int, HandedIn] = {}
    for one in facts.submissions.get((user_id, detail.row.id), ()):
        days = dates.days_late(one.uploaded_at)
        if not dates.is_closed(one.uploaded_at) and (days not in best or one.points > best[days].points):
            best[days] = one
    return [one for _, one in sorted(best.items())]


def chosen_of(facts: Facts, user_id: int, detail: AssignmentDetail) -> HandedIn | None:
    """What the student chose, if it has points and is not too late; until then the best counts."""
    wanted = facts.chosen.get((user_id, detail.row.id))
    dates = facts.deadlines(user_id, detail)
    found = (one for one in facts.submissions.get((user_id, detail.row.id), ()) if one.id == wanted)
    return next((one for one in found if not dates.is_closed(one.uploaded_at)), None)


def _candidates(facts: Facts, user_id: int, detail: AssignmentDetail) -> list[Candidate]:
    dates = facts.deadlines(user_id, detail)
    answered = tuple(
        Answered(one.points, dates.days_late(one.uploaded_at))
        for one in facts.answers.get((user_id, detail.row.id), ())
        if not dates.is_closed(one.uploaded_at)
    )
    weight = detail.row.weight
    chosen = chosen_of(facts, user_id, detail)
    counting = [chosen] if chosen else eligible(facts, user_id, detail)
    found = [Candidate(one.id, one.points, dates.days_late(one.uploaded_at), weight, answered) for one in counting]
    return found or ([Candidate(NOTHING, 0.0, 0, weight, answered)] if answered else [])


def _outcome(facts: Facts, place: Place, detail: AssignmentDetail, counted: Counted | None) -> Outcome:
    override, rubric = facts.overrides.get(place), facts.rubric.get(place, 0.0)
    candidate = counted.candidate if counted else Candidate(NOTHING, 0.0, 0)
    left = counted.points if counted else 0.0
    return Outcome(
        assignment_id=detail.row.id,
        submission_id=candidate.key or None,
        chosen=candidate.key != NOTHING and facts.chosen.get(place) == candidate.key,
        submission_points=candidate.points,
        quiz_points=candidate.on_time - candidate.points,
        rubric_points=rubric,
        days_late=candidate.days_late,
        late_days=counted.charged if counted else 0,
        late_penalty=candidate.on_time - left,
        override_points=override,
        points=max(0.0, left + rubric) if override is None else override,
        possible=detail.maximum_points,
    )
