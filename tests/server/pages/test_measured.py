"""What a submission's page says of a measurement: whose it is, what is withheld, what comes next; and who decides."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import select, update

from autograder.assignment import LanePolicy, Points
from autograder.contract import (
    AttemptEvent,
    Calibration,
    CaseFinished,
    Event,
    FindingKind,
    Kind,
    Lane,
    NodeReport,
    Phase,
    PhaseStarted,
    Review,
    Throttle,
    Verdict,
    Work,
)
from server.grading.confirm import confirm_due
from server.grading.requeue import requeue
from server.models import Assignment, ChangeReason, Line, Submission, User
from server.pages import labels, submission_view
from server.pages.submission_view import sheet_of
from server.regrades.console import rescore
from server.submissions import submissions
from tests.browser import results
from tests.doubles.world import SOURCE, case, manifest, passed
from tests.server.test_leaderboard import counted

GPU = {"lane": Lane.h200}


@pytest.fixture
def database_url(sqlite_url):
    return sqlite_url


@pytest.fixture
def page(visit):
    """The text of a page that is there; by `post`, the status of a form's answer."""

    def call(person, path, post=None):
        status, text, _ = visit(person, path, post)
        if post is not None:
            return status
        assert status == 200, text
        return text

    return call


def graded(world, result, **changes):
    return world.grade(result, node="forge", **{**GPU, **changes})


def test_every_word_of_the_contract_that_a_page_says_is_there():
    assert set(labels.FINDINGS) == set(FindingKind)
    assert set(labels.THROTTLES) == set(Throttle)
    assert set(labels.CHANGES) == set(ChangeReason)
    assert set(labels.LINES) == set(Line)


def test_a_held_submission_says_what_is_withheld_and_why_to_staff_only(world, page):
    name = graded(world, dataclasses.replace(passed(0.1), held=True, held_reason="Below the floor."))
    text = page("Alice", f"/submissions/{name}")
    assert "Held for review" in text
    assert "The verdict and the 60 points for correctness stand" in text
    assert "Withheld until then: its speed points and its place on the leaderboard" in text
    assert "Below the floor" not in text
    assert "Below the floor" in page("Tom", f"/submissions/{name}")


def test_one_that_is_held_without_a_verdict_says_so_and_takes_no_appeal_that_nobody_could_answer(world, page):
    name = world.submit("Alice", work=Work.check, **GPU)
    for _ in range(world.config.max_attempts):
        world.claimed(world.take("forge"), "forge")
        world.wait(world.config.lease_s + 1)
        world.sweep()
    assert world.submission(name).review is Review.held
    text = page("Alice", f"/submissions/{name}")
    assert "Held: it has no verdict yet" in text
    assert "The verdict" not in text
    assert "Staff only" not in text
    assert "read its source before you have it graded again" in page("Tom", f"/submissions/{name}")
    assert "Send the appeal" not in page("Alice", f"/submissions/{name}/appeal")
    assert page("Alice", f"/submissions/{name}/appeal", {"text": "Please."}) == 409
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        requeue(session, row, now=world.now)
    again = page("Alice", f"/submissions/{name}")
    assert "The verdict" not in again
    assert "Held: it has no verdict yet" not in again


def test_one_that_is_measured_once_more_says_that_its_correctness_stands(world, page):
    name = graded(world, dataclasses.replace(passed(2.0), remeasure="The times vary too much."))
    text = page("Alice", f"/submissions/{name}")
    assert "Its speed has to be measured again" in text
    assert "the points for correctness stand" in text
    assert "The times vary too much" not in text
    assert "The times vary too much" in page("Tom", f"/submissions/{name}")


@pytest.mark.parametrize(
    ("work", "phase", "verdict", "said"),
    [
        (
            Work.check,
            Phase.profiling,
            Verdict.passed,
            "All 2 cases passed. The kernel is being inspected; then it will be timed",
        ),
        (Work.all, Phase.profiling, Verdict.passed, "All 2 cases passed. The kernel is being inspected."),
        (Work.all, Phase.measuring, Verdict.passed, "All 2 cases passed. Its speed is being measured."),
        (Work.check, Phase.profiling, Verdict.wrong_answer, "2 cases finished, 1 passed so far."),
        (Work.check, Phase.checking, Verdict.passed, "2 cases finished, 2 passed so far."),
    ],
)
def test_that_all_cases_passed_is_said_at_once_while_the_kernel_is_looked_at(  # noqa: PLR0917  # one table
    world, page, work, phase, verdict, said
):
    name = world.submit(work=work, **GPU)
    task = world.take("forge")
    steps = (
        Event(phase=PhaseStarted(Phase.checking, 1.0)),
        Event(case=CaseFinished(0, 2, case("small"))),
        Event(case=CaseFinished(1, 2, case("large", verdict))),
        Event(phase=PhaseStarted(phase, 2.0)),
    )
    for number, step in enumerate(steps):
        world.send(Kind.event, AttemptEvent(task.attempt, task.fence, number, step), "forge")
    assert said in page("Alice", f"/submissions/{name}")


def test_one_that_is_confirmed_keeps_its_verdict_on_the_page(world, page):
    name = graded(world, passed(2.0))
    with world.database.transaction() as session:
        assert confirm_due(session, now=world.now) == 1
    text = page("Alice", f"/submissions/{name}")
    assert "Its grade stands. It will be graded once more" in text
    assert "Passed" in text
    assert "before you" not in text


def test_what_the_live_stream_prints_outlives_the_session(world):
    name = graded(world, passed(2.0))
    with world.database.reading() as session:
        alice = session.scalars(select(User).where(User.name == "Alice")).one()
        submission = submissions.find(session, alice, name)
        sheet = sheet_of(session, submission, alice, wait=None, max_attempts=3)
    assert [(change.before, change.reason) for change in sheet.changes] == [(None, ChangeReason.graded)]
    assert sheet.changes[0].after == pytest.approx(sheet.view.score.total)


def test_what_else_gives_points_is_looked_up_once_it_is_final_and_only_where_it_is_said(world, monkeypatch):
    asked = []

    def lanes(*_session, **_more):
        asked.append(1)
        return frozenset()

    monkeypatch.setattr(submission_view.nodes, "lanes_in_service", lanes)

    def note(name):
        asked.clear()
        with counted(world.database) as statements, world.database.reading() as session:
            alice = session.scalars(select(User).where(User.name == "Alice")).one()
            submission = submissions.find(session, alice, name)
            said = sheet_of(session, submission, alice, wait=None, max_attempts=3).points_note
        return said, len(asked), sum("quizzes" in statement for statement in statements)

    practice = world.grade(passed(), "Alice")
    said, *cost = note(practice)
    assert said.startswith("The assignment gives 100 points")
    assert cost == [1, 1]
    assert note(graded(world, passed(2.0))) == ("", 0, 1)
    with world.database.transaction() as session:
        session.execute(update(Submission).where(Submission.public_id == practice).values(state="queued"))
    assert note(practice) == ("", 0, 0)


def test_what_passed_leads_on_and_to_a_leaderboard_only_where_there_is_one(world, page):
    rung = "/courses/gpu/assignments/vector_add"
    ranked = page("Alice", f"/submissions/{world.grade(passed(), 'Alice')}")
    assert "Next: the ladder" in ranked
    for text in (ranked, page("Alice", rung)):
        assert "Leaderboard" in text
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes={"cpu": LanePolicy(ranks=False)}, points=Points(100, 0)))
    for text in (page("Alice", f"/submissions/{world.grade(passed(), 'Alice')}"), page("Alice", rung)):
        assert "Leaderboard" not in text


def test_a_measurement_names_its_clock_its_bound_its_node_and_what_kept_the_clocks_down(world, page):
    timed = results.on_gpu("large", 2.0, agrees=False)
    name = graded(world, dataclasses.replace(passed(2.0), measurements=(timed,), gpu=results.GPU))
    text = page("Alice", f"/submissions/{name}")
    for said in ("Ranked by the event clock", "32 calls in a row took, by the judge", "the reference alone afterwards",
                 "power limit", "outside ± 2.0 %", "forge", "NVIDIA H200", "driver 580.95"):  # fmt: skip
        assert said in text
    assert "1,965–1,980 MHz" not in text
    assert "1,965–1,980 MHz" in page("Tom", f"/submissions/{name}")


def test_a_pool_and_its_changes_are_told(world, page):
    first = graded(world, passed(2.0), source=SOURCE)
    graded(world, passed(4.0), source=SOURCE)
    text = page("Alice", f"/submissions/{first}")
    assert "samples of 2 attempts with this same kernel" in text
    assert "the same kernel was measured again: its samples were added" in text


def test_what_was_compiled_is_a_table_and_what_ran_is_for_staff(world, page):
    check = results.gpu_check()
    extra = {name: getattr(check, name) for name in ("compiled", "requirements", "device_kernels", "findings")}
    name = graded(world, dataclasses.replace(passed(2.0), **extra))
    text = page("Alice", f"/submissions/{name}")
    for said in ("sm_90a", "sm_100a", "vector_add_kernel", "48.0 KiB", "Would not compile", "line 14", "Not met",
                 "Could not be checked", "without a device; not measured"):  # fmt: skip
        assert said in text
    assert "FillFunctor" not in text
    assert "Decide whether its speed counts" not in text
    staff = page("Tom", f"/submissions/{name}")
    assert "FillFunctor" in staff
    assert "Decide whether its speed counts" in staff


def test_staff_decide_by_the_page_and_nobody_else_does(world, page):
    name = graded(world, dataclasses.replace(passed(1.0), held=True))
    path, decision = f"/submissions/{name}/review", {"decision": "cleared", "seen": "held"}
    for person in ("Alice", "Bob"):
        assert page(person, path, decision) == 404
    assert page("Tom", path, {**decision, "decision": "none"}) == 422
    assert page("Tom", path, {**decision, "reason": " "}) == 422
    assert page("Tom", path, {"decision": "cleared", "reason": "What was seen?"}) == 422
    assert page("Tom", path, {**decision, "reason": "read it"}) == 303
    assert page("Tom", path, {**decision, "reason": "again"}) == 409
    row = world.submission(name)
    assert (row.review, row.points) == (Review.cleared, 100)


def test_whose_points_a_regrade_changed_reads_why(world, visit):
    name = graded(world, passed(2.0))
    with world.database.transaction() as session:
        world.publish(session, manifest(points=Points(correctness=90, speed=10)))
        only = session.scalars(select(Assignment)).one()
        rescore(session, only, reason="A <b>tolerance</b> was wrong.", apply=True, may_lower=True, now=world.now)
    said = "computed again with another formula or other points: “A &lt;b&gt;tolerance&lt;/b&gt; was wrong.”"
    assert said in visit("Alice", f"/submissions/{name}").html


def test_a_decision_leads_students_to_an_appeal_and_staff_to_the_evidence(world, page, visit):
    name = graded(world, dataclasses.replace(passed(1.0), held=True))
    appeal, evidence = f'href="/submissions/{name}/appeal"', f'href="/submissions/{name}/evidence"'
    for seen, decision in (("held", "rejected"), ("rejected", "held")):
        alice, tom = (visit(person, f"/submissions/{name}").html for person in ("Alice", "Tom"))
        assert (appeal in alice, evidence in alice) == (True, False)
        assert evidence in tom
        given = {"decision": decision, "seen": seen, "reason": "Looked."}
        assert page("Tom", f"/submissions/{name}/review", given) == 303


def test_the_leaderboard_says_how_often_an_entry_was_confirmed(world, page):
    name = graded(world, passed(2.0))
    with world.database.transaction() as session:
        session.scalars(select(Submission).where(Submission.public_id == name)).one().confirmations = 2
    assert "confirmed × 2" in page("Bob", "/courses/gpu/assignments/vector_add/leaderboard?lane=h200")


def test_the_operations_page_shows_what_nodes_measure_with(world, page):
    facts = {"gpu": "NVIDIA H200", "gpu driver": "580.95", "runner image": "sha256:abc", "sandbox": "docker",
             "trouble": "its golden kernel failed twice"}  # fmt: skip
    floor = Calibration(1.0, Lane.h200, 5, "large", 1.0, 0.0021, 402.0, 0.004)
    world.send("node", NodeReport((Lane.h200,), 0, draining=True, facts=facts, at=world.now.timestamp(),
                                  calibration=floor), "forge")  # fmt: skip
    text = page("Ada", "/operations")
    for said in ("NVIDIA H200", "580.95", "sha256:abc", "± 0.21 %", "of 5 measurements", "In trouble",
                 "its golden kernel failed twice"):  # fmt: skip
        assert said in text
