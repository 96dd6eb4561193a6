"""What waits for a person: held results, findings and appeals; the evidence, the decision, and deciding once more."""

from __future__ import annotations

import dataclasses
import re

import pytest
from sqlalchemy import select

from autograder.contract import Finding, FindingKind, Lane, Review
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError
from server.grading import appeals, findings, review_queue
from server.grading.review import decide
from server.models import (
    Appeal,
    Attempt,
    AuditEntry,
    FindingLook,
    Mode,
    Notification,
    NotificationKind,
    Result,
    Role,
    Submission,
    User,
)
from server.submissions.evidence import kernel_lines
from tests.browser import results
from tests.doubles.world import START, World, passed

GPU = {"lane": Lane.h200}
LIBRARY = Finding(FindingKind.library_call, "aten::add did the work.", {"operations": "aten::add"})
NASTY = "<script>alert(1)</script>"


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("forge", lanes=(Lane.h200,))
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
        world.enrol(session, "Uma", Role.ta)
    yield world
    world.database.dispose()


def graded(world, result, person="Alice", **changes):
    return world.grade(result, person, node="forge", **{**GPU, **changes})


def held(world, person="Alice", **changes):
    return graded(world, passed(1.0, held=True), person, **changes)


def found(world, person="Alice", *kinds, **changes):
    every = tuple(dataclasses.replace(LIBRARY, kind=kind) for kind in kinds or (FindingKind.library_call,))
    return graded(world, dataclasses.replace(passed(1.0), findings=every), person, **changes)


@pytest.fixture
def queue(world):
    def call(person="Tom"):
        with world.database.reading() as session:
            user = session.scalars(select(User).where(User.name == person)).one()
            waits = review_queue.waiting(session, courses.membership(session, user, "gpu"))
            parts = (waits.appeals, waits.held, waits.findings)
            return tuple([item.submission.public_id for item in part.items] for part in parts)

    return call


@pytest.fixture
def act(world):
    """Do something with a submission as a person, in a transaction of its own."""

    def call(person, name, work):
        with world.database.transaction() as session:
            user = session.scalars(select(User).where(User.name == person)).one()
            row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
            return work(session, user, row)

    return call


def clear(session, user, row, review=Review.cleared, **given):
    return decide(session, row, review, actor=user, reason="looked", now=START, **given).review


def say(session, user, row, text="It is real."):
    return appeals.say(session, user, row, text, now=START).id


def answer(session, user, row, review=Review.rejected, *, reason="It is not.", seen=Review.rejected):
    return appeals.answer(session, row, review, actor=user, reason=reason, now=START, seen=seen).decision


def settle(session, user, row, review=Review.cleared, *, seen=Review.held, read=True):
    appeals.settle(session, row, review, actor=user, reason="I looked.", now=START, seen=seen, read=read)


def test_what_is_held_waits_and_what_is_only_found_waits_apart(world, queue, act):
    first, second = held(world), found(world, "Bob")
    graded(world, passed(1.0), "Bob")
    assert queue() == ([], [first], [second])
    act("Tom", first, clear)
    assert queue() == ([], [], [second])
    with pytest.raises(ForbiddenError):
        queue("Alice")


def test_a_run_waits_for_nobody(world, queue):
    found(world, mode=Mode.run)
    assert queue() == ([], [], [])


def test_somebody_looked_and_it_is_off_the_list(world, queue, act):
    name = found(world)
    act("Tom", name, lambda s, u, r: findings.look(s, r, actor=u, reason="warm-up only", now=START))
    assert queue() == ([], [], [])
    with pytest.raises(ConflictError):
        act("Uma", name, lambda s, u, r: findings.look(s, r, actor=u, reason="me too", now=START))
    with world.database.reading() as session:
        row = session.scalars(select(FindingLook)).one()
        assert (row.kinds, row.reason, row.looked_at) == (["library_call"], "warm-up only", START)
        assert session.scalars(select(AuditEntry.reason).where(AuditEntry.action == "submission.looked_at")).one()


@pytest.mark.parametrize(("again", "waits"), [((FindingKind.library_call,), False), ((FindingKind.decoration,), True)])
def test_the_same_finding_of_a_second_grading_asks_nobody_again(world, queue, act, again, waits):
    name = found(world)
    act("Tom", name, lambda s, u, r: findings.look(s, r, actor=u, reason="fine", now=START))
    every = tuple(dataclasses.replace(LIBRARY, kind=kind) for kind in again)

    def grade_again(session, _user, row):
        """What a confirmation leaves: a second result that counts."""
        first = session.get_one(Result, row.result_id)
        attempt = session.get_one(Attempt, first.attempt_id)
        values = {one.key: getattr(attempt, one.key) for one in Attempt.__table__.columns if one.key != "id"}
        attempt = Attempt(**{**values, "fence": 99, "public_id": "01AGAIN"})
        session.add(attempt)
        session.flush()
        second = Result(
            attempt_id=attempt.id, submission_id=row.id, verdict=first.verdict, explanation="", payload={},
            correctness_points=0.0, speed_points=0.0, created_at=START,
        )  # fmt: skip
        session.add(second)
        session.flush()
        findings.note(session, row, second, dataclasses.replace(passed(1.0), findings=every))
        row.result_id = second.id

    act("Tom", name, grade_again)
    assert (queue() != ([], [], [])) is waits


def test_the_student_is_told_what_was_decided_and_reads_the_reason_that_is_meant_for_them(world, act):
    name = held(world)
    act("Tom", name, lambda s, u, r: clear(s, u, r, Review.rejected, told=True))
    with world.database.reading() as session:
        row = session.scalars(select(Notification).where(Notification.kind == NotificationKind.held_decided)).one()
        assert row.url == f"/submissions/{name}/appeal"
        assert "does not count" in row.title
        submission = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        assert appeals.told_reason(session, submission) == "looked"
    act("Tom", name, clear)
    with world.database.reading() as session:
        submission = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        assert appeals.told_reason(session, submission) == ""


def test_who_decides_second_is_told(world, act):
    name = held(world)
    act("Tom", name, lambda s, u, r: clear(s, u, r, seen=Review.held))
    with pytest.raises(ConflictError, match="meanwhile"):
        act("Uma", name, lambda s, u, r: clear(s, u, r, Review.rejected, seen=Review.held))
    assert world.submission(name).review is Review.cleared


def test_a_student_appeals_once_and_staff_decide_once_more(world, queue, act):
    name = held(world)
    act("Tom", name, lambda s, u, r: clear(s, u, r, Review.rejected))
    with pytest.raises(ForbiddenError):
        act("Bob", name, say)
    act("Alice", name, say)
    assert queue() == ([name], [], [])
    with pytest.raises(ConflictError):
        act("Alice", name, say)
    with pytest.raises(InvalidInputError):
        act("Uma", name, lambda s, u, r: answer(s, u, r, reason=" "))
    assert act("Uma", name, lambda s, u, r: answer(s, u, r, Review.cleared)) is Review.cleared
    row = world.submission(name)
    assert (row.review, row.points) == (Review.cleared, 100)
    assert queue() == ([], [], [])
    with pytest.raises(ConflictError):
        act("Tom", name, answer)
    act("Tom", name, lambda s, u, r: clear(s, u, r, Review.rejected))
    with pytest.raises(ConflictError):
        act("Alice", name, say)


def test_an_appeal_may_come_to_what_it_was_and_everybody_is_told(world, act):
    name = held(world)
    act("Tom", name, lambda s, u, r: clear(s, u, r, Review.rejected))
    act("Alice", name, say)
    assert act("Uma", name, answer) is Review.rejected
    with world.database.reading() as session:
        people = {row.id: row.name for row in session.scalars(select(User))}
        told = [(people[row.user_id], row.kind.value) for row in session.scalars(select(Notification))]
        assert sorted(told) == [
            ("Alice", "held_decided"), ("Alice", "held_decided"),
            ("Tom", "regrade_request_opened"), ("Uma", "regrade_request_opened"),
        ]  # fmt: skip
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
        assert actions[-2:] == ["submission.appealed", "submission.appeal_answered"]


@pytest.mark.parametrize(("review", "said"), [(Review.cleared, "counts"), (Review.rejected, "does not count")])
def test_a_decision_answers_the_appeal_that_was_read_and_the_student_is_told_once(world, queue, act, review, said):
    name = held(world)
    act("Alice", name, say)
    act("Tom", name, lambda s, u, r: settle(s, u, r, review))
    assert queue() == ([], [], [])
    assert world.submission(name).review is review
    with world.database.reading() as session:
        appeal = session.scalars(select(Appeal)).one()
        assert (appeal.decision, appeal.reason, appeal.decided_at) == (review, "I looked.", START)
        told = session.scalars(select(Notification).where(Notification.kind == NotificationKind.held_decided)).one()
        assert told.title == f"Your appeal about submission 1 in Vector add was answered: its speed {said}"
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
        assert actions[-2:] == ["submission.reviewed", "submission.appeal_answered"]
    with pytest.raises(ConflictError, match="answered this appeal meanwhile"):
        act("Uma", name, settle)


def test_an_appeal_is_answered_by_who_read_it_and_for_good(world, queue, act):
    name = held(world)
    act("Alice", name, say)
    with pytest.raises(ConflictError, match="appealed meanwhile"):
        act("Tom", name, lambda s, u, r: settle(s, u, r, read=False))
    with pytest.raises(InvalidInputError, match="accept its speed or reject it"):
        act("Tom", name, lambda s, u, r: settle(s, u, r, Review.held))
    assert (world.submission(name).review, queue()) == (Review.held, ([name], [], []))


def test_a_decision_where_nobody_appealed_is_a_decision(world, act):
    name = held(world)
    act("Tom", name, lambda s, u, r: settle(s, u, r, Review.rejected, read=False))
    assert world.submission(name).review is Review.rejected
    act("Alice", name, say)
    act("Uma", name, lambda s, u, r: settle(s, u, r, seen=Review.rejected))
    # What was answered is in nobody's way.
    act("Uma", name, lambda s, u, r: settle(s, u, r, Review.rejected, seen=Review.cleared, read=False))
    assert world.submission(name).review is Review.rejected


def test_what_counts_cannot_be_appealed_against(world, act):
    name = graded(world, passed(1.0))
    with pytest.raises(ConflictError):
        act("Alice", name, say)
    second = held(world, "Bob")
    for text in ("", " ", "x" * 4001):
        with pytest.raises(InvalidInputError):
            act("Bob", second, lambda s, u, r, text=text: say(s, u, r, text))


def test_kernels_are_found_in_the_source():
    kernels = results.gpu_check().device_kernels
    own = next(kernel for kernel in kernels if kernel.own)
    source = f"import triton\n\n\ndef {own.name}(x):\n    pass\n\n\ndef {own.name}_2(x):\n    pass\n"
    assert set(kernel_lines(source, kernels)) == {4}
    assert kernel_lines("", kernels) == {}


def test_the_evidence_has_what_there_is_to_decide_by(world, visit):
    timed = dataclasses.replace(results.on_gpu("large", 2.0, agrees=False), held="Below the floor.", floor_us=1e9)
    check = results.gpu_check()
    whole = dataclasses.replace(
        passed(2.0, held=True), measurements=(timed,), gpu=results.GPU, findings=(*check.findings, LIBRARY),
        device_kernels=check.device_kernels,
    )  # fmt: skip
    graded(world, passed(3.0))
    name = graded(world, whole)
    path = f"/submissions/{name}/evidence"
    assert visit("Alice", path)[0] == 404
    status, text = visit("Tom", path)[:2]
    assert status == 200
    for said in ("Faster than the hardware.", "Claimed (event clock)", "At most (judge's clock)",
                 "claim is below the limit", "FillFunctor", "aten::add", "This student's times", "forge", "NVIDIA H200",
                 "Every sample", "Let its speed count"):  # fmt: skip
        assert said in text, said
    assert "Faster than the hardware." in visit("Tom", "/courses/gpu/review")[1]
    assert visit("Tom", path, {"action": "rejected", "seen": "held", "reason": " "})[0] == 422
    assert visit("Alice", path, {"action": "cleared", "seen": "held", "reason": "mine"})[0] == 404
    assert visit("Tom", path, {"action": "rejected", "seen": "held", "reason": f"forged {NASTY}"})[0] == 303
    status, text = visit("Uma", path, {"action": "cleared", "seen": "held", "reason": "kept reason"})[:2]
    assert status == 409
    assert "kept reason" in text
    appeal = f"/submissions/{name}/appeal"
    text = visit("Alice", appeal)[1]
    assert f"forged {NASTY}" in text
    assert "Below the floor" not in text
    assert visit("Bob", appeal)[0] == 404
    assert visit("Tom", appeal, {"text": "x"})[0] == 403
    assert visit("Alice", appeal, {"text": "x" * 5000})[0] == 422
    assert visit("Alice", appeal, {"text": f"real {NASTY}"})[0] == 303
    text = visit("Tom", "/courses/gpu/review")[1]
    assert f"real {NASTY}" in text
    given = {"action": "rejected", "seen": "rejected", "reason": "looked again", "appeal": "true"}
    assert visit("Uma", path, given)[0] == 303
    assert "looked again" in visit("Alice", appeal)[1]
    text = visit("Tom", "/courses/gpu/review?done=rejected")[1]
    for said in ("Nothing to review.", "its speed does not count", "can be changed"):
        assert said in text, said


def test_who_decides_second_on_a_page_that_is_old_is_told(world, visit):
    name = held(world)
    path = f"/submissions/{name}"
    form = visit("Uma", path).html.partition(f'action="{path}/review"')[2].partition("</form>")[0]
    seen = dict(re.findall(r'name="(seen)" value="(\w+)"', form))
    forged = {"action": "rejected", "seen": "held", "reason": "It is forged."}
    assert visit("Tom", f"{path}/evidence", forged).status == 303
    stale = {"decision": "cleared", "reason": "It looks real.", **seen}
    told = visit("Uma", f"{path}/review", stale)
    assert told.status == 409
    assert "Somebody else decided meanwhile" in told.html
    assert 'name="seen" value="rejected"' in told.html
    assert 'value="It looks real."' in told.html
    assert world.submission(name).review is Review.rejected
    assert visit("Uma", f"{path}/review", {**stale, "seen": "rejected"}).status == 303


def fields(shown, action):
    """What the page's form for this sends without being typed."""
    form = shown.html.partition(f'action="{action}"')[2].partition("</form>")[0]
    return dict(re.findall(r'name="(seen|appeal)" value="(\w+)"', form))


@pytest.mark.parametrize("rejected", [False, True])
def test_the_page_of_a_submission_shows_the_open_appeal_and_its_decision_answers_it(world, act, visit, rejected):
    name = held(world)
    if rejected:
        act("Tom", name, lambda s, u, r: clear(s, u, r, Review.rejected))
    path = f"/submissions/{name}"
    assert visit("Alice", f"{path}/appeal", {"text": f"real {NASTY}"}).status == 303
    page = visit("Tom", path)
    assert f"real {NASTY}" in page.text
    assert ("It stays rejected" in page.text, "Hold it" in page.text) == (rejected, False)
    assert f"real {NASTY}" not in visit("Alice", path).text
    given = {"decision": "rejected", "reason": "The clock is forged.", **fields(page, f"{path}/review")}
    assert given["appeal"] == "true"
    assert visit("Tom", f"{path}/review", {**given, "decision": "held"}).status == 422
    assert visit("Tom", f"{path}/review", given).status == 303
    assert "Staff have decided twice" in visit("Alice", f"{path}/appeal").text
    assert "The clock is forged." in visit("Alice", f"{path}/appeal").text
    assert "Nothing to review." in visit("Tom", "/courses/gpu/review").text
    page = visit("Tom", path)
    assert ("appeal" in fields(page, f"{path}/review"), f"real {NASTY}" in page.text) == (False, False)


@pytest.mark.parametrize(("page", "field"), [("", "decision"), ("/evidence", "action")])
def test_who_decides_without_having_read_the_appeal_is_shown_it(world, visit, page, field):
    name = held(world)
    path = f"/submissions/{name}"
    action = f"{path}{page or '/review'}"
    given = {field: "rejected", "reason": "It is forged.", **fields(visit("Tom", f"{path}{page}"), action)}
    assert visit("Alice", f"{path}/appeal", {"text": "It is real."}).status == 303
    told = visit("Tom", action, given)
    assert told.status == 409
    for said in ("appealed meanwhile", "It is real."):
        assert said in told.text
    assert "It is forged." in told.html
    assert world.submission(name).review is Review.held
    assert visit("Tom", action, {**given, **fields(told, action)}).status == 303
    assert world.submission(name).review is Review.rejected


def test_looking_at_a_finding_is_no_decision(world, visit):
    name = found(world)
    path = f"/submissions/{name}/evidence"
    assert "A library call does the work" in visit("Tom", "/courses/gpu/review")[1]
    assert visit("Tom", path, {"action": "looked_at", "seen": "none", "reason": "a warm-up"})[0] == 303
    assert world.submission(name).review is Review.none
    assert "Nothing to review." in visit("Tom", "/courses/gpu/review")[1]
    assert "a warm-up" in visit("Uma", path)[1]
