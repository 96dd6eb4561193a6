"""What stands on a leaderboard is looked at by the sanitizer: once, by itself, at nobody's cost."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.orm import joinedload

from autograder.contract import Lane, NodeReport, Work
from server.models import Line, Mode, Node, State, Submission
from server.nodes import nodes
from server.pages.labels import status_label
from server.submissions import board_inspections, inspections, submissions
from tests.doubles.sanitized import SANITIZED, sanitized_result
from tests.doubles.world import World, passed

GPU = {"lane": Lane.h200}


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("kiln", lanes=(Lane.h200,))
    with world.database.transaction() as session:
        for number in range(3):
            world.enrol(session, f"Student{number}")
    yield world
    world.database.dispose()


def look(world):
    with world.database.transaction() as session:
        return board_inspections.inspect_due(session, now=world.now)


def runs(world):
    """Sanitizer runs, as owner, line, state."""
    with world.database.reading() as session:
        query = select(Submission).where(Submission.mode == Mode.sanitize).options(joinedload(Submission.user))
        found = session.scalars(query.order_by(Submission.id))
        return [(row.user.name, row.line, row.state) for row in found.all()]


def hand_in(world, person="Student0", **changes):
    return world.grade(passed(1.0, spread=0.001), person, "kiln", **GPU, **changes)


def says(world, works):
    with world.database.transaction() as session:
        row = session.scalars(select(Node).where(Node.name == "kiln")).one()
        nodes.apply_report(
            row, NodeReport((Lane.h200,), 1, draining=False, facts={}, at=0.0, works=works), now=world.now
        )


def test_what_stands_on_a_board_is_looked_at_once(world):
    hand_in(world)
    hand_in(world, "Student1")
    assert look(world) == 2
    assert runs(world) == [(f"Student{number}", Line.confirm, State.queued) for number in range(2)]
    assert look(world) == 0
    for _ in range(2):
        world.finish(world.take("kiln"), sanitized_result(), "kiln")
    assert look(world) == 0
    assert [state for _, _, state in runs(world)] == [State.done, State.done]


def test_what_fails_and_what_is_no_submission_is_not(world):
    world.grade(passed(1.0), "Student1", "kiln", mode=Mode.run, **GPU)
    assert look(world) == 0


def test_one_that_its_owner_asked_for_is_enough(world):
    public_id = hand_in(world)
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == public_id)).one()
        source, source_hash = submissions.source_of(session, row), row.source_hash
    world.submit("Student0", mode=Mode.sanitize, line=Line.profile, source=source, source_hash=source_hash, **GPU)
    assert look(world) == 0


def test_it_waits_for_a_node_that_can(world):
    says(world, tuple(work for work in Work if work is not Work.sanitize))
    hand_in(world)
    assert look(world) == 0
    says(world, tuple(Work))
    assert look(world) == 1


def test_so_many_wait_at_most(world, monkeypatch):
    monkeypatch.setattr("server.grading.confirm.CONFIRM_LIMIT", 1)
    hand_in(world)
    hand_in(world, "Student1")
    assert [look(world), look(world)] == [1, 0]
    world.finish(world.take("kiln"), sanitized_result(), "kiln")
    assert look(world) == 1


def test_everybody_else_comes_first(world):
    hand_in(world)
    assert look(world) == 1
    later = world.submit("Student1", mode=Mode.run, line=Line.run, **GPU)
    task = world.take("kiln")
    assert task.request.mode is Mode.run
    assert world.state_of(later) is State.running


def test_what_it_found_is_on_its_owners_page_and_changes_no_grade(world):
    public_id = hand_in(world)
    look(world)
    before = world.submission(public_id)
    task = world.take("kiln")
    assert (task.request.work, task.request.case) == (Work.sanitize, "")
    world.finish(task, sanitized_result(), "kiln")
    after = world.submission(public_id)
    assert (after.verdict, after.review, after.result_id) == (before.verdict, before.review, before.result_id)
    with world.database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == public_id)).one()
        found = board_inspections.found_in(session, row)
        assert found is not None
        assert found.findings == SANITIZED.findings
        run = session.scalars(select(Submission).where(Submission.public_id == found.public_id)).one()
        assert status_label(run.state, run.verdict, run.phase, run.line, run.mode).word == "Done"


def test_a_clean_one_is_not_spoken_of(world):
    public_id = hand_in(world)
    look(world)
    world.finish(world.take("kiln"), sanitized_result(findings=()), "kiln")
    with world.database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == public_id)).one()
        assert board_inspections.found_in(session, row) is None


def test_it_uses_up_no_quota(world):
    hand_in(world)
    look(world)
    with world.database.reading() as session:
        rows = session.scalars(select(Submission).where(Submission.mode == Mode.sanitize)).all()
        asked = session.scalars(select(Submission).where(Submission.mode == Mode.sanitize, inspections.ASKED_FOR)).all()
    assert (len(rows), len(asked)) == (1, 0)
