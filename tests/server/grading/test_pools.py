"""One pool for one kernel: what is added, what it is worth for everybody in it, and what is no way round it."""

from __future__ import annotations

import dataclasses
import math
import random
import threading

import pytest
from sqlalchemy import delete, select, update

from autograder.assignment import Points
from autograder.contract import AttemptFailure, Kind, Lane, Language, Mode, Pair, Review, Verdict
from autograder.receipts import recompute
from broker.app import make_app
from server.dispatcher import Dispatcher
from server.grading import sample_sets
from server.grading.lock import lock_submission
from server.grading.receipts import receipt_of
from server.grading.requeue import requeue
from server.grading.review import decide
from server.grading.sample_sets import refresh_pools
from server.grading.source_normalization import normal
from server.leaderboard.board import board
from server.models import (
    Assignment,
    ChangeReason,
    GradeChange,
    Group,
    GroupMember,
    Line,
    Result,
    Sampling,
    State,
    Submission,
    User,
)
from tests.doubles.world import SOURCE, World, case, manifest, measurement, passed, wrong

GPU = {"lane": Lane.h200}
SAME = {**GPU, "source": SOURCE}


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("forge", lanes=(Lane.h200,), slots=4)
    yield world
    world.database.dispose()


def timed(*ratios):
    """A passed result whose pairs have these ratios."""
    pairs = tuple(Pair(100 * ratio, 100 * ratio, 100.0, 100.0) for ratio in ratios)
    return dataclasses.replace(passed(), measurements=(dataclasses.replace(measurement(), pairs=pairs),))


def grade(world, result, **changes):
    return world.grade(result, node="forge", **{**SAME, **changes})


def result_of(world, name):
    with world.database.reading() as session:
        row = session.get_one(Result, world.submission(name).result_id)
        session.expunge_all()
        return row


def changes_of(world, name):
    with world.database.reading() as session:
        query = select(GradeChange).join(Submission, Submission.id == GradeChange.submission_id)
        return [(row.reason, row.before, row.after) for row in
                session.scalars(query.where(Submission.public_id == name).order_by(GradeChange.id))]  # fmt: skip


def samplings(world):
    with world.database.reading() as session:
        rows = session.scalars(select(Sampling).order_by(Sampling.id)).all()
        session.expunge_all()
        return rows


# --- one kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        b"def vector_add(x, y, out, n):\n    # faster this time\n    pass\n",
        b"def vector_add(x,y,out,n):\n\n\tpass",
        b'"""Mine."""\ndef vector_add(x, y, out, n):\n    "adds"\n    pass\n',
    ],
)
def test_layout_comments_and_docstrings_make_no_other_kernel(other):
    assert normal(other, Language.triton) != normal(b"def vector_add(y, x, out, n):\n    pass\n", Language.triton)
    assert normal(other.replace(b'    "adds"\n', b""), Language.triton) == normal(SOURCE, Language.triton)


@pytest.mark.parametrize("other", [b"def vector_add(x, y, out, n):\n    return 1\n", b"N = 2\n" + SOURCE])
def test_another_statement_makes_another_kernel(other):
    assert normal(other, Language.triton) != normal(SOURCE, Language.triton)


def test_cuda_is_compared_by_tokens_and_preprocessor_lines():
    plain = b'#define N 4\nint f(int a) { return a+N; } // x\nconst char* s = "// no /* comment";\n'
    same = b'#define  N /* four */ 4\n\nint f( int a )\n{\n return a + N;\n}\nconst char *s="// no /* comment" ;'
    assert normal(plain, Language.cuda) == normal(same, Language.cuda)
    for other in (plain.replace(b"a+N", b"a-N"), plain.replace(b"no /*", b"yes /*"), plain.replace(b"4\n", b"4 ")):
        assert normal(other, Language.cuda) != normal(plain, Language.cuda)


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        # The judge grades it without the mark.
        (Language.triton, SOURCE, b"\xef\xbb\xbf" + SOURCE),
        (Language.triton, b"\xef\xbb\xbf" + SOURCE, b"\xef\xbb\xbf" + SOURCE + b"# again\n"),
        (Language.cuda, b"int a;", b"\xef\xbb\xbfint a;"),
        # What separates digits begins no character.
        (Language.cuda, b"n = 1'000; // it's", b"n = 1'000; // it is"),
        (Language.cuda, b"n = 1'0; /* ' */ m = 2'0;", b"n = 1'0; m = 2'0;"),
        (Language.cuda, b"i = threadIdx.x;", b"i = threadIdx . x;"),
        (Language.cuda, b"i = threadIdx.x;", b"i = threadIdx /* again */ .x;"),
        (Language.cuda, b"i = a[0].x;", b"i = a[0]. x;"),
        (Language.cuda, b"f(T... a);", b"f(T ...a);"),
    ],
)
def test_no_mark_comment_or_space_makes_another_kernel(language, one, other):
    assert normal(one, language) == normal(other, language)


def test_numbers_and_texts_are_no_layout():
    for one, other in ((b"n = 1'000;", b"n = 1'001;"), (b'"a . b"', b'"a.b"'), (b"c = ' ';", b"c = '  ';"),
                       (b"y = 1. f;", b"y = 1.f;"), (b"y = .5 f;", b"y = .5f;"), (b"a = 1 .x;", b"a = 1.x;"),
                       (b"#define x (1)\n", b"#define x(1)\n")):  # fmt: skip
        assert normal(one, Language.cuda) != normal(other, Language.cuda)


@pytest.mark.parametrize("source", [b"def f(:", b"\xff", b"(" * 5000])
def test_what_cannot_be_read_is_compared_by_its_bytes(source):
    assert normal(source, Language.triton) == source


# --- the pool --------------------------------------------------------------------------------------------------------


def test_the_same_kernel_again_adds_its_samples_and_both_have_the_pools_numbers(world):
    first = grade(world, timed(1.3, 1.3, 1.3))
    assert result_of(world, first).ratio == pytest.approx(1.3)
    second = grade(world, timed(5.0, 5.0, 5.0, 5.0), source=SOURCE + b"# once more\n")
    for name in (first, second):
        assert result_of(world, name).ratio == pytest.approx(5.0)
        assert result_of(world, name).pooled_attempts == 2
    assert world.submission(first).points == world.submission(second).points
    assert [reason for reason, _, _ in changes_of(world, first)] == [ChangeReason.graded, ChangeReason.pooled]
    assert [len(row.measurement["pairs"]) for row in samplings(world)] == [3, 4]


@pytest.mark.parametrize(
    "other", [{"person": "Bob"}, {"source": SOURCE + b"N = 1\n"}, {"lane": Lane.cpu, "node": "anvil"}],
)  # fmt: skip
def test_another_persons_kernel_and_another_lane_have_their_own_pool(world, other):
    first = grade(world, timed(2.0, 2.0))
    world.grade(timed(4.0, 4.0), **{**SAME, "node": "forge", **other})
    assert result_of(world, first).ratio == pytest.approx(2.0)


def test_members_of_a_group_draw_no_lot_each(world):
    group_up(world, "Alice", "Bob")
    first = grade(world, timed(1.10, 1.10, 1.10))
    lucky = grade(world, timed(1.00, 1.00, 1.00, 1.10), person="Bob")
    assert world.submission(first).pool == world.submission(lucky).pool
    assert result_of(world, first).ratio == result_of(world, lucky).ratio == pytest.approx(1.10)


def group_up(world, *people):
    """These people do the rung together from now on, whatever they did before; as staff change groups."""
    with world.database.transaction() as session:
        rung = session.scalars(select(Assignment)).one()
        session.execute(delete(GroupMember))
        group = Group(course_id=rung.course_id, assignment_id=rung.id, code=f"{world.now:%H%M%S}", created_at=world.now)
        session.add(group)
        session.flush()
        for user in session.scalars(select(User).where(User.name.in_(people))).all():
            session.add(GroupMember(group_id=group.id, assignment_id=rung.id, user_id=user.id, joined_at=world.now))
    world.wait(1)


@pytest.mark.parametrize("person", ["Alice", "Bob"])
def test_who_comes_into_a_group_goes_on_with_the_pool_that_one_of_them_has(world, person):
    """As where groups were formed before pools knew of them, or staff put people together later."""
    first = grade(world, timed(2.0, 2.0, 2.0))
    group_up(world, "Alice", "Bob")
    lucky = grade(world, timed(1.0, 1.0), source=SOURCE + b"# once more\n", person=person)
    assert world.submission(lucky).pool == world.submission(first).pool
    assert result_of(world, lucky).ratio == pytest.approx(2.0)


def test_a_change_of_a_group_opens_no_other_pool(world):
    group_up(world, "Alice", "Bob")
    first = grade(world, timed(2.0, 2.0, 2.0), person="Bob")
    group_up(world, "Bob")
    alone = grade(world, timed(1.0), person="Bob")
    group_up(world, "Alice", "Bob")
    again = grade(world, timed(1.0), person="Alice")
    assert {world.submission(name).pool for name in (first, alone, again)} == {world.submission(first).pool}
    assert result_of(world, again).ratio == pytest.approx(2.0)


def test_of_two_pools_for_one_kernel_the_older_goes_on(world):
    first, second = grade(world, timed(2.0), person="Bob"), grade(world, timed(3.0), person="Alice")
    group_up(world, "Alice", "Bob")
    later = [grade(world, timed(2.0), person=person) for person in ("Alice", "Bob")]
    assert world.submission(first).pool != world.submission(second).pool
    assert [world.submission(name).pool for name in later] == [world.submission(first).pool] * 2


@pytest.mark.parametrize("other", [{"source": SOURCE + b"N = 1\n"}, {"lane": Lane.cpu, "node": "anvil"}])
def test_in_a_group_another_kernel_and_another_lane_have_their_own_pool(world, other):
    first = grade(world, timed(2.0))
    group_up(world, "Alice", "Bob")
    second = world.grade(timed(4.0), **{**SAME, "node": "forge", "person": "Bob", **other})
    assert world.submission(first).pool != world.submission(second).pool


def test_who_left_a_group_and_never_had_the_kernel_has_none_of_the_others_samples(world):
    group_up(world, "Alice", "Bob")
    theirs = grade(world, timed(2.0), person="Bob")
    group_up(world, "Alice")
    mine = grade(world, timed(4.0))
    assert world.submission(theirs).pool != world.submission(mine).pool


def test_two_who_are_put_together_while_one_is_recorded_have_one_pool(world):
    """The first is told its pool and has not committed when the second asks, who is in its group by then."""
    names = [world.submit("Alice", **SAME), world.submit("Bob", **SAME)]
    told = threading.Event()

    def ask(name, *, lasting_s):
        with world.database.transaction() as session:
            row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
            sample_sets.pool_of(session, lock_submission(session, row.id))
            session.flush()
            told.set()
            threading.Event().wait(lasting_s)

    first = threading.Thread(target=ask, args=(names[0],), kwargs={"lasting_s": 1.0})
    first.start()
    told.wait(30)
    group_up(world, "Alice", "Bob")
    ask(names[1], lasting_s=0)
    first.join()
    assert world.submission(names[0]).pool == world.submission(names[1]).pool


# --- what staff reject -----------------------------------------------------------------------------------------------


def review(world, name, decision):
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        decide(session, row, decision, actor=None, reason="reviewed it", now=world.now)


def numbers(world, name):
    row = result_of(world, name)
    return row.ratio, row.ratio_low, row.ratio_high, row.pooled_attempts, world.submission(name).points


def followed(world, name):
    """What does not follow from its receipt."""
    with world.database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        return recompute(receipt_of(session, row, now=world.now))


def test_the_samples_of_a_rejected_one_count_for_nobody_until_it_is_cleared(world):
    clean, forged = grade(world, timed(3.0, 3.0, 3.0)), grade(world, timed(1.0, 1.0, 1.0, 1.0))
    together = [numbers(world, name) for name in (clean, forged)]
    assert together[0][0] == pytest.approx(1.0)
    review(world, forged, Review.rejected)
    assert numbers(world, clean)[0] == pytest.approx(3.0)
    assert numbers(world, clean)[3] == numbers(world, forged)[3] == 1
    assert world.submission(forged).points == 60
    assert changes_of(world, forged)[-1][0] is ChangeReason.reviewed
    assert changes_of(world, clean)[-1][0] is ChangeReason.pooled
    assert followed(world, clean) == followed(world, forged) == []
    with world.database.transaction() as session:
        assert refresh_pools(session, now=world.now) == 0
    review(world, forged, Review.cleared)
    assert [numbers(world, name) for name in (clean, forged)] == together
    assert followed(world, clean) == followed(world, forged) == []


def test_what_is_handed_in_and_measured_after_a_rejection_stays_apart_from_it(world):
    forged = grade(world, timed(1.0, 1.0, 1.0, 1.0))
    review(world, forged, Review.rejected)
    clean = grade(world, timed(3.0, 3.0, 3.0))
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == forged)).one()
        requeue(session, lock_submission(session, row.id), now=world.now)
    world.finish(world.take("forge"), timed(1.0, 1.0, 1.0, 1.0), "forge")
    assert numbers(world, clean)[:4:3] == (pytest.approx(3.0), 1)
    assert numbers(world, forged)[:4:3] == (pytest.approx(1.0), 2)
    review(world, forged, Review.held)
    assert [numbers(world, name)[3] for name in (clean, forged)] == [3, 3]
    assert numbers(world, clean)[0] == pytest.approx(1.0)


def test_a_rejected_one_that_a_full_pool_took_nothing_of_has_its_own_numbers(world, monkeypatch):
    monkeypatch.setattr(sample_sets, "MOST_ATTEMPTS", 1)
    clean, forged = grade(world, timed(3.0, 3.0, 3.0)), grade(world, timed(1.0, 1.0))
    review(world, forged, Review.rejected)
    assert [numbers(world, name)[0] for name in (clean, forged)] == [pytest.approx(3.0), pytest.approx(1.0)]
    assert followed(world, clean) == followed(world, forged) == []
    review(world, forged, Review.cleared)
    assert numbers(world, forged)[0] == pytest.approx(3.0)


@pytest.mark.parametrize("decision", [Review.rejected, Review.cleared])
def test_who_was_passed_over_by_a_decision_follows_later(world, monkeypatch, decision):
    clean, forged = grade(world, timed(3.0, 3.0, 3.0)), grade(world, timed(1.0, 1.0, 1.0, 1.0))
    if decision is Review.cleared:
        review(world, forged, Review.rejected)
    world.wait(7200)
    before = numbers(world, clean)[0]
    with monkeypatch.context() as patched:
        patched.setattr("server.grading.rejected.update_pool", lambda *_args, **_more: 0)
        review(world, forged, decision)
    assert numbers(world, clean)[0] == before
    with world.database.transaction() as session:
        refresh_pools(session, now=world.now)
    assert numbers(world, clean)[0] == pytest.approx(3.0 if decision is Review.rejected else 1.0)


def test_what_was_rejected_before_rejecting_took_samples_out_is_put_apart_later(world):
    clean, forged = grade(world, timed(3.0, 3.0, 3.0)), grade(world, timed(1.0, 1.0, 1.0, 1.0))
    world.wait(7200)
    with world.database.transaction() as session:
        session.execute(update(Submission).where(Submission.public_id == forged).values(review=Review.rejected))
    dispatcher = Dispatcher(world.database, make_app("test", world.config.broker_url), world.config)
    assert [dispatcher.pools(), dispatcher.pools()] == [1, 0]
    assert [numbers(world, name)[0] for name in (clean, forged)] == [pytest.approx(3.0), pytest.approx(1.0)]
    assert followed(world, clean) == followed(world, forged) == []


# --- what is no way round it -----------------------------------------------------------------------------------------


def test_the_same_kernel_again_keeps_its_speed_points_where_groups_share_odd_points(world):
    """0.7 points for three groups: their thirds together are less in the last digit than they are worth."""
    with world.database.transaction() as session:
        world.publish(session, manifest(points=Points(correctness=0.7, speed=40)))
    result = timed(2.0, 2.0, 2.0)
    result = dataclasses.replace(result, cases=(*result.cases, case("odd", group="third")))
    first, second = grade(world, result), grade(world, result)
    assert world.submission(second).points > 30
    assert world.submission(first).points == pytest.approx(world.submission(second).points)


def test_a_practice_run_adds_nothing(world):
    grade(world, timed(2.0, 2.0))
    grade(world, timed(1.0, 1.0), mode=Mode.run, line=Line.run)
    assert len(samplings(world)) == 1


def test_samples_of_attempts_that_failed_are_kept(world):
    """A kernel that fails when it sees that it was slow draws no new lot by it."""
    slow = dataclasses.replace(
        timed(4.0, 4.0, 4.0),
        verdict=Verdict.wrong_answer,
        cases=(case("small"), case("large", Verdict.wrong_answer, ranked=True), case("hidden 7")),
    )
    grade(world, slow)
    second = grade(world, timed(1.0, 1.0))
    assert result_of(world, second).ratio == pytest.approx(4.0)


def test_samples_of_attempts_in_which_our_side_failed_are_kept(world):
    submission = world.submit(**SAME)
    task = world.take("forge")
    world.finish(task, dataclasses.replace(timed(4.0, 4.0, 4.0), verdict=Verdict.grader_error), "forge")
    assert world.state_of(submission) is State.queued
    world.finish(world.take("forge"), timed(1.0, 1.0), "forge")
    assert result_of(world, submission).ratio == pytest.approx(4.0)


def test_a_failure_without_samples_adds_none(world):
    world.submit(**SAME)
    task = world.take("forge")
    world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the node was stopped"), "forge")
    assert samplings(world) == []


@pytest.mark.parametrize("bad", [(0.0, 1.0), (-1.0,)])
def test_samples_that_are_no_times_are_refused_and_nothing_is_written(world, bad):
    submission = world.submit(**SAME)
    world.finish(world.take("forge"), timed(*bad), "forge")
    assert world.submission(submission).result_id is None
    assert samplings(world) == []


def test_a_full_pool_stands(world, monkeypatch):
    monkeypatch.setattr(sample_sets, "MOST_ATTEMPTS", 2)
    first = grade(world, timed(2.0))
    grade(world, timed(2.0))
    last = grade(world, timed(1.0, 1.0, 1.0, 1.0))
    assert [result_of(world, name).ratio for name in (first, last)] == [2.0, 2.0]
    assert len(samplings(world)) == 2


def test_a_held_one_in_the_pool_has_the_numbers_and_no_points_by_them(world):
    held = grade(world, dataclasses.replace(timed(1.0), held=True, held_reason="too fast"))
    assert world.submission(held).points == 60
    grade(world, timed(1.0))
    assert (world.submission(held).review, world.submission(held).points) == (Review.held, 60)


def test_what_was_passed_over_is_brought_up_to_date(world, monkeypatch):
    first = grade(world, timed(2.0, 2.0))
    monkeypatch.setattr("server.grading.results.update_others", lambda *_args, **_more: 0)
    grade(world, timed(4.0, 4.0, 4.0))
    assert result_of(world, first).ratio == pytest.approx(2.0)
    with world.database.transaction() as session:
        assert refresh_pools(session, now=world.now) == 1
    with world.database.transaction() as session:
        assert refresh_pools(session, now=world.now) == 0
    assert result_of(world, first).ratio == pytest.approx(4.0)


def test_what_was_taken_out_of_a_pool_counts_no_more(world):
    """As a roll-back takes out what a proposal had measured: others had its numbers by then."""
    first, second = grade(world, timed(2.0, 2.0, 2.0)), grade(world, timed(4.0, 4.0, 4.0))
    assert result_of(world, first).ratio == pytest.approx(3.0)
    with world.database.transaction() as session:
        rolled_back = world.attempts(second)[0].id
        session.execute(update(Sampling).where(Sampling.attempt_id == rolled_back).values(pool="apart"))
        assert refresh_pools(session, now=world.now) == 2
    assert (result_of(world, first).ratio, result_of(world, first).pooled_attempts) == (pytest.approx(2.0), 1)
    with world.database.transaction() as session:
        assert refresh_pools(session, now=world.now) == 0


def test_two_that_are_graded_at_the_same_time_both_count(world):
    names = [world.submit(**SAME), world.submit(**SAME)]
    tasks = [world.take("forge"), world.take("forge")]
    for task, ratio in zip(tasks, (2.0, 4.0), strict=True):
        world.finish(task, timed(*[ratio] * 3), "forge")
    assert [result_of(world, name).ratio for name in names] == [pytest.approx(3.0)] * 2


def test_many_resubmissions_through_the_server_gain_nothing(world):
    """The bite: the best single attempt of them would be far ahead of what the board shows."""
    source, best = random.Random(7), math.inf
    for number in range(12):
        shift = source.gauss(0, 0.02)
        ratios = [2.0 * (1 + shift + source.gauss(0, 0.01)) for _ in range(7)]
        best = min(best, sorted(ratios)[3])
        grade(world, timed(*ratios), source=SOURCE + b"# again\n" * number)
    with world.database.reading() as session:
        entries = board(session, assignment=session.scalars(select(Assignment)).one(), lane=Lane.h200).entries
        points = set(session.scalars(select(Submission.points)))
    assert best < 2.0 * 0.98
    assert [entry.ratio for entry in entries] == [pytest.approx(2.0, rel=0.006)]
    assert len(points) == 1


def test_a_wrong_answer_without_times_adds_nothing(world):
    grade(world, wrong())
    assert samplings(world) == []


def test_what_the_judge_says_of_its_ratio_is_worked_out_from_the_samples(world):
    """A result says 1.0; its samples say 2.5, and they count: so a receipt can be checked by whoever has it."""
    name = grade(world, timed(2.5, 2.5, 2.5))
    assert result_of(world, name).ratio == pytest.approx(2.5)
