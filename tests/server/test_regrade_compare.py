"""What a regrade may do to points: noise lowers nothing, and nothing is lowered undeclared."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from autograder.contract import Verdict
from autograder.scores import Speed
from server.grading.compare import CLOSE, Stand, Terms, decide, overlap
from server.models import Why

RATIOS = st.floats(0.05, 20)
SPREADS = st.floats(0.0, 0.3)


@st.composite
def speeds(draw):
    ratio, spread = draw(RATIOS), draw(SPREADS)
    return Speed(ratio, ratio * (1 - spread), ratio * (1 + spread), 100 * ratio)


def worth(speed, most):
    """Any formula that falls with the ratio."""
    return most * min(1.0, max(0.0, 1 - math.log(speed.ratio) / math.log(10)))


@st.composite
def passed(draw, most):
    speed = draw(speeds())
    return Stand(Verdict.passed, 1.0, 60.0, worth(speed, most), speed)


@st.composite
def stands(draw, most):
    if draw(st.booleans()):
        return draw(passed(most))
    share = draw(st.sampled_from([0.0, 0.5]))
    return Stand(draw(st.sampled_from([Verdict.wrong_answer, Verdict.time_limit])), share, 60.0 * share, 0.0)


@st.composite
def terms_of(draw, before, most, **given_terms):
    now = worth(before.speed, most) if before.speed else 0.0
    chosen = {"same_tests": draw(st.booleans()), "may_lower": draw(st.booleans()), **given_terms}
    return Terms(speed_points_now=now, correctness_points_now=60.0 * before.share, **chosen)


@given(st.data())
def test_nothing_is_lowered_that_was_not_declared(data):
    before, most = data.draw(stands(40.0)), data.draw(st.sampled_from([0.0, 20.0, 40.0, 80.0]))
    terms = data.draw(terms_of(before, most, may_lower=False))
    decision = decide(before, data.draw(stands(most)), terms)
    assert decision.points >= before.points - CLOSE


@given(st.data())
def test_noise_lowers_nothing_even_where_a_correction_is_declared(data):
    most = data.draw(st.sampled_from([20.0, 40.0, 80.0]))
    before, found = data.draw(passed(40.0)), data.draw(passed(most))
    terms = data.draw(terms_of(before, most, may_lower=True))
    decision = decide(before, found, terms)
    if overlap(before.speed, found.speed):
        # At least what the speed before is worth by the formula of now.
        assert decision.points >= min(before.points, 60.0 + worth(before.speed, most)) - CLOSE
        assert decision.why in {Why.within_noise, Why.unchanged, Why.points_changed}
        if most == 40.0:
            assert decision.points >= before.points - CLOSE
    else:
        assert decision.why in {Why.speed_changed, Why.tests_changed}


@given(st.data())
def test_what_moves_has_the_points_that_are_said(data):
    before, found = data.draw(stands(40.0)), data.draw(stands(40.0))
    decision = decide(before, found, data.draw(terms_of(before, 40.0)))
    if decision.moves:
        kept = found.correctness_points + max(found.speed_points, decision.speed_floor or 0.0)
        assert decision.points == kept
    else:
        assert decision.points == before.points


@given(st.data())
def test_a_better_finding_always_raises(data):
    before, found = data.draw(passed(40.0)), data.draw(passed(40.0))
    decision = decide(before, found, data.draw(terms_of(before, 40.0)))
    if found.points > before.points + 1e-6:
        assert decision.moves
        assert decision.points >= found.points - CLOSE


def test_what_had_nothing_gets_what_was_found():
    found = Stand(Verdict.wrong_answer, 0.5, 30.0, 0.0)
    decision = decide(None, found, Terms(same_tests=True))
    assert (decision.why, decision.moves, decision.points) == (Why.first_result, True, 30.0)


def test_the_reasons():
    def why(before, found, **terms):
        said = {"same_tests": True, "speed_points_now": before.speed_points, "correctness_points_now": 60.0}
        return decide(before, found, Terms(**{**said, **terms})).why

    one = Stand(Verdict.passed, 1.0, 60.0, 20.0, Speed(2.0, 1.9, 2.1, 200))
    near = Stand(Verdict.passed, 1.0, 60.0, 19.0, Speed(2.1, 2.0, 2.2, 210))
    far = Stand(Verdict.passed, 1.0, 60.0, 10.0, Speed(4.0, 3.9, 4.1, 400))
    failed = Stand(Verdict.wrong_answer, 0.0, 0.0, 0.0)
    assert why(one, one) is Why.unchanged
    assert why(one, near) is Why.within_noise
    assert why(one, far) is Why.speed_changed
    assert why(one, far, same_tests=False) is Why.tests_changed
    assert why(one, failed) is Why.verdict_changed
    assert why(one, failed, same_tests=False) is Why.tests_changed
    assert why(one, near, speed_points_now=40.0) is Why.points_changed
    assert why(one, far, same_samples=True) is Why.points_changed
