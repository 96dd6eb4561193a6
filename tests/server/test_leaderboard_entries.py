"""Who is best on each board: stored, and right after every transaction that changes a result."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from click.testing import CliRunner
from sqlalchemy import delete, select, update

from autograder.contract import Lane, Language, Review
from server import cli
from server.grading import leaderboard_entries
from server.grading.ranking import EVERYTHING, Boards, Selection, best, outline
from server.grading.review import decide
from server.models import Assignment, Best, Course, Result, Submission, User
from tests.doubles.world import World, manifest, passed, wrong

GPU = {"lane": Lane.h200}


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.add_node("forge", lanes=(Lane.h200,))
    yield world
    world.database.dispose()


def grade(world, ratio, person="Alice", **changes):
    return world.grade(passed(ratio, spread=0.001), person, "forge", **GPU, **changes)


def stored(world):
    """`(person, language, whether it leads, receipt)`, by person and language."""
    with world.database.reading() as session:
        query = select(User.name, Best.language, Best.leads, Submission.public_id)
        query = query.join(User, User.id == Best.user_id).join(Submission, Submission.id == Best.submission_id)
        return [tuple(row) for row in session.execute(query.order_by(User.name, Best.language))]


def wrong_rows(world):
    with world.database.reading() as session:
        return leaderboard_entries.differences(session, session.scalars(select(Course.id)).one())


def change(world, name, **values):
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        for attribute, value in values.items():
            setattr(row, attribute, value)


def test_a_faster_result_takes_the_place_and_a_slower_one_does_not(world):
    first = grade(world, 2.0)
    assert stored(world) == [("Alice", Language.triton, True, first)]
    grade(world, 3.0)
    assert stored(world)[0][3] == first
    faster = grade(world, 1.5)
    world.grade(wrong(), "Alice", "forge", **GPU)
    assert stored(world) == [("Alice", Language.triton, True, faster)]
    assert wrong_rows(world) == []


def test_what_staff_reject_gives_its_place_back(world):
    second, first = grade(world, 2.0), grade(world, 1.5)
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == first)).one()
        decide(session, row, Review.rejected, actor=None, reason="A library.", now=world.now)
    assert [row[3] for row in stored(world)] == [second]
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == first)).one()
        decide(session, row, Review.cleared, actor=None, reason="It is none.", now=world.now)
    assert [row[3] for row in stored(world)] == [first]


def test_of_two_languages_both_are_kept_and_the_faster_leads(world):
    slow, fast = grade(world, 2.0), grade(world, 1.5, language=Language.cuda)
    assert stored(world) == [("Alice", Language.cuda, True, fast), ("Alice", Language.triton, False, slow)]
    with world.database.reading() as session:
        shown = {
            language: [row.public_id for row in session.execute(best(Selection(language=language), Boards()))]
            for language in (None, Language.triton, Language.cuda)
        }
    assert shown == {None: [fast], Language.triton: [slow], Language.cuda: [fast]}


def test_numbers_that_change_later_are_followed(world):
    name = grade(world, 2.0)
    with world.database.transaction() as session:
        session.scalars(select(Result)).one().ratio = 1.25
    with world.database.reading() as session:
        assert session.scalars(select(Best.ratio)).one() == 1.25
    with world.database.transaction() as session:
        session.scalars(select(Result)).one().settled = False
    assert stored(world) == []
    change(world, name, review=Review.cleared)
    assert [row[3] for row in stored(world)] == [name]


@pytest.mark.parametrize("statement", [
    update(Submission).values(review=Review.held),
    update(Result).values(ratio=None),
    update(Submission).where(Submission.id > 0).values(result_id=None),
])  # fmt: skip
def test_a_statement_about_many_rows_is_seen_too(world, statement):
    grade(world, 2.0)
    grade(world, 1.5, "Bob")
    with world.database.transaction() as session:
        session.execute(statement)
    assert stored(world) == []
    assert wrong_rows(world) == []


def test_many_are_looked_at_in_parts_and_nobody_else_is(world, monkeypatch):
    monkeypatch.setattr(leaderboard_entries, "_MOST_AT_ONCE", 1)
    with world.database.transaction() as session:
        world.enrol(session, "Cleo")
    for person in ("Alice", "Bob", "Cleo"):
        grade(world, 2.0, person)
    with world.database.transaction() as session:
        cleo = session.scalars(select(User.id).where(User.name == "Cleo")).one()
        session.connection().exec_driver_sql(f"DELETE FROM leaderboard_bests WHERE user_id = {cleo}")
        session.execute(update(Submission).where(Submission.user_id != cleo).values(review=Review.held))
    # Whoever is not locked may be changed by somebody else just now.
    assert stored(world) == []
    assert [row.right[3] for row in wrong_rows(world)] == [cleo]


def test_what_is_deleted_leaves_no_place(world):
    second, first = grade(world, 2.0), grade(world, 1.5)
    with world.database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == first)).one()
        row.result_id = None
        session.flush()
        session.execute(delete(Submission).where(Submission.id == row.id))
    assert [row[3] for row in stored(world)] == [second]


def test_what_is_rolled_back_changes_nothing(world):
    name = grade(world, 2.0)

    def reject_and_fail():
        with world.database.transaction() as session:
            session.scalars(select(Submission)).one().review = Review.rejected
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reject_and_fail()
    assert [row[3] for row in stored(world)] == [name]


def test_another_way_of_grading_has_a_board_of_its_own_and_the_old_one_comes_back(world):
    old = grade(world, 1.5)
    with world.database.transaction() as session:
        before = session.scalars(select(Assignment)).one().version_id
        world.publish(session, manifest(entry="other"))
    with world.database.reading() as session:
        assert session.execute(best(EVERYTHING, Boards())).all() == []
    assert [row[3] for row in stored(world)] == [old]
    with world.database.transaction() as session:
        session.scalars(select(Assignment)).one().version_id = before
    with world.database.reading() as session:
        assert [row.public_id for row in session.execute(best(EVERYTHING, Boards()))] == [old]


def test_what_is_stored_shows_what_everything_that_was_handed_in_shows(world):
    """The same selection by both ways of `ranked`: from what is stored, and as of now from all results."""
    dice = random.Random(7)
    for _ in range(14):
        ratio, language = dice.choice([0.8, 1.0, 1.5, 2.0]), dice.choice([Language.triton, Language.cuda])
        name = grade(world, ratio, dice.choice(["Alice", "Bob"]), language=language)
        if dice.random() < 0.3:
            change(world, name, review=dice.choice([Review.rejected, Review.held, Review.cleared]))
    later = world.now + timedelta(days=1)
    with world.database.reading() as session:
        for language in (None, Language.triton, Language.cuda):
            now = session.execute(outline(Selection(language=language), Boards(lanes=[Lane.h200]))).all()
            then = session.execute(outline(Selection(language=language, as_of=later), Boards(lanes=[Lane.h200]))).all()
            assert [tuple(row) for row in now] == [tuple(row) for row in then]
            assert now


def test_what_was_written_past_the_session_is_found_and_put_right(world):
    name = grade(world, 2.0)
    with world.database.transaction() as session:
        session.connection().exec_driver_sql("DELETE FROM leaderboard_bests")
    assert len(wrong_rows(world)) == 1
    database = {"LADDER_HOME": str(world.config.home), "LADDER_DATABASE_URL": world.config.database_url}
    said = CliRunner().invoke(cli.admin, ["recompute-grades"], env=database, catch_exceptions=False).output
    assert "1 place on boards" in said
    assert [row[3] for row in stored(world)] == [name]
