from __future__ import annotations

import csv
import dataclasses
import io

import pytest
from sqlalchemy import select, update

from autograder.assignment import LanePolicy, Tolerance
from autograder.contract import Lane, Mode, Review
from server.leaderboard import service as leaderboard
from server.models import Assignment, Enrolment, Role, Submission, User
from tests.doubles.world import World, manifest, passed, wrong


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    with world.database.transaction() as session:
        world.enrol(session, "Carol")
        world.enrol(session, "Tom", Role.ta)
    yield world
    world.database.dispose()


def board(world, lane=Lane.cpu, viewer=None):
    with world.database.reading() as session:
        assignment = session.scalars(select(Assignment)).one()
        viewer_id = session.scalar(select(User.id).where(User.name == viewer))
        return leaderboard.board(session, assignment=assignment, lane=lane, viewer_id=viewer_id)


def standing(world, **options):
    return [(entry.rank, entry.name) for entry in board(world, **options).entries]


def test_students_stand_by_the_ratio_of_their_best_result(world):
    world.grade(passed(2.0), "Alice")
    world.grade(passed(0.5), "Bob")
    world.grade(passed(1.0), "Alice")
    world.grade(passed(3.0), "Alice")
    entries = board(world).entries
    assert [(entry.rank, entry.name, entry.ratio) for entry in entries] == [
        (1, "quiet-bob", pytest.approx(0.5)),
        (2, "quiet-alice", pytest.approx(1.0)),
    ]
    assert entries[0].time_us == pytest.approx(50)


def test_entries_whose_interval_overlaps_their_groups_leader_share_its_rank(world):
    world.grade(passed(1.00, spread=0.03), "Alice")
    world.grade(passed(1.05, spread=0.03), "Bob")
    # Carol overlaps Bob, and not the leader of his group: she leads the next one.
    world.grade(passed(1.10, spread=0.03), "Carol")
    assert standing(world) == [(1, "quiet-alice"), (1, "quiet-bob"), (3, "quiet-carol")]


def test_the_earlier_of_two_equal_results_stands_first(world):
    world.grade(passed(), "Bob")
    world.wait(1)
    world.grade(passed(), "Alice")
    assert standing(world) == [(1, "quiet-bob"), (1, "quiet-alice")]


def test_a_name_is_shown_only_by_choice_and_ones_own_row_is_marked(world):
    world.grade(passed(), "Alice")
    world.grade(passed(2.0), "Bob")
    with world.database.transaction() as session:
        bob = session.scalars(select(User).where(User.name == "Bob")).one()
        session.execute(update(Enrolment).where(Enrolment.user_id == bob.id).values(show_name=True))
    seen = board(world, viewer="Alice")
    assert [(entry.name, entry.own) for entry in seen.entries] == [("quiet-alice", True), ("Bob", False)]
    assert seen.own == seen.entries[0]


def test_what_is_no_valid_result_of_a_student_is_not_on_it(world):
    world.grade(wrong(), "Alice")
    world.grade(passed(), "Alice", mode=Mode.run)
    world.grade(passed(held=True), "Bob")
    world.grade(passed(), "Tom")
    world.grade(passed(), "Carol")
    with world.database.transaction() as session:
        carol = session.scalars(select(User).where(User.name == "Carol")).one()
        session.execute(update(Enrolment).where(Enrolment.user_id == carol.id).values(dropped_at=world.now))
    assert standing(world) == []


def test_a_held_result_leaves_the_one_before_it_and_comes_when_it_is_cleared(world):
    world.grade(passed(2.0), "Alice")
    world.grade(passed(0.1, held=True), "Alice")
    assert board(world).entries[0].ratio == pytest.approx(2.0)
    for decision, ratio in ((Review.cleared, 0.1), (Review.rejected, 2.0)):
        with world.database.transaction() as session:
            session.execute(update(Submission).where(Submission.review != Review.none).values(review=decision))
        assert board(world).entries[0].ratio == pytest.approx(ratio)


def test_lanes_and_versions_that_grade_otherwise_are_never_mixed(world):
    world.add_node("forge", lanes=(Lane.h200,))
    world.grade(passed(), "Alice")
    world.grade(passed(), "Bob", lane=Lane.h200, node="forge")
    assert standing(world) == [(1, "quiet-alice")]
    assert standing(world, lane=Lane.h200) == [(1, "quiet-bob")]
    with world.database.transaction() as session:
        world.publish(session, manifest(tolerance={"out": Tolerance("bounded", 1.0)}))
    assert standing(world) == []
    assert board(world).version == 2


def test_versions_that_grade_the_same_way_share_the_board(world):
    world.grade(passed(2.0), "Alice")
    world.grade(passed(0.5), "Bob")
    with world.database.transaction() as session:
        world.publish(session, manifest(title="Vector add, again"))
    assert board(world).version == 2
    assert standing(world) == [(1, "quiet-bob"), (2, "quiet-alice")]
    world.grade(passed(0.1), "Alice")
    assert standing(world) == [(1, "quiet-alice"), (2, "quiet-bob")]


def test_a_board_comes_back_with_what_graded_it(world):
    world.grade(passed(), "Alice")
    boards = []
    for content in (manifest(tolerance={"out": Tolerance("bounded", 1.0)}), manifest()):
        with world.database.transaction() as session:
            world.publish(session, content)
        boards.append(standing(world))
    assert boards == [[], [(1, "quiet-alice")]]


def test_the_cpu_lane_is_practice_and_a_lane_may_have_no_board(world):
    assert board(world).practice
    assert not board(world, lane=Lane.h200).practice
    world.grade(passed(), "Alice")
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes={"cpu": LanePolicy(ranks=False)}))
    assert not board(world).ranks
    assert not board(world, lane=Lane.b200).ranks


def test_an_entry_stays_while_its_submission_is_graded_again(world):
    name = world.grade(passed(), "Alice")
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        row.state = "queued"
    assert standing(world) == [(1, "quiet-alice")]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_no_cell_of_the_export_is_a_formula(world, name):
    world.grade(passed(), "Alice")
    entry = dataclasses.replace(board(world).entries[0], name=name)
    rows = list(csv.reader(io.StringIO(leaderboard.to_csv([entry]))))
    assert rows[0] == list(leaderboard.CSV_COLUMNS)
    assert rows[1][1] == f"'{name}"
    assert rows[1][2] == "1.0"
