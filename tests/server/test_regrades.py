"""A proposal to grade again: nothing counts before it is applied, noise never lowers, a roll-back is exact."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from sqlalchemy import func, select

from autograder.assignment import Case, LanePolicy, Points
from autograder.contract import AttemptFailure, Kind, Lane, Mode, Review, Verdict, Work
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.grading.confirm import _confirm, confirm_due
from server.grading.requeue import requeue
from server.grading.review import decide as decide_review
from server.grading.sample_sets import refresh_pools
from server.models import (
    Assignment,
    AssignmentVersion,
    AuditEntry,
    ChangeReason,
    GradeChange,
    Group,
    GroupMember,
    Line,
    Notification,
    Regrade,
    RegradeItem,
    RegradeItemState,
    RegradeKind,
    RegradeState,
    Result,
    Role,
    Sampling,
    State,
    Submission,
    Trial,
    User,
    Why,
)
from server.regrades import lifecycle, proposing, runner, views
from server.regrades.selection import Selection, Which
from server.submissions import submissions
from tests.doubles.world import World, case, manifest, measurement, passed, wrong

STRICTER = (*manifest().cases, Case("odd", {"n": 7}, "float32"))


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("forge", lanes=(Lane.h200,))
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
    yield world
    world.database.dispose()


class Staff:
    """Tom, who works on proposals; what the dispatcher does is `work`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def publish(self, **changes: object) -> None:
        """A new version of the rung."""
        with self.world.database.transaction() as session:
            self.world.publish(session, manifest(**changes))

    def propose(self, which: Which = Which.all, *, kind: RegradeKind = RegradeKind.rerun, **changes: object) -> int:
        """A draft."""
        selection = changes.pop("selection", Selection(which))
        arguments = {"reason": "A case was wrong.", "kind": kind, "selection": selection, **changes}
        with self.world.database.transaction() as session:
            assignment = session.scalars(select(Assignment)).one()
            made = proposing.propose(session, self.member(session), assignment, now=self.world.now, **arguments)
            return made.id

    def member(self, session, name: str = "Tom") -> courses.Membership:
        user = session.scalars(select(User).where(User.name == name)).one()
        return courses.membership(session, user, "gpu")

    def do(self, act, regrade: int, *, revision: int | None = None, **arguments: object) -> None:
        """What Tom does, having seen it as it is now."""
        with self.world.database.transaction() as session:
            seen = revision if revision is not None else session.get_one(Regrade, regrade).revision
            act(session, self.member(session), regrade, revision=seen, now=self.world.now, **arguments)

    def work(self) -> None:
        """Until there is nothing to do."""
        with self.world.database.reading() as session:
            ids = runner.active_ids(session)
        for regrade in ids:
            while self.step(regrade):
                pass

    def step(self, regrade: int) -> int:
        with self.world.database.transaction() as session:
            return runner.step_one(session, regrade, now=self.world.now)

    def grade(self, result=None, node: str = "anvil") -> None:
        """One attempt of the next that waits."""
        self.world.finish(self.world.take(node), result or passed(), node)
        self.work()

    def run(self, regrade: int, *results, node: str = "anvil") -> None:
        """Start it, and grade its submissions with these results."""
        self.do(lifecycle.start, regrade)
        for result in results:
            self.grade(result, node)

    def regrade(self, regrade: int) -> Regrade:
        return self.one(select(Regrade).where(Regrade.id == regrade))

    def item(self, regrade: int, submission: str) -> RegradeItem:
        query = select(RegradeItem).join(Submission, Submission.id == RegradeItem.submission_id)
        return self.one(query.where(RegradeItem.regrade_id == regrade, Submission.public_id == submission))

    def version_of(self, submission: str) -> int:
        query = select(AssignmentVersion.number).join(Submission, Submission.version_id == AssignmentVersion.id)
        return self.one(query.where(Submission.public_id == submission))

    def changes(self, submission: str) -> list[ChangeReason]:
        query = select(GradeChange.reason).join(Submission, Submission.id == GradeChange.submission_id)
        with self.world.database.reading() as session:
            return list(session.scalars(query.where(Submission.public_id == submission).order_by(GradeChange.id)))

    def one(self, query):
        with self.world.database.reading() as session:
            found = session.scalars(query).one()
            session.expunge_all()
            return found


@pytest.fixture
def staff(world):
    return Staff(world)


def stands(world, name):
    """All of a submission that counts, or that others see."""
    row = world.submission(name)
    names = (
        "state", "verdict", "review", "points", "result_id", "version_id", "pool", "line", "work", "place_at",
        "confirmations", "finished_at", "remeasured", "attempts_made", "superseded_by_id", "phase",
    )  # fmt: skip
    return {each: getattr(row, each) for each in names}


GPU = {"lane": Lane.h200, "node": "forge"}


def review(world, name, decision):
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        decide_review(session, row, decision, actor=None, reason="Looked at.", now=world.now)


def counting(world, name):
    """The result that counts."""
    number = world.submission(name).result_id
    return next(row for row in world.results(name) if row.id == number)


def strict(ratio=1.0, **changes):
    """A result of the stricter version."""
    plain = passed(ratio)
    return dataclasses.replace(plain, cases=(*plain.cases, case("odd")), **changes)


def strict_wrong():
    plain = wrong()
    return dataclasses.replace(plain, cases=(*plain.cases, case("odd", Verdict.wrong_answer)))


# --- nothing counts before it is applied -----------------------------------------------------------------------------


def test_a_proposal_changes_nothing_that_counts_until_it_is_applied(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    assert staff.regrade(regrade).state is RegradeState.drafted
    assert stands(world, name) == before
    staff.run(regrade)
    waiting = world.submission(name)
    assert (waiting.state, waiting.line, waiting.points) == (State.queued, Line.regrade, before["points"])
    assert waiting.result_id == before["result_id"]
    staff.grade(strict(1.25), "forge")
    assert stands(world, name) == before
    assert staff.regrade(regrade).state is RegradeState.ready
    item = staff.item(regrade, name)
    assert (item.state, item.why, item.moves) == (RegradeItemState.found, Why.tests_changed, True)
    assert (item.before_points, item.new_points) == (pytest.approx(before["points"]), pytest.approx(100))
    assert len(world.results(name)) == 2
    with world.database.transaction() as session:
        # Its samples are apart: nothing that follows a pool sees them.
        assert refresh_pools(session, now=world.now) == 0
    assert stands(world, name) == before


def test_the_trial_is_graded_by_the_version_of_the_proposal(world, staff):
    name = world.grade(passed(2.0), **GPU)
    staff.publish(cases=STRICTER)
    staff.run(staff.propose())
    task = world.take("forge")
    with world.database.reading() as session:
        new = session.scalars(select(AssignmentVersion.bundle_hash).order_by(AssignmentVersion.number.desc())).first()
        assert session.scalars(select(func.count()).select_from(Trial)).one() == 1
    assert task.request.bundle == new
    assert staff.version_of(name) == 1


def test_applying_moves_result_version_points_and_leaves_a_trail(world, staff):
    name = world.grade(passed(2.0), **GPU)
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.run(regrade, strict(1.25), node="forge")
    staff.do(lifecycle.apply, regrade)
    row = world.submission(name)
    assert (row.points, row.result_id) == (pytest.approx(100), world.results(name)[-1].id)
    assert staff.version_of(name) == 2
    assert staff.changes(name) == [ChangeReason.graded, ChangeReason.regraded]
    assert staff.regrade(regrade).state is RegradeState.applied
    with world.database.reading() as session:
        assert set(session.scalars(select(Sampling.pool).where(Sampling.pool == row.pool))) == {row.pool}
        actions = list(session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)))
    told = staff.one(select(Notification))
    assert actions == ["regrade.proposed", "regrade.started", "regrade.applied"]
    assert told.url == f"/submissions/{name}"
    assert "100 points" in told.title


def test_a_roll_back_is_exact(world, staff):
    names = [world.grade(passed(2.0), **GPU), world.grade(wrong(), "Bob", **GPU)]
    before = [stands(world, name) for name in names]
    staff.publish(cases=STRICTER)
    regrade = staff.propose(may_lower=True)
    staff.run(regrade, strict_wrong(), strict(1.25), node="forge")
    staff.do(lifecycle.apply, regrade)
    assert [world.submission(name).points for name in names] != [one["points"] for one in before]
    with pytest.raises(InvalidInputError):
        staff.do(lifecycle.roll_back, regrade, reason=" ")
    staff.do(lifecycle.roll_back, regrade, reason="The new case was wrong itself.")
    assert [stands(world, name) for name in names] == before
    assert staff.changes(names[0])[-1] is ChangeReason.rolled_back
    assert staff.regrade(regrade).state is RegradeState.rolled_back
    with world.database.transaction() as session:
        assert refresh_pools(session, now=world.now) == 0
    assert [stands(world, name) for name in names] == before


def test_a_roll_back_takes_its_samples_from_all_who_had_them(world, staff):
    same = {"source": b"def vector_add(x, y, out, n): ...\n", **GPU}
    world.grade(passed(2.0), **same)
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.run(regrade, strict(1.25), node="forge")
    staff.do(lifecycle.apply, regrade)
    later = world.grade(strict(2.0), **same)
    together = world.submission(later).points
    assert world.results(later)[-1].pooled_attempts == 2
    world.wait(7200)
    staff.do(lifecycle.roll_back, regrade, reason="The new case was wrong itself.")
    (row,) = world.results(later)
    assert (row.pooled_attempts, row.ratio) == (1, pytest.approx(2.0))
    assert world.submission(later).points < together


def test_what_is_graded_again_in_the_same_way_keeps_its_pool_though_a_group_was_formed_since(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name).pool
    with world.database.transaction() as session:
        rung = session.scalars(select(Assignment)).one()
        group = Group(course_id=rung.course_id, assignment_id=rung.id, code="code", created_at=world.now)
        session.add(group)
        session.flush()
        alice = session.scalars(select(User).where(User.name == "Alice")).one()
        session.add(GroupMember(group_id=group.id, assignment_id=rung.id, user_id=alice.id, joined_at=world.now))
    regrade = staff.propose(may_lower=True)
    staff.run(regrade, passed(1.5), node="forge")
    staff.do(lifecycle.apply, regrade)
    assert world.submission(name).pool == before
    assert world.results(name)[-1].pooled_attempts == 2


@pytest.mark.parametrize("when", ["before it is proposed", "before it is applied", "after it is applied"])
def test_a_rejected_one_lends_nobody_its_samples_through_a_regrade_and_its_roll_back(world, staff, when):
    same = {"source": b"def vector_add(x, y, out, n): ...\n", **GPU}
    clean, forged = world.grade(passed(3.0), **same), world.grade(passed(1.0), **same)
    staff.publish(cases=STRICTER)
    if when == "before it is proposed":
        review(world, forged, Review.rejected)
    regrade = staff.propose(may_lower=True)
    staff.run(regrade, strict(3.0), node="forge")
    if when == "before it is applied":
        review(world, forged, Review.rejected)
    staff.grade(strict(1.0), "forge")
    staff.do(lifecycle.apply, regrade)
    if when == "before it is applied":
        # The points of the clean one changed by that, which staff are told first.
        staff.do(lifecycle.recheck, regrade)
        staff.do(lifecycle.apply, regrade)
    if when == "after it is applied":
        review(world, forged, Review.rejected)
    assert [staff.item(regrade, name).state for name in (clean, forged)] == [RegradeItemState.applied] * 2
    assert [staff.version_of(name) for name in (clean, forged)] == [2, 2]
    assert [counting(world, name).ratio for name in (clean, forged)] == [pytest.approx(3.0), pytest.approx(1.0)]
    staff.do(lifecycle.roll_back, regrade, reason="The new case was wrong itself.")
    assert [counting(world, name).pooled_attempts for name in (clean, forged)] == [1, 1]
    assert [counting(world, name).ratio for name in (clean, forged)] == [pytest.approx(3.0), pytest.approx(1.0)]
    review(world, forged, Review.cleared)
    assert [counting(world, name).pooled_attempts for name in (clean, forged)] == [2, 2]
    assert counting(world, clean).ratio == counting(world, forged).ratio


def test_a_roll_back_of_one_kernel_gives_nobody_points_that_never_counted(world, staff):
    same = {"source": b"def vector_add(x, y, out, n): ...\n", **GPU}
    names = [world.grade(passed(ratio), **same) for ratio in (2.0, 2.2, 2.4)]
    before = [world.submission(name).points for name in names]
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.run(regrade, strict(1.5), strict(1.7), strict(1.9), node="forge")
    staff.do(lifecycle.apply, regrade)
    since = [len(staff.changes(name)) for name in names]
    staff.do(lifecycle.roll_back, regrade, reason="The new case was wrong itself.")
    assert [world.submission(name).points for name in names] == before
    assert [staff.changes(name)[count:] for name, count in zip(names, since, strict=True)] == [
        [ChangeReason.rolled_back]
    ] * 3


def test_what_had_failed_gets_its_first_result_and_can_be_rolled_back_to_none(world, staff):
    name = world.submit(lane=Lane.h200)
    for _ in range(world.config.max_attempts):
        task = world.take("forge")
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), "forge")
    before = stands(world, name)
    assert before["state"] is State.failed
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), node="forge")
    assert stands(world, name) == before
    assert staff.item(regrade, name).why is Why.first_result
    staff.do(lifecycle.apply, regrade)
    row = world.submission(name)
    assert (row.state, row.verdict, row.points) == (State.done, Verdict.passed, pytest.approx(100))
    staff.do(lifecycle.roll_back, regrade, reason="x")
    after = stands(world, name)
    assert {**after, "finished_at": None} == {**before, "finished_at": None}


# --- noise, and what lowers ------------------------------------------------------------------------------------------


def test_noise_lowers_nothing_though_the_result_is_of_the_new_version(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name).points
    staff.publish(cases=STRICTER)
    regrade = staff.propose(may_lower=True)
    staff.run(regrade, strict(2.03), node="forge")
    item = staff.item(regrade, name)
    assert (item.why, item.moves, item.new_points) == (Why.within_noise, True, pytest.approx(before))
    staff.do(lifecycle.apply, regrade)
    row = world.submission(name)
    assert (row.points, staff.version_of(name)) == (pytest.approx(before), 2)
    result = world.results(name)[-1]
    assert result.ratio == pytest.approx(2.03, rel=0.01)
    assert result.speed_points == result.speed_floor


def test_the_same_version_again_adds_samples_and_keeps_what_is_no_better(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    regrade = staff.propose()
    staff.run(regrade, passed(2.04), node="forge")
    item = staff.item(regrade, name)
    assert (item.why, item.moves) == (Why.within_noise, False)
    assert world.results(name)[-1].pooled_attempts == 2
    staff.do(lifecycle.apply, regrade)
    assert stands(world, name) == before
    assert staff.item(regrade, name).state is RegradeItemState.kept


def test_a_lower_grade_needs_a_declared_correction(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    staff.publish(cases=STRICTER)
    for may_lower, moves in ((False, False), (True, True)):
        regrade = staff.propose(may_lower=may_lower)
        staff.run(regrade, strict_wrong(), node="forge")
        item = staff.item(regrade, name)
        assert (item.why, item.moves) == (Why.tests_changed, moves)
        assert (item.new_points < before["points"]) is moves
        if not may_lower:
            staff.do(lifecycle.apply, regrade)
            assert stands(world, name) == before


def test_slower_beyond_noise_keeps_its_points_and_stands_by_the_new_tests(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name).points
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.run(regrade, strict(4.0), node="forge")
    item = staff.item(regrade, name)
    assert (item.why, item.moves, item.new_points) == (Why.tests_changed, True, pytest.approx(before))
    staff.do(lifecycle.apply, regrade)
    assert world.submission(name).points == pytest.approx(before)
    # What is graded once more later goes on to keep them.
    with world.database.transaction() as session:
        assert confirm_due(session, now=world.now) == 1
    world.finish(world.take("forge"), strict(4.1), "forge")
    assert world.submission(name).points == pytest.approx(before)


def test_what_is_held_by_its_judge_does_not_move(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    regrade = staff.propose()
    staff.run(regrade, passed(0.1, held=True), node="forge")
    item = staff.item(regrade, name)
    assert not item.moves
    assert "person" in item.note
    staff.do(lifecycle.apply, regrade)
    assert stands(world, name) == before


def test_a_rejected_submission_gets_no_speed_points_by_a_regrade(world, staff):
    name = world.grade(passed(2.0), **GPU)
    with world.database.transaction() as session:
        row = session.scalars(select(Submission)).one()
        decide_review(session, row, Review.rejected, actor=None, reason="x", now=world.now)
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.run(regrade, strict(1.25), node="forge")
    assert staff.item(regrade, name).new_points == pytest.approx(60)
    staff.do(lifecycle.apply, regrade)
    assert (world.submission(name).points, world.submission(name).review) == (pytest.approx(60), Review.rejected)


def test_identical_sources_of_one_proposal_share_their_samples(world, staff):
    same = {"source": b"def vector_add(x, y, out, n): ...\n", **GPU}
    names = [world.grade(passed(2.0), **same), world.grade(passed(2.2), **same)]
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.run(regrade, strict(1.5), strict(1.7), node="forge")
    items = [staff.item(regrade, name) for name in names]
    assert len({item.new_ratio for item in items}) == 1
    staff.do(lifecycle.apply, regrade)
    rows = [world.results(name)[-1] for name in names]
    assert {row.pooled_attempts for row in rows} == {2}
    assert [world.submission(name).points for name in names] == [pytest.approx(item.new_points) for item in items]


# --- a lane that measures apart --------------------------------------------------------------------------------------


def test_a_trial_in_two_halves_and_a_later_confirmation_do_not_mix(world, staff):
    apart = {"lanes": {"cpu": LanePolicy(), "h200": LanePolicy(speed_points=True, apart=True, r_full=1.25, r_zero=10)}}
    staff.publish(**apart)
    name = world.submit(lane=Lane.h200, work=Work.check)
    timed = dataclasses.replace(passed(2.0), cases=(case("large", ranked=True),))
    world.finish(world.take("forge"), dataclasses.replace(passed(), measurements=()), "forge")
    world.finish(world.take("forge"), timed, "forge")
    before = stands(world, name)
    staff.publish(cases=STRICTER, **apart)
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    staff.grade(strict(measurements=()), "forge")
    row = world.submission(name)
    assert (row.state, row.work, row.points, row.result_id) == (
        State.queued, Work.measure, before["points"], before["result_id"],
    )  # fmt: skip
    staff.grade(dataclasses.replace(timed, measurements=(measurement("large", 1.25),)), "forge")
    assert stands(world, name) == before
    assert "'odd'" in str(staff.one(select(Result.payload).where(Result.id == world.results(name)[-1].id)))
    # Measured once more for itself, it goes with its own check: the proposal's has a case that its version does not.
    with world.database.transaction() as session:
        assert _confirm(session, row.id, world.now, check_too=False)
    world.finish(world.take("forge"), timed, "forge")
    assert "'odd'" not in str(staff.one(select(Result.payload).where(Result.id == world.submission(name).result_id)))


# --- by another formula ----------------------------------------------------------------------------------------------


def test_a_rescore_is_a_proposal_that_needs_no_node(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before, numbers = stands(world, name), world.results(name)[0]
    staff.publish(points=Points(correctness=60, speed=80))
    regrade = staff.propose(kind=RegradeKind.rescore)
    staff.run(regrade)
    item = staff.item(regrade, name)
    assert staff.regrade(regrade).state is RegradeState.ready
    assert (item.why, item.moves) == (Why.points_changed, True)
    assert item.new_points == pytest.approx(60 + 2 * numbers.speed_points)
    assert stands(world, name) == before
    staff.do(lifecycle.apply, regrade)
    assert world.submission(name).points == pytest.approx(60 + 2 * numbers.speed_points)
    assert staff.changes(name)[-1] is ChangeReason.rescored
    staff.do(lifecycle.roll_back, regrade, reason="x")
    assert stands(world, name) == before
    again = world.results(name)[0]
    assert (again.speed_points, again.scored_version_id) == (numbers.speed_points, None)


@pytest.mark.parametrize("may_lower", [False, True])
def test_a_rescore_lowers_only_where_that_is_declared(world, staff, may_lower):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name).points
    staff.publish(points=Points(correctness=60, speed=20))
    regrade = staff.propose(kind=RegradeKind.rescore, may_lower=may_lower)
    staff.run(regrade)
    staff.do(lifecycle.apply, regrade)
    assert (world.submission(name).points < before) is may_lower


# --- who is chosen ---------------------------------------------------------------------------------------------------


def test_who_is_chosen(world, staff):
    first = world.grade(passed(1.25), **GPU)
    second = world.grade(passed(4.0), **GPU)
    bobs = world.grade(wrong(), "Bob", **GPU)
    world.submit(mode=Mode.run, line=Line.run, state=State.done, number=7)
    world.submit(state=State.cancelled)

    def names(regrade):
        with world.database.reading() as session:
            query = select(Submission.public_id).join(RegradeItem, RegradeItem.submission_id == Submission.id)
            return set(session.scalars(query.where(RegradeItem.regrade_id == regrade)))

    assert names(staff.propose(Which.latest)) == {second, bobs}
    assert names(staff.propose(Which.best)) == {first, bobs}
    assert names(staff.propose(Which.counting)) == {first, bobs}
    assert names(staff.propose(Which.all)) == {first, second, bobs}
    failed = Selection(Which.verdict, verdicts=(Verdict.wrong_answer,))
    assert names(staff.propose(selection=failed)) == {bobs}
    assert names(staff.propose(selection=Selection(Which.picked, picked=(second,)))) == {second}
    for field, selection in (
        ("which", Selection(Which.all, lane=Lane.b200)),
        ("verdicts", Selection(Which.verdict)),
        ("picked", Selection(Which.picked)),
        ("picked", Selection(Which.picked, picked=(second, "0" * 26))),
    ):
        with pytest.raises(InvalidInputError) as refused:
            staff.propose(selection=selection)
        assert refused.value.field == field


@pytest.mark.parametrize(("field", "changes"), [("reason", {"reason": "  "}), ("version", {"version": 9})])
def test_a_proposal_that_cannot_be(world, staff, field, changes):
    world.grade(passed())
    with pytest.raises(InvalidInputError) as refused:
        staff.propose(**changes)
    assert refused.value.field == field


def test_a_student_proposes_nothing_and_finds_nothing(world, staff):
    world.grade(passed())
    regrade = staff.propose()
    with world.database.transaction() as session:
        alice = staff.member(session, "Alice")
        assignment = session.scalars(select(Assignment)).one()
        with pytest.raises(ForbiddenError):
            proposing.propose(
                session, alice, assignment, kind=RegradeKind.rerun, selection=Selection(), reason="x", now=world.now
            )
        with pytest.raises(NotFoundError):
            lifecycle.find(session, alice, regrade)
        with pytest.raises(ForbiddenError):
            lifecycle.apply(session, alice, regrade, revision=1, now=world.now)


# --- in the queue ----------------------------------------------------------------------------------------------------


def test_students_do_not_wait_behind_a_regrade(world, staff):
    world.add_node("wide", slots=1)
    for _ in range(30):
        world.grade(passed())
    staff.do(lifecycle.start, staff.propose())
    with world.database.reading() as session:
        assert session.scalars(select(func.count()).where(Submission.state == State.queued)).one() == runner.FEED
    for _ in range(12):
        world.wait(1)
        world.submit("Bob")
    claimed = []
    for _ in range(12):
        task = world.take()
        claimed.append(world.attempts(_name_of(world, task))[-1].line)
        world.finish(task)
    # One of twelve claims is a regrade's at most: nobody new waits longer than for one.
    assert claimed.count(Line.submission) >= 11


def _name_of(world, task):
    with world.database.reading() as session:
        return session.scalars(select(Submission.public_id).where(Submission.trace == task.trace)).one()


def test_a_student_who_submits_meanwhile_is_graded_as_always(world, staff):
    old = world.grade(passed(2.0), **GPU)
    staff.publish(cases=STRICTER)
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    new = world.submit(lane=Lane.h200)
    task = world.take("forge")
    assert _name_of(world, task) == new
    world.finish(task, strict(1.3), "forge")
    assert (staff.version_of(new), world.submission(new).state) == (2, State.done)
    staff.grade(strict(1.25), "forge")
    staff.do(lifecycle.apply, regrade)
    assert staff.item(regrade, old).state is RegradeItemState.applied


def test_what_waits_for_its_first_verdict_is_regraded_after_it(world, staff):
    name = world.submit(lane=Lane.h200)
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    assert world.submission(name).line is Line.submission
    staff.grade(passed(2.0), "forge")
    assert staff.item(regrade, name).state is RegradeItemState.queued
    staff.grade(passed(1.25), "forge")
    assert staff.regrade(regrade).state is RegradeState.ready


def test_a_node_that_dies_costs_time_only(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    world.claimed(world.take("forge"), "forge")
    world.wait(world.config.lease_s + 1, nodes_live=False)
    assert world.sweep() == 1
    row = world.submission(name)
    assert (row.state, row.line, row.points, row.review) == (State.queued, Line.regrade, before["points"], Review.none)
    staff.grade(passed(1.25), "forge")
    assert staff.item(regrade, name).state is RegradeItemState.found
    assert stands(world, name) == before


def test_what_fails_on_our_side_is_told_touches_nothing_and_can_be_tried_again(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    for _ in range(world.config.max_attempts):
        task = world.take("forge")
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), "forge")
    staff.work()
    item = staff.item(regrade, name)
    assert (item.state, item.note) == (RegradeItemState.failed, "broken")
    assert stands(world, name) == before
    staff.do(lifecycle.retry_failed, regrade)
    staff.grade(passed(1.25), "forge")
    assert staff.item(regrade, name).state is RegradeItemState.found
    with pytest.raises(ConflictError):
        staff.do(lifecycle.retry_failed, regrade)


def cancel(world, name):
    with world.database.transaction() as session:
        alice = session.scalars(select(User).where(User.name == "Alice")).one()
        submissions.cancel(session, alice, name, now=world.now)


def test_a_student_does_not_cancel_what_is_graded_again_for_a_proposal(world, staff):
    failed = {"state": State.failed, "verdict": Verdict.grader_error, "lane": Lane.h200}
    names = [world.submit(**failed) for _ in range(2)]
    before = stands(world, names[1])
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    for name in names:
        with pytest.raises(ConflictError, match="Staff are having this submission graded again"):
            cancel(world, name)
    assert states(staff, regrade, names) == [RegradeItemState.queued] * 2
    staff.grade(passed(1.25), "forge")
    staff.do(lifecycle.withdraw_rest, regrade)
    assert staff.regrade(regrade).state is RegradeState.ready
    assert states(staff, regrade, names) == [RegradeItemState.found, RegradeItemState.withdrawn]
    assert stands(world, names[1]) == before


def test_a_version_without_the_lane_cannot_grade_it(world, staff):
    name = world.grade(passed(2.0), **GPU)
    staff.publish(lanes={"cpu": LanePolicy()})
    regrade = staff.propose()
    staff.run(regrade)
    assert staff.item(regrade, name).state is RegradeItemState.failed
    assert world.submission(name).state is State.done


# --- pause, withdraw, discard ----------------------------------------------------------------------------------------


def test_a_pause_takes_out_of_the_queue_what_has_not_begun(world, staff):
    names = [world.grade(passed(2.0), **GPU) for _ in range(3)]
    before = [stands(world, name) for name in names]
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    task = world.take("forge")
    staff.do(lifecycle.pause, regrade)
    assert [stands(world, name) for name in names[1:]] == before[1:]
    assert world.submission(names[0]).state is State.running
    world.finish(task, passed(1.25), "forge")
    assert staff.step(regrade) == 0
    assert world.claim("forge") is None
    staff.do(lifecycle.start, regrade)
    staff.grade(passed(1.25), "forge")
    staff.grade(passed(1.25), "forge")
    assert staff.regrade(regrade).state is RegradeState.ready
    assert [stands(world, name) for name in names] == before


def test_the_rest_can_be_withdrawn_and_what_is_known_applied(world, staff):
    names = [world.grade(passed(2.0), **GPU) for _ in range(3)]
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), node="forge")
    staff.do(lifecycle.withdraw_rest, regrade)
    assert staff.regrade(regrade).state is RegradeState.ready
    staff.do(lifecycle.apply, regrade)
    states = [staff.item(regrade, name).state for name in names]
    assert states == [RegradeItemState.applied, RegradeItemState.withdrawn, RegradeItemState.withdrawn]


def test_discarding_while_it_runs_changes_nothing(world, staff):
    names = [world.grade(passed(2.0), **GPU) for _ in range(2)]
    before = [stands(world, name) for name in names]
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    task = world.take("forge")
    staff.do(lifecycle.discard, regrade)
    world.finish(task, passed(1.25), "forge")
    staff.work()
    assert [stands(world, name) for name in names] == before
    assert world.claim("forge") is None
    for act in (lifecycle.apply, lifecycle.start, lifecycle.discard):
        with pytest.raises(ConflictError):
            staff.do(act, regrade)


def test_a_lost_attempt_of_a_discarded_proposal_is_not_tried_again(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = stands(world, name)
    regrade = staff.propose()
    staff.do(lifecycle.start, regrade)
    task = world.take("forge")
    staff.do(lifecycle.discard, regrade)
    world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), "forge")
    assert stands(world, name) == before


def broken(world, staff):
    """The next that waits fails on our side, in all its attempts."""
    for _ in range(world.config.max_attempts):
        task = world.take("forge")
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), "forge")
    staff.work()


def applied_in_part(world, staff):
    """A rerun of three: the first is applied, the second has failed, the third has changed since; an hour ago."""
    names = [world.grade(passed(2.0), **GPU) for _ in range(3)]
    before = stands(world, names[0])
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), node="forge")
    broken(world, staff)
    staff.grade(passed(1.25), "forge")
    review(world, names[2], Review.held)
    staff.do(lifecycle.apply, regrade)
    ended = staff.regrade(regrade).ended_at
    world.wait(3600)
    return regrade, names, before, ended


def states(staff, regrade, names):
    return [staff.item(regrade, name).state for name in names]


@pytest.mark.parametrize("paused", [False, True])
def test_what_failed_is_graded_again_and_left_out_and_what_was_applied_stays_applied(world, staff, paused):
    regrade, names, before, ended = applied_in_part(world, staff)
    after = [stands(world, name) for name in names]
    staff.do(lifecycle.retry_failed, regrade)
    assert (staff.regrade(regrade).state, staff.regrade(regrade).ended_at) == (RegradeState.running, None)
    if paused:
        staff.do(lifecycle.pause, regrade)
    staff.do(lifecycle.discard, regrade)
    row = staff.regrade(regrade)
    assert (row.state, row.ended_at) == (RegradeState.applied, ended)
    found = [RegradeItemState.applied, RegradeItemState.withdrawn, RegradeItemState.conflict]
    assert states(staff, regrade, names) == found
    assert [stands(world, name) for name in names] == after
    assert world.claim("forge") is None
    entry = staff.one(select(AuditEntry).order_by(AuditEntry.id.desc()).limit(1))
    assert (entry.action, entry.detail) == ("regrade.left_as_applied", {"regrade": regrade, "submissions": 1})
    staff.do(lifecycle.roll_back, regrade, reason="x")
    assert stands(world, names[0]) == before


def test_what_changed_since_is_compared_and_left_out_and_what_was_applied_stays_applied(world, staff):
    regrade, names, before, ended = applied_in_part(world, staff)
    staff.do(lifecycle.recheck, regrade)
    assert staff.item(regrade, names[2]).state is RegradeItemState.found
    staff.do(lifecycle.discard, regrade)
    row = staff.regrade(regrade)
    assert (row.state, row.ended_at) == (RegradeState.applied, ended)
    found = [RegradeItemState.applied, RegradeItemState.failed, RegradeItemState.withdrawn]
    assert states(staff, regrade, names) == found
    with world.database.reading() as session:
        counts = views.one(session, session.get_one(Regrade, regrade)).counts
    assert (counts.applied, counts.by_show[views.Show.raised]) == (1, 1)
    staff.do(lifecycle.roll_back, regrade, reason="x")
    assert stands(world, names[0]) == before


def test_a_rescore_that_is_compared_again_is_left_as_applied(world, staff):
    names = [world.grade(passed(2.0), **GPU) for _ in range(2)]
    staff.publish(points=Points(correctness=60, speed=80))
    regrade = staff.propose(kind=RegradeKind.rescore)
    staff.run(regrade)
    review(world, names[1], Review.held)
    staff.do(lifecycle.apply, regrade)
    ended = staff.regrade(regrade).ended_at
    world.wait(3600)
    staff.do(lifecycle.recheck, regrade)
    assert (staff.regrade(regrade).state, staff.regrade(regrade).ended_at) == (RegradeState.ready, None)
    staff.do(lifecycle.discard, regrade)
    assert (staff.regrade(regrade).state, staff.regrade(regrade).ended_at) == (RegradeState.applied, ended)
    assert states(staff, regrade, names) == [RegradeItemState.applied, RegradeItemState.withdrawn]


def test_what_ran_when_the_rest_was_left_out_is_not_applied_later(world, staff):
    regrade, names, _before, _ended = applied_in_part(world, staff)
    after = stands(world, names[1])
    staff.do(lifecycle.retry_failed, regrade)
    task = world.take("forge")
    staff.do(lifecycle.discard, regrade)
    assert staff.regrade(regrade).state is RegradeState.applied
    world.finish(task, passed(1.25), "forge")
    staff.do(lifecycle.recheck, regrade)
    staff.do(lifecycle.apply, regrade)
    found = [RegradeItemState.applied, RegradeItemState.withdrawn, RegradeItemState.applied]
    assert states(staff, regrade, names) == found
    assert stands(world, names[1]) == after


# --- conflicts and races ---------------------------------------------------------------------------------------------


def test_what_changed_since_is_told_and_passed_over_unless_it_is_looked_at_again(world, staff):
    name, other = world.grade(passed(2.0), **GPU), world.grade(passed(2.0), "Bob", **GPU)
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), passed(1.25), node="forge")
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        decide_review(session, row, Review.held, actor=None, reason="x", now=world.now)
    staff.do(lifecycle.apply, regrade)
    assert staff.item(regrade, other).state is RegradeItemState.applied
    item = staff.item(regrade, name)
    assert (item.state, "review" in item.note) == (RegradeItemState.conflict, True)
    assert world.submission(name).points == pytest.approx(60)
    staff.do(lifecycle.recheck, regrade)
    assert staff.item(regrade, name).state is RegradeItemState.found
    staff.do(lifecycle.apply, regrade)
    assert staff.item(regrade, name).state is RegradeItemState.applied
    assert world.submission(name).points == pytest.approx(60)


def test_two_proposals_about_one_submission_the_second_is_told(world, staff):
    name = world.grade(passed(2.0), **GPU)
    first, second = staff.propose(), staff.propose()
    staff.run(first, passed(1.25), node="forge")
    staff.run(second, passed(1.25), node="forge")
    staff.do(lifecycle.apply, first)
    applied = stands(world, name)
    staff.do(lifecycle.apply, second)
    assert staff.item(second, name).state is RegradeItemState.conflict
    assert stands(world, name) == applied


def test_one_that_is_graded_again_meanwhile_is_a_conflict(world, staff):
    name = world.grade(passed(2.0), **GPU)
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), node="forge")
    with world.database.transaction() as session:
        requeue(session, session.scalars(select(Submission)).one(), now=world.now)
    staff.do(lifecycle.apply, regrade)
    assert staff.item(regrade, name).state is RegradeItemState.conflict


def test_a_roll_back_passes_over_what_was_regraded_since(world, staff):
    name = world.grade(passed(4.0), **GPU)
    first = staff.propose()
    staff.run(first, passed(2.0), node="forge")
    staff.do(lifecycle.apply, first)
    staff.publish(cases=STRICTER)
    second = staff.propose()
    staff.run(second, strict(1.25), node="forge")
    staff.do(lifecycle.apply, second)
    after = stands(world, name)
    staff.do(lifecycle.roll_back, first, reason="x")
    assert staff.item(first, name).state is RegradeItemState.conflict
    assert stands(world, name) == after


def rescored(staff, speed):
    """A rescore by a version that gives this for speed, applied."""
    staff.publish(points=Points(correctness=60, speed=speed))
    regrade = staff.propose(kind=RegradeKind.rescore)
    staff.run(regrade)
    staff.do(lifecycle.apply, regrade)
    return regrade


def rerun(staff, result):
    """A rerun that found this, applied."""
    regrade = staff.propose()
    staff.run(regrade, result, node="forge")
    staff.do(lifecycle.apply, regrade)
    return regrade


def counts(world, name):
    """What counts, and what it is worth."""
    row = world.submission(name)
    result = next(one for one in world.results(name) if one.id == row.result_id)
    return stands(world, name), result.speed_points, result.speed_floor, result.scored_version_id


TWO = {
    "rescore, rescore": (lambda staff: rescored(staff, 60), lambda staff: rescored(staff, 80)),
    "rescore, rerun": (lambda staff: rescored(staff, 60), lambda staff: rerun(staff, passed(1.25))),
    "rerun, rescore": (lambda staff: rerun(staff, passed(1.5)), lambda staff: rescored(staff, 80)),
}


@pytest.mark.full("slow")
@pytest.mark.parametrize(("one", "other"), TWO.values(), ids=TWO)
def test_an_older_regrade_is_not_rolled_back_under_a_newer_one(world, staff, one, other):
    name = world.grade(passed(2.0), **GPU)
    first = one(staff)
    between = counts(world, name)
    second = other(staff)
    after = counts(world, name)
    assert after != between
    staff.do(lifecycle.roll_back, first, reason="x")
    item = staff.item(first, name)
    assert (item.state, item.note) == (RegradeItemState.conflict, f"Regrade {second} was applied to it since.")
    assert counts(world, name) == after
    staff.do(lifecycle.roll_back, second, reason="x")
    assert staff.item(second, name).state is RegradeItemState.rolled_back
    assert counts(world, name) == between


@pytest.mark.full("slow")
@pytest.mark.parametrize(("one", "other"), TWO.values(), ids=TWO)
def test_two_regrades_are_rolled_back_the_newest_first(world, staff, one, other):
    name = world.grade(passed(2.0), **GPU)
    before = counts(world, name)
    regrades = (one(staff), other(staff))
    for regrade in reversed(regrades):
        staff.do(lifecycle.roll_back, regrade, reason="x")
        assert staff.item(regrade, name).state is RegradeItemState.rolled_back
    assert counts(world, name) == before


def test_a_rescore_is_not_rolled_back_under_a_rerun_that_was_confirmed(world, staff):
    name = world.grade(passed(2.0), **GPU)
    first, second = rescored(staff, 60), rerun(staff, passed(1.25))
    with world.database.transaction() as session:
        assert _confirm(session, world.submission(name).id, world.now, check_too=True)
    world.finish(world.take("forge"), passed(1.25), "forge")
    after = counts(world, name)
    staff.do(lifecycle.roll_back, first, reason="x")
    assert staff.item(first, name).note == f"Regrade {second} was applied to it since."
    assert counts(world, name) == after


def test_the_newest_is_the_one_applied_last_at_whatever_time_and_under_whatever_number(world, staff):
    name = world.grade(passed(2.0), **GPU)
    staff.publish(points=Points(correctness=60, speed=60))
    first = staff.propose(kind=RegradeKind.rescore, may_lower=True)
    staff.run(first)
    second = rescored(staff, 80)
    between = counts(world, name)
    staff.do(lifecycle.apply, first)
    assert staff.item(first, name).state is RegradeItemState.conflict
    staff.do(lifecycle.recheck, first)
    staff.do(lifecycle.apply, first)
    after = counts(world, name)
    assert staff.item(first, name).applied_at == staff.item(second, name).applied_at
    assert after != between
    staff.do(lifecycle.roll_back, second, reason="x")
    assert staff.item(second, name).note == f"Regrade {first} was applied to it since."
    assert counts(world, name) == after
    staff.do(lifecycle.roll_back, first, reason="x")
    assert counts(world, name) == between


def test_what_a_roll_back_passed_over_still_stands_in_the_way_of_older_ones(world, staff):
    name = world.grade(passed(2.0), **GPU)
    before = counts(world, name)
    first, second = rescored(staff, 60), rescored(staff, 80)
    between = counts(world, name)
    third = rescored(staff, 90)
    for regrade in (second, third):
        staff.do(lifecycle.roll_back, regrade, reason="x")
    assert counts(world, name) == between
    staff.do(lifecycle.roll_back, first, reason="x")
    assert staff.item(first, name).note == f"Regrade {second} was applied to it since."
    assert counts(world, name) == between
    for regrade in (second, first):
        staff.do(lifecycle.roll_back_again, regrade)
    assert counts(world, name) == before


def passed_over(staff, regrade):
    """How many its page offers to roll back again."""
    with staff.world.database.reading() as session:
        return views.one(session, session.get_one(Regrade, regrade)).counts.passed_over


@pytest.mark.full("slow")
@pytest.mark.parametrize(("one", "other"), TWO.values(), ids=TWO)
def test_what_a_roll_back_passed_over_is_rolled_back_once_the_newer_one_is(world, staff, one, other):
    name = world.grade(passed(2.0), **GPU)
    before = counts(world, name)
    first, second = one(staff), other(staff)
    after = counts(world, name)
    assert passed_over(staff, first) == 0
    for act, given in ((lifecycle.roll_back, {"reason": "x"}), (lifecycle.roll_back_again, {})):
        staff.do(act, first, **given)
        item = staff.item(first, name)
        assert (item.state, item.note) == (RegradeItemState.conflict, f"Regrade {second} was applied to it since.")
        assert (staff.regrade(first).state, passed_over(staff, first)) == (RegradeState.rolled_back, 1)
        assert counts(world, name) == after
    staff.do(lifecycle.roll_back, second, reason="x")
    staff.do(lifecycle.roll_back_again, first)
    item = staff.item(first, name)
    assert (item.state, item.note, passed_over(staff, first)) == (RegradeItemState.rolled_back, "", 0)
    assert counts(world, name) == before
    entry = staff.one(select(AuditEntry).order_by(AuditEntry.id.desc()).limit(1))
    assert (entry.action, entry.detail) == ("regrade.rolled_back_again", {"regrade": first, "submissions": 1})
    with pytest.raises(ConflictError, match="skipped none"):
        staff.do(lifecycle.roll_back_again, first)


def test_what_was_never_applied_is_not_rolled_back_again(world, staff):
    regrade, names, _before, _ended = applied_in_part(world, staff)
    with pytest.raises(ConflictError, match="is applied by now"):
        staff.do(lifecycle.roll_back_again, regrade)
    staff.do(lifecycle.roll_back, regrade, reason="x")
    after = states(staff, regrade, names)
    assert (after[2], passed_over(staff, regrade)) == (RegradeItemState.conflict, 0)
    with pytest.raises(ConflictError, match="skipped none"):
        staff.do(lifecycle.roll_back_again, regrade)
    assert states(staff, regrade, names) == after


@pytest.mark.full("slow")
def test_a_roll_back_again_is_by_who_saw_it_as_it_is_and_goes_on_bit_by_bit(world, staff, monkeypatch):
    names = [world.grade(passed(2.0), **GPU) for _ in range(3)]
    before = [counts(world, name) for name in names]
    first, second = rescored(staff, 60), rescored(staff, 80)
    for regrade in (first, second):
        staff.do(lifecycle.roll_back, regrade, reason="x")
    told = len(_told(world))
    monkeypatch.setattr(runner, "BATCH", 2)
    with pytest.raises(ConflictError, match="Somebody else"):
        staff.do(lifecycle.roll_back_again, first, revision=1)
    staff.do(lifecycle.roll_back_again, first)
    assert staff.regrade(first).state is RegradeState.rolling_back
    with pytest.raises(ConflictError, match="rolling back by now"):
        staff.do(lifecycle.roll_back_again, first)
    staff.work()
    assert staff.regrade(first).state is RegradeState.rolled_back
    assert [counts(world, name) for name in names] == before
    assert len(_told(world)) == told + len(names)


def _told(world):
    with world.database.reading() as session:
        return session.scalars(select(Notification.id)).all()


def test_who_saw_an_older_revision_is_told(world, staff):
    world.grade(passed(2.0), **GPU)
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), node="forge")
    with pytest.raises(ConflictError, match="Somebody else"):
        staff.do(lifecycle.apply, regrade, revision=1)


def test_two_who_apply_at_once_apply_once(world, staff):
    name = world.grade(passed(2.0), **GPU)
    regrade = staff.propose()
    staff.run(regrade, passed(1.25), node="forge")
    revision, told = staff.regrade(regrade).revision, []
    barrier = threading.Barrier(2)

    def apply() -> None:
        barrier.wait()
        try:
            staff.do(lifecycle.apply, regrade, revision=revision)
        except ConflictError as error:
            told.append(error.message)

    _both(apply, apply)
    assert len(told) == 1
    assert staff.changes(name).count(ChangeReason.regraded) == 1


@pytest.mark.full("slow")
def test_applying_while_its_student_resubmits_the_same_source_and_that_is_graded(world, staff):
    for turn in range(3):
        source = f"def vector_add(x, y, out, n): {turn}; return\n".encode()
        staff.publish()
        name = world.grade(passed(2.0), source=source, **GPU)
        staff.publish(cases=STRICTER)
        regrade = staff.propose(selection=Selection(Which.picked, picked=(name,)))
        staff.run(regrade, strict(1.5), node="forge")
        world.wait(1)
        new = world.submit(source=source, lane=Lane.h200)
        task = world.take("forge")
        barrier = threading.Barrier(2)

        def apply(barrier=barrier, regrade=regrade) -> None:
            barrier.wait()
            staff.do(lifecycle.apply, regrade)

        def finish(barrier=barrier, task=task) -> None:
            barrier.wait()
            world.finish(task, strict(1.6), "forge")

        _both(apply, finish)
        with world.database.transaction() as session:
            refresh_pools(session, now=world.now)
        assert staff.item(regrade, name).state is RegradeItemState.applied
        rows = [world.submission(each) for each in (name, new)]
        assert {row.pool for row in rows} == {rows[0].pool}
        numbers = {world.results(each)[-1].ratio for each in (name, new)}
        assert len(numbers) == 1


def _both(*acts) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_large_proposal_is_applied_bit_by_bit_and_goes_on_where_it_was(world, staff, monkeypatch):
    monkeypatch.setattr(runner, "BATCH", 2)
    names = [world.grade(passed(2.0), **GPU) for _ in range(5)]
    staff.publish(points=Points(correctness=60, speed=80))
    regrade = staff.propose(kind=RegradeKind.rescore)
    staff.do(lifecycle.start, regrade)
    staff.work()
    staff.do(lifecycle.apply, regrade)
    states = [staff.item(regrade, name).state for name in names]
    assert (states.count(RegradeItemState.applied), staff.regrade(regrade).state) == (2, RegradeState.applying)
    with pytest.raises(ConflictError):
        staff.do(lifecycle.apply, regrade)
    staff.work()
    assert staff.regrade(regrade).state is RegradeState.applied
    assert {staff.item(regrade, name).state for name in names} == {RegradeItemState.applied}
