"""A student asks: the times are taken once more, then a person answers. Both sides read one thread."""

from __future__ import annotations

import dataclasses
import threading
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from autograder.contract import AttemptFailure, GpuFacts, Kind, Lane, Mode, Review, Verdict
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.grading.remeasure_requests import retime_of
from server.models import (
    Assignment,
    AuditEntry,
    Line,
    Notification,
    NotificationKind,
    Regrade,
    RegradeItem,
    RegradeMessage,
    RegradeRequest,
    RequestState,
    Role,
    State,
    Submission,
    User,
)
from server.regrades import asking, inbox, requests, rules
from server.regrades.inbox import Box
from server.terms import erasure
from tests.doubles.database import everything_in
from tests.doubles.world import World, passed, wrong

GPU = {"lane": Lane.h200, "node": "forge"}


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("forge", lanes=(Lane.h200,))
    world.add_node("smithy", lanes=(Lane.h200,))
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
        world.enrol(session, "Ines", Role.instructor)
    yield world
    world.database.dispose()


def member(session, name):
    return courses.membership(session, session.scalars(select(User).where(User.name == name)).one(), "gpu")


def ask(world, submission, text="Case large was timed while the node throttled.", name="Alice"):
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == submission)).one()
        return requests.ask(session, member(session, name), row, text, now=world.now).id


def act(world, call, request, *arguments, name="Alice", **named):
    with world.database.transaction() as session:
        call(session, member(session, name), request, *arguments, now=world.now, **named)


def answer(world, request, outcome, text="Because.", *, name="Tom", **changes):
    named = {"revision": read(world, request).revision, **changes}
    act(world, requests.answer, request, name=name, outcome=outcome, text=text, **named)


def read(world, request):
    with world.database.reading() as session:
        found = session.scalars(select(RegradeRequest).where(RegradeRequest.id == request)).one()
        session.expunge_all()
        return found


def set_rules(world, name="Ines", revision=0, enabled=True, **numbers):
    numbers = {"per_assignment": 2, "per_course": 8, "window_days": 7, "cooling_off_h": 0, **numbers}
    with world.database.transaction() as session:
        rules.set_rules(session, member(session, name), enabled=enabled, numbers=numbers, revision=revision)


def publish(world, at):
    with world.database.transaction() as session:
        session.execute(update(Assignment).values(grades_published_at=at))


# --- the times are taken once more -----------------------------------------------------------------------------------


def test_its_times_are_taken_once_more_on_another_node_and_added(world):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name)
    request = ask(world, name)
    row = world.submission(name)
    assert (row.state, row.line, row.points, row.result_id) == (
        State.queued, Line.regrade, before.points, before.result_id,
    )  # fmt: skip
    assert read(world, request).retiming
    # The node that measured it passes it over while there is another.
    assert world.claim("forge") is None
    world.finish(world.take("smithy"), passed(1.8), "smithy")
    row, found = world.submission(name), read(world, request)
    retime = retime_of(found)
    assert (found.state, found.retiming, row.state) == (RequestState.open, False, State.done)
    assert (retime.nodes, retime.other_node, retime.verdict) == (("forge", "smithy"), True, Verdict.passed)
    assert (retime.before.attempts, retime.after.attempts) == (1, 2)
    assert (retime.before.points, retime.after.points) == (before.points, row.points)
    assert retime.after.ratio < retime.before.ratio
    assert row.points > before.points


def test_one_that_does_not_pass_when_it_is_re_timed_is_held_for_the_person(world):
    name = world.grade(passed(2.0), **GPU)
    request = ask(world, name)
    world.finish(world.take("smithy"), wrong(), "smithy")
    row = world.submission(name)
    assert (row.verdict, row.review, row.points) == (Verdict.passed, Review.held, 60)
    assert retime_of(read(world, request)).verdict is Verdict.wrong_answer


def test_a_re_time_that_fails_on_our_side_leaves_the_request_to_a_person(world):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name)
    request = ask(world, name)
    for _ in range(world.config.max_attempts):
        task = world.take("smithy")
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), "smithy")
    row, found = world.submission(name), read(world, request)
    assert (row.state, row.points, row.result_id) == (State.done, before.points, before.result_id)
    assert (found.state, found.retiming) == (RequestState.open, False)
    assert "our fault" in retime_of(found).why_not


def test_a_re_time_that_only_a_node_in_trouble_ends_leaves_the_grade_and_the_request_to_a_person(world):
    name = world.grade(passed(2.0), **GPU)
    before = world.submission(name)
    request = ask(world, name)
    trouble = GpuFacts("NVIDIA H200", "GPU-1", "580", trouble="it was throttled: hardware_thermal")
    for _ in range(world.config.max_attempts):
        node, task = next((node, task) for node in ("smithy", "forge") if (task := world.claim(node)))
        world.finish(task, dataclasses.replace(passed(2.0), gpu=trouble), node)
    row, found = world.submission(name), read(world, request)
    assert (row.state, row.points, row.result_id) == (State.done, before.points, before.result_id)
    assert (found.state, found.retiming) == (RequestState.open, False)
    assert "our fault" in retime_of(found).why_not


@pytest.mark.parametrize(("result", "lane"), [(wrong(), Lane.h200), (passed(), Lane.cpu)])
def test_what_has_no_times_goes_to_a_person_at_once(world, result, lane):
    name = world.grade(result, lane=lane, node="forge" if lane is Lane.h200 else "anvil")
    request = ask(world, name)
    assert not read(world, request).retiming
    assert retime_of(read(world, request)).why_not
    assert world.submission(name).state is State.done


def test_staff_may_answer_while_it_is_re_timed_and_the_outcome_is_added_when_it_comes(world):
    name = world.grade(passed(2.0), **GPU)
    request = ask(world, name)
    answer(world, request, RequestState.declined)
    world.finish(world.take("smithy"), passed(2.0), "smithy")
    found = read(world, request)
    assert (found.state, found.retiming) == (RequestState.declined, False)
    assert retime_of(found).after.attempts == 2


# --- who may ask, and when -------------------------------------------------------------------------------------------


def test_a_request_needs_a_reason_and_is_made_once(world):
    name = world.grade(wrong(), **GPU)
    with pytest.raises(InvalidInputError):
        ask(world, name, "  \n ")
    with pytest.raises(InvalidInputError):
        ask(world, name, "x" * 5000)
    ask(world, name)
    with pytest.raises(ConflictError, match="already"):
        ask(world, name)


@pytest.mark.parametrize(
    ("changes", "name", "why"),
    [
        ({"mode": Mode.run, "line": Line.run}, "Alice", "practice"),
        ({}, "Bob", "submitted it"),
    ],
)
def test_who_may_not_ask(world, changes, name, why):
    submission = world.submit(lane=Lane.h200, **changes)
    world.finish(world.take("forge"), wrong(), "forge")
    with pytest.raises(ConflictError, match=why):
        ask(world, submission, name=name)


def test_what_has_no_result_yet_cannot_be_asked_about(world):
    with pytest.raises(ConflictError, match="no result"):
        ask(world, world.submit(lane=Lane.h200))


def test_the_window_opens_after_the_cooling_off_and_closes_after_the_publication(world):
    name = world.grade(wrong(), **GPU)
    set_rules(world, cooling_off_h=24, window_days=3)
    with pytest.raises(ConflictError, match="not open"):
        ask(world, name)
    world.wait(24 * 3600 + 1)
    publish(world, world.now)
    with pytest.raises(ConflictError, match="not open"):
        ask(world, name)
    published = world.now
    world.wait(3 * 24 * 3600 + 1)
    with pytest.raises(ConflictError, match="over"):
        ask(world, name)
    world.now = published + timedelta(days=2)
    ask(world, name)


def test_the_quota_counts_what_was_not_granted(world):
    names = [world.grade(wrong(), **GPU) for _ in range(4)]
    set_rules(world, per_assignment=1)
    first = ask(world, names[0])
    with pytest.raises(ConflictError, match="used all"):
        ask(world, names[1])
    answer(world, first, RequestState.accepted, regrade=False)
    second = ask(world, names[1])
    answer(world, second, RequestState.declined)
    with pytest.raises(ConflictError, match="used all"):
        ask(world, names[2])


def test_what_failed_on_our_side_is_free(world):
    lost = world.submit(lane=Lane.h200)
    for _ in range(world.config.max_attempts):
        task = world.take("forge")
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "broken"), "forge")
    name = world.grade(wrong(), **GPU)
    set_rules(world, per_assignment=1)
    ask(world, name)
    request = ask(world, lost)
    assert read(world, request).free
    with world.database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        assert asking.asking(session, row_user(session), row, now=world.now).left == 0


def row_user(session):
    return session.scalars(select(User).where(User.name == "Alice")).one()


def test_a_course_may_take_none(world):
    name = world.grade(wrong(), **GPU)
    set_rules(world, enabled=False)
    with pytest.raises(ConflictError, match="closed"):
        ask(world, name)


def test_two_requests_at_once_keep_the_quota(world):
    names = [world.grade(wrong(), **GPU) for _ in range(2)]
    set_rules(world, per_assignment=1)
    refused, barrier = [], threading.Barrier(2)

    def one(name) -> None:
        barrier.wait()
        try:
            ask(world, name)
        except ConflictError as error:
            refused.append(error.message)

    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1


# --- the rules -------------------------------------------------------------------------------------------------------


def test_only_an_instructor_sets_the_rules_within_limits_and_as_they_were_seen(world):
    with pytest.raises(ForbiddenError):
        set_rules(world, "Tom")
    with pytest.raises(InvalidInputError) as refused:
        set_rules(world, window_days=0)
    assert refused.value.field == "window_days"
    set_rules(world, per_course=20)
    with pytest.raises(ConflictError):
        set_rules(world, per_course=30)
    set_rules(world, revision=1, per_course=30)
    with world.database.reading() as session:
        assert rules.rules_of(session, member(session, "Tom").course.id).per_course == 30
        assert [one.action for one in session.scalars(select(AuditEntry))] == ["regrade_rules.set"] * 2


# --- the thread and the answer ---------------------------------------------------------------------------------------


def test_accepting_drafts_a_regrade_of_one_and_tells_the_student(world):
    name = world.grade(wrong(), **GPU)
    request = ask(world, name)
    with pytest.raises(InvalidInputError):
        answer(world, request, RequestState.accepted, " ")
    answer(world, request, RequestState.accepted, "The case was wrong.")
    with world.database.reading() as session:
        regrade = session.scalars(select(Regrade)).one()
        item = session.scalars(select(RegradeItem)).one()
        told = session.scalars(
            select(Notification).where(Notification.kind == NotificationKind.regrade_request_answered)
        ).one()
        assert (regrade.reason, item.submission_id) == ("The case was wrong.", world.submission(name).id)
        assert (told.user_id, told.url) == (item.user_id, f"/courses/gpu/regrade-requests/{request}")
        assert read(world, request).regrade_id == regrade.id
        assert session.scalars(select(AuditEntry.action)).all()[-1] == "regrade_request.accepted"


def test_answers_go_with_who_is_erased_and_stay_with_who_is_not(world):
    name, other = world.grade(wrong(), **GPU), world.grade(wrong(), "Bob", **GPU)
    request, bobs = ask(world, name, "I am ill."), ask(world, other, name="Bob")
    for words in ("So you are ill: yes.", "Ill again: yes."):
        answer(world, request, RequestState.accepted, words)
        if read(world, request).reopened_at is None:
            act(world, requests.reopen, request, "I am ill again.")
    answer(world, bobs, RequestState.accepted, "Bob is right.")
    with world.database.transaction() as session:
        for person in ("Alice", "Tom"):
            user = session.scalars(select(User).where(User.name == person)).one()
            erasure.erase_account(session, user, now=world.now)
    left = everything_in(world.database)
    assert " ill" not in left.lower()
    assert left.count("Bob is right.") >= 3  # In the thread, of the proposal, in the trail.


def test_staff_are_told_of_what_students_say_and_never_of_their_own(world):
    name = world.grade(wrong(), **GPU)
    request = ask(world, name)
    act(world, requests.say, request, "One more thing.")
    act(world, requests.say, request, "Which case?", name="Tom")
    with world.database.reading() as session:
        rows = session.execute(select(User.name, Notification.kind).join(User, User.id == Notification.user_id)).all()
        said = session.scalars(select(RegradeMessage).order_by(RegradeMessage.id)).all()
        assert [(row.text, row.by_staff) for row in said][1:] == [("One more thing.", False), ("Which case?", True)]
    kinds = [(row[0], row[1].value) for row in rows]
    assert kinds.count(("Tom", "regrade_request_opened")) == kinds.count(("Ines", "regrade_request_opened")) == 2
    assert [kind for kind in kinds if kind[0] == "Alice"] == [("Alice", "regrade_request_answered")]


def test_it_can_be_reopened_once_by_who_asked(world):
    request = ask(world, world.grade(wrong(), **GPU))
    with pytest.raises(ConflictError, match="is open"):
        act(world, requests.reopen, request, "But …")
    answer(world, request, RequestState.declined)
    with pytest.raises(ConflictError, match="answered"):
        act(world, requests.say, request, "But …")
    with pytest.raises(ForbiddenError):
        act(world, requests.reopen, request, "But …", name="Tom")
    act(world, requests.reopen, request, "But …")
    answer(world, request, RequestState.declined)
    with pytest.raises(ConflictError, match="once"):
        act(world, requests.reopen, request, "But …")


def test_of_two_who_answer_the_second_is_told(world):
    request = ask(world, world.grade(wrong(), **GPU))
    seen = read(world, request).revision
    act(world, requests.say, request, "Wait.")
    with pytest.raises(ConflictError, match="since you looked"):
        answer(world, request, RequestState.declined, revision=seen)
    answer(world, request, RequestState.declined)
    with pytest.raises(ConflictError, match="been declined"):
        answer(world, request, RequestState.accepted, name="Ines")


def test_nobody_answers_their_own_and_others_find_nothing(world):
    request = ask(world, world.grade(wrong(), **GPU))
    with pytest.raises(ForbiddenError):
        answer(world, request, RequestState.accepted, name="Alice")
    with pytest.raises(NotFoundError):
        act(world, requests.say, request, "x", name="Bob")
    own = ask(world, world.grade(wrong(), "Tom", **GPU), name="Tom")
    with pytest.raises(ForbiddenError):
        answer(world, own, RequestState.accepted, name="Tom")


# --- the inbox -------------------------------------------------------------------------------------------------------


def test_the_inbox_has_filters_counts_and_says_what_became_of_them(world):
    names = [world.grade(wrong(), **GPU), world.grade(passed(4.0), **GPU), world.grade(wrong(), "Bob", **GPU)]
    set_rules(world, per_assignment=5)
    mine = [ask(world, name) for name in names[:2]]
    bobs = ask(world, names[2], name="Bob")
    answer(world, bobs, RequestState.declined)
    with world.database.reading() as session:
        tom, alice = member(session, "Tom"), member(session, "Alice")
        assert [row.id for row in inbox.listed(session, tom, Box.open)] == mine
        assert [row.id for row in inbox.listed(session, tom, Box.retiming)] == mine[1:]
        assert [row.id for row in inbox.listed(session, tom, Box.all, assignment="none")] == []
        counts = inbox.counts(session, tom)
        assert (counts[Box.open], counts[Box.retiming], counts[Box.declined], counts[Box.all]) == (2, 1, 1, 3)
        assert {row.id for row in inbox.listed(session, alice, Box.all)} == set(mine)
    world.finish(world.take("smithy"), passed(2.0), "smithy")
    answer(world, mine[1], RequestState.accepted, regrade=False)
    with world.database.reading() as session:
        found = inbox.statistics(session, member(session, "Tom").course.id)
    assert (found.asked, found.answered, found.accepted, found.changed) == (3, 2, 1, 1)
