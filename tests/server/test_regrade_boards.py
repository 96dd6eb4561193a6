"""Before a proposal is applied, staff see who would leave a leaderboard or lose a record."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from autograder.contract import Lane
from server.models import Regrade, RegradeItem, RegradeState, Role, Submission
from server.regrades import boards, lifecycle
from server.regrades.selection import Selection, Which
from tests.doubles.world import SOURCE, World, passed
from tests.server.test_regrades import GPU, STRICTER, Staff, strict, strict_wrong

FASTER = SOURCE + b"# faster\n"


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("forge", lanes=(Lane.h200,))
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
    yield world
    world.database.dispose()


@pytest.fixture
def staff(world):
    return Staff(world)


@pytest.fixture
def handed_in(world):
    """Alice's first has all points and counts; her second, as good for the gradebook, leads the board. Bob is third."""
    first = world.grade(passed(1.0), **GPU)
    second = world.grade(passed(0.5), source=FASTER, **GPU)
    return first, second, world.grade(passed(2.0), "Bob", **GPU)


def outlook(world, regrade):
    with world.database.reading() as session:
        return boards.outlook(session, session.get_one(Regrade, regrade))


def picked(*names):
    return Selection(Which.picked, picked=names)


def test_what_a_leaderboard_shows_is_chosen_with_what_the_gradebook_counts(world, staff, handed_in):
    staff.publish(cases=STRICTER)
    regrade = staff.propose(Which.counting)
    with world.database.reading() as session:
        query = select(Submission.public_id).join(RegradeItem, RegradeItem.submission_id == Submission.id)
        assert set(session.scalars(query.where(RegradeItem.regrade_id == regrade))) == set(handed_in)


def test_where_all_are_graded_by_the_new_version_and_none_is_slower_nothing_changes(world, staff, handed_in):
    staff.publish(cases=STRICTER)
    regrade = staff.propose(Which.counting)
    staff.run(regrade, strict(1.0), strict(0.5), strict(2.0), node="forge")
    assert staff.regrade(regrade).state is RegradeState.ready
    assert outlook(world, regrade) == ()


def test_who_is_not_graded_by_the_new_version_leaves_the_board_and_a_record_is_lost(world, staff, handed_in):
    staff.publish(cases=STRICTER)
    regrade = staff.propose(selection=picked(handed_in[0]))
    staff.run(regrade, strict(1.0), node="forge")
    (board,) = outlook(world, regrade)
    assert (board.lane, board.other_version, board.leave, board.lose_records) == (Lane.h200, True, 1, 1)
    assert board.moved == (boards.Moved("Bob", 2, None, 0), boards.Moved("Alice", 1, 1, 1))
    staff.do(lifecycle.apply, regrade)
    staff.work()
    assert outlook(world, regrade) == ()


def test_who_fails_the_new_version_leaves_the_board_though_points_are_kept(world, staff, handed_in):
    staff.publish(cases=STRICTER)
    regrade = staff.propose(Which.counting)
    staff.run(regrade, strict(1.0), strict(0.5), strict_wrong(), node="forge")
    (board,) = outlook(world, regrade)
    assert board.moved == (boards.Moved("Bob", 2, None, 0),)


def test_by_the_same_version_what_is_no_better_keeps_its_place(world, staff, handed_in):
    regrade = staff.propose(selection=picked(handed_in[1]))
    staff.run(regrade, passed(4.0), node="forge")
    assert outlook(world, regrade) == ()
