from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import time
from contextlib import contextmanager
from datetime import timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, event, inspect, select, update
from sqlalchemy.orm import undefer

from autograder import languages
from autograder.assignment import Case, Cost, LanePolicy, Tolerance
from autograder.contract import Lane, Language, Mode, Review
from server.courses import courses
from server.courses.kept import Kept
from server.errors import NotFoundError
from server.grading.ranking import Selection, ranks
from server.grading.review import decide
from server.ids import public_id
from server.leaderboard import badges, showcase, standings, tables, viewer
from server.leaderboard import board as leaderboard
from server.leaderboard.limits import CaseWork, limit_us, work_of
from server.leaderboard.records import Record, records_of
from server.models import Assignment, Attempt, Best, Course, Enrolment, Result, Role, Submission, User
from server.pages.record_plot import record_plot
from server.pages.rendering import templates_of
from server.pages.standings import language_tabs
from tests.doubles.world import START, World, manifest, passed, wrong


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    with world.database.transaction() as session:
        world.enrol(session, "Carol")
        world.enrol(session, "Tom", Role.ta)
    yield world
    world.database.dispose()


def board(world, lane=Lane.cpu, viewer=None, selection=leaderboard.EVERYTHING):
    with world.database.reading() as session:
        assignment = session.scalars(select(Assignment)).one()
        viewer_id = session.scalar(select(User.id).where(User.name == viewer))
        return leaderboard.board(session, assignment=assignment, lane=lane, viewer_id=viewer_id, selection=selection)


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


def worth(world, name):
    """Of a submission on the H200's board: its points, and its numbers there."""
    (entry,) = (entry for entry in board(world, lane=Lane.h200).entries if entry.submission == name)
    return world.submission(name).points, entry.ratio, entry.ratio_low, entry.ratio_high, entry.time_us


@pytest.mark.parametrize("review", [Review.none, Review.held, Review.rejected])
def test_somebody_elses_far_better_time_changes_nobodys_points_and_ratio(world, review):
    """Or one forged best would lower everybody's grade."""
    world.add_node("forge", lanes=(Lane.h200,))
    gpu = {"lane": Lane.h200, "node": "forge"}
    bobs = world.grade(passed(2.0), "Bob", **gpu)
    before = worth(world, bobs)
    assert 60 < before[0] < 100, "his speed earns points, and could earn fewer or more"
    alices = world.grade(passed(0.01, held=review is not Review.none), "Alice", **gpu)
    if review is Review.rejected:
        with world.database.transaction() as session:
            row = session.scalars(select(Submission).where(Submission.public_id == alices)).one()
            decide(session, row, review, actor=None, reason="It is forged.", now=world.now)
    stands = review is Review.none
    assert (world.submission(alices).review, world.submission(alices).points) == (review, 100 if stands else 60)
    others = [(1, "quiet-alice"), (2, "quiet-bob")] if stands else [(1, "quiet-bob")]
    assert standing(world, lane=Lane.h200) == others
    assert worth(world, bobs) == before


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
    found = board(world)
    renamed = dataclasses.replace(found, entries=(dataclasses.replace(found.entries[0], name=name),))
    rows = list(csv.reader(io.StringIO(tables.board_table(renamed))))
    assert rows[0] == list(tables.ENTRY)
    assert rows[1][1] == f"'{name}"
    assert rows[1][2] == "1.0"


def ranks_by_the_rule(intervals):
    """Design §7 word for word: an entry whose interval overlaps that of the leader of its group shares its rank."""
    found = []
    for place, (low, _high) in enumerate(intervals):
        # Of every entry before it that leads a group, the last one leads the group that is open.
        leaders = [i for i, rank in enumerate(found) if rank == i + 1]
        leader = leaders[-1] if leaders else None
        shares = leader is not None and low <= intervals[leader][1]
        found.append(found[leader] if shares else place + 1)
    return found


intervals = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0, 0.5), st.floats(0, 0.5)).map(
        lambda item: (item[0], item[0] * (1 - item[1]), item[0] * (1 + item[2]))
    ),
    max_size=40,
).map(lambda items: [(low, high) for _, low, high in sorted(items)])


@given(intervals)
def test_ranks_are_by_the_rule(items):
    found = ranks(items)
    assert found == ranks_by_the_rule(items)
    assert found == sorted(found)
    assert all(1 <= rank <= place for place, rank in enumerate(found, start=1))


def test_whose_account_is_closed_is_on_no_board(world):
    world.grade(passed(), "Alice")
    world.grade(passed(2.0), "Bob")
    with world.database.transaction() as session:
        session.execute(update(User).where(User.name == "Alice").values(disabled_at=world.now))
    assert standing(world) == [(1, "quiet-bob")]


def test_a_language_or_a_section_is_ranked_by_itself(world):
    with world.database.transaction() as session:
        session.execute(update(Enrolment).values(section="B"))
        carol = session.scalars(select(User.id).where(User.name == "Carol")).one()
        session.execute(update(Enrolment).where(Enrolment.user_id == carol).values(section="A"))
    world.grade(passed(0.5), "Alice")
    world.grade(passed(0.9), "Alice", language=Language.cuda)
    world.grade(passed(0.7), "Bob", language=Language.cuda)
    world.grade(passed(2.0), "Carol")

    def chosen(**selection):
        return standing(world, selection=Selection(**selection))

    assert chosen() == [(1, "quiet-alice"), (2, "quiet-bob"), (3, "quiet-carol")]
    assert chosen(language=Language.cuda) == [(1, "quiet-bob"), (2, "quiet-alice")]
    assert chosen(section="A") == [(1, "quiet-carol")]
    assert chosen(section="B", language=Language.triton) == [(1, "quiet-alice")]


def test_a_frozen_board_shows_what_was_handed_in_before_whenever_it_was_graded(world):
    world.grade(passed(2.0), "Alice")
    waits = world.submit("Bob")
    world.wait(60)
    frozen = world.now
    world.wait(60)
    world.finish(world.take(), passed(0.5))
    world.grade(passed(0.1), "Alice")
    assert world.state_of(waits) == "done"
    assert standing(world, selection=Selection(as_of=frozen)) == [(1, "quiet-bob"), (2, "quiet-alice")]
    assert standing(world) == [(1, "quiet-alice"), (2, "quiet-bob")]


@pytest.mark.parametrize(
    ("freeze", "due", "frozen"),
    [
        (None, 5, False),
        (-1, 5, True),
        (1, 5, False),
        (-2, -1, False),
        (-1, None, True),
        (-1, 0, False),
        (-1, -1, False),
    ],
)
def test_a_board_is_frozen_from_its_hour_until_it_is_due(world, freeze, due, frozen):
    def hours(number):
        return None if number is None else world.now + timedelta(hours=number)

    row = Assignment(leaderboard_freeze_at=hours(freeze), due_at=hours(due))
    assert leaderboard.frozen_at(row, world.now) == (hours(freeze) if frozen else None)


def test_the_time_has_its_interval_and_its_share_of_what_the_device_could_do(world):
    world.add_node("forge", lanes=(Lane.h200,))
    world.grade(passed(2.0), "Alice", lane=Lane.h200, node="forge")
    found = board(world, lane=Lane.h200)
    entry = found.entries[0]
    # 3 vectors of 4096 float32 at 4.8 TB/s: the case has 49,152 bytes and 4096 additions.
    assert found.limit_us == pytest.approx(49_152 / 4.8e6)
    assert entry.limit_share == pytest.approx(found.limit_us / 200)
    assert entry.time_us == pytest.approx(200)
    assert entry.time_low_us < entry.time_us < entry.time_high_us
    world.grade(passed(2.0), "Alice")
    assert board(world).limit_us is None
    assert board(world).entries[0].limit_share is None


def test_the_limit_is_the_mean_over_ranked_cases_of_memory_or_arithmetic_whichever_is_slower(world):
    cases = (
        Case("small", {"n": 5}, "float32"),
        Case("large", {"n": 2**28}, "float32", ranked=True),
        Case("half", {"n": 2**28}, "float16", ranked=True),
        Case("cpu", {"n": 1}, "float32", ranked=True, lanes=(Lane.cpu,)),
    )
    with world.database.transaction() as session:
        slow = world.publish(session, manifest(cases=cases, cost=Cost("1000 * n", "3 * n * e")))
        # 1000 operations an element: TF32 takes 0.54 ms for what memory moves in 0.67 ms; halves are moved in 0.34 ms.
        by_hand = [3 * 2**28 * 4 / 4.8e6, 3 * 2**28 * 2 / 4.8e6]
        assert limit_us(slow, Lane.h200) == pytest.approx(math.sqrt(by_hand[0] * by_hand[1]))
        fast = world.publish(session, manifest(cases=cases, cost=Cost("4000 * n", "3 * n * e")))
        by_hand = [4000 * 2**28 / 494.7e6, 4000 * 2**28 / 989.4e6]
        assert limit_us(fast, Lane.h200) == pytest.approx(math.sqrt(by_hand[0] * by_hand[1]))
        assert limit_us(fast, Lane.cpu) is None


def test_the_record_comes_down_by_what_was_faster_than_all_before(world):
    for person, ratio in (("Alice", 2.0), ("Bob", 3.0), ("Bob", 1.0), ("Alice", 1.0), ("Carol", 0.5)):
        world.grade(passed(ratio), person)
        world.wait(60)
    world.grade(passed(0.1, held=True), "Alice")

    def found(**selection):
        with world.database.reading() as session:
            row = session.scalars(select(Assignment)).one()
            records = records_of(session, assignment=row, lane=Lane.cpu, selection=Selection(**selection))
            return [(record.name, round(record.ratio, 3)) for record in records]

    assert found() == [("quiet-alice", 2.0), ("quiet-bob", 1.0), ("quiet-carol", 0.5)]
    assert found(as_of=START + timedelta(seconds=90)) == [("quiet-alice", 2.0)]
    with world.database.transaction() as session:
        session.execute(update(User).where(User.name == "Bob").values(disabled_at=world.now))
    # It was equalled by Alice, a minute later.
    assert found() == [("quiet-alice", 2.0), ("quiet-alice", 1.0), ("quiet-carol", 0.5)]


def test_a_practice_lane_ranks_each_language_apart(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(languages=(Language.triton, Language.cuda)))
    world.add_node("forge", lanes=(Lane.h200,))
    world.grade(passed(2.0), "Alice")
    world.grade(passed(3.0), "Carol")
    world.grade(passed(0.1), "Bob", language=Language.cuda)
    for person, ratio, language in (("Alice", 2.0, Language.triton), ("Bob", 0.5, Language.cuda)):
        world.grade(passed(ratio), person, language=language, lane=Lane.h200, node="forge")

    def found(lane, language=None):
        """Of the board, and of the standings."""
        with world.database.reading() as session:
            row = session.scalars(select(Assignment)).one()
            who = viewer.Looker(session.get_one(Course, row.course_id), None)
            seen = viewer.shown(session, who, row.slug, viewer.Wish(lane, language), world.now)
            stand = standings.standings(session, who, world.now, lane, language)
            assert stand.language is (seen.board.selection.language if seen.board.practice else None)
            assert [person.name for person in stand.people] == [entry.name for entry in seen.board.entries]
            return [entry.name for entry in seen.board.entries], seen.entries[lane]

    both = {Language.triton: 2, Language.cuda: 1}
    assert found(Lane.cpu) == (["quiet-alice", "quiet-carol"], both)
    assert found(Lane.cpu, Language.cuda) == (["quiet-bob"], both)
    # Where a GPU gives the points, all languages are one ranking.
    assert found(Lane.h200) == (["quiet-bob", "quiet-alice"], {Language.triton: 1, Language.cuda: 1})


def test_entries_of_a_lane_that_is_not_offered_any_more_push_none_out_of_the_newest(world, monkeypatch):
    monkeypatch.setattr(showcase, "NEWEST", 1)
    world.add_node("forge", lanes=(Lane.h200,))
    world.grade(passed(), "Alice")
    world.wait(60)
    world.grade(passed(), "Bob", lane=Lane.h200, node="forge")

    def newest():
        with world.database.reading() as session:
            found = courses.details_of(session, session.scalars(select(Course.id)).one())
            return [(line.lane, line.name) for line in showcase.newest(session, found, world.now)]

    assert newest() == [(Lane.h200, "quiet-bob")]
    with world.database.transaction() as session:
        session.execute(update(Assignment).values(lanes=["cpu"]))
    assert newest() == [(Lane.cpu, "quiet-alice")]


def test_who_leads_costs_no_formula_of_a_board_that_is_not_shown(world, monkeypatch):
    with world.database.transaction() as session:
        world.publish(session, manifest(languages=(Language.triton, Language.cuda)))
        session.execute(update(Course).values(public_leaderboards=True))
    world.add_node("forge", lanes=(Lane.h200,))
    world.grade(passed(0.1), "Alice")
    world.grade(passed(0.2), "Bob", language=Language.cuda)
    world.grade(passed(2.0), "Alice", lane=Lane.h200, node="forge", language=Language.cuda)
    world.grade(passed(1.0), "Bob", lane=Lane.h200, node="forge")
    worked_out = []
    monkeypatch.setattr(showcase, "work_of", lambda _version, lane: worked_out.append(lane))
    monkeypatch.setattr(showcase, "limit_us", lambda _version, lane: worked_out.append(lane))
    with world.database.reading() as session:
        (shown,) = showcase.showcases(session, showcase.public_courses(session), world.now)
        assert worked_out == []
        lead = shown.leads["vector_add"]
        assert (lead.line.lane, lead.line.name, lead.entries) == (Lane.h200, "quiet-bob", 2)
        assert (lead.line.work, lead.line.limit_us) == (None, None)
    assert worked_out == [Lane.h200, Lane.h200]


def test_a_badge_of_a_practice_lane_is_about_the_language_that_somebody_stands_in(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(languages=(Language.triton, Language.cuda)))
        session.execute(update(Course).values(public_leaderboards=True))
    world.grade(passed(2.0), "Alice")
    world.grade(passed(3.0), "Carol")
    world.grade(passed(0.5), "Bob", language=Language.cuda)
    world.grade(passed(0.6), "Alice", language=Language.cuda)
    world.grade(passed(4.0), "Bob")

    def said(name=None, language=None):
        handle = f"quiet-{name}" if name else None
        with world.database.reading() as session:
            wish = viewer.Wish(Lane.cpu, language)
            found = badges.badge(session, "gpu", "vector_add", world.now, wish, handle=handle)
            return found.entry.rank, found.of, round(found.entry.ratio, 3)

    assert said("carol") == (2, 3, 3.0)
    assert said("alice") == (1, 3, 2.0), "where more entries are"
    assert said("alice", Language.cuda) == (2, 2, 0.6)
    with world.database.transaction() as session:
        bob = session.scalars(select(User.id).where(User.name == "Bob")).one()
        session.execute(delete(Best).where(Best.user_id == bob, Best.language == Language.triton))
    assert said("bob") == (1, 2, 0.5)
    # The record is the same whatever language has more entries.
    assert said() == (1, 2, 0.5)
    assert said(language=Language.triton) == (1, 2, 2.0)
    with pytest.raises(NotFoundError):
        said("nobody")
    with pytest.raises(NotFoundError):
        said("carol", Language.cuda)


def standings_of(world, lane, language=None):
    with world.database.reading() as session:
        who = viewer.Looker(session.scalars(select(Course)).one(), None)
        return standings.standings(session, who, world.now, lane, language)


def test_standings_of_frozen_boards_are_in_the_language_that_most_were_in_when_they_froze(world):
    with world.database.transaction() as session:
        world.publish(session, manifest(languages=(Language.triton, Language.cuda)))
    first, second = tuple(each for each in Language if each in {Language.triton, Language.cuda})
    world.grade(passed(2.0), "Alice", language=second)
    world.wait(60)
    with world.database.transaction() as session:
        session.execute(update(Assignment).values(leaderboard_freeze_at=world.now))
    world.wait(60)
    for person in ("Bob", "Carol"):
        world.grade(passed(), person, language=first)
    found = standings_of(world, Lane.cpu)
    assert (found.language, found.has_frozen) == (second, True)
    assert [person.name for person in found.people] == ["quiet-alice"]


def test_practice_boards_are_in_one_language_on_a_lane_where_others_give_points(world):
    both = (Language.triton, Language.cuda)
    with world.database.transaction() as session:
        world.publish(session, manifest(languages=both))
        world.publish(session, manifest(languages=both, slug="second", rung=2, lanes={"h200": LanePolicy()}))
        paid, practice = session.scalars(select(Assignment).order_by(Assignment.rung)).all()
        session.expunge_all()
    world.add_node("forge", lanes=(Lane.h200,))

    def grade(assignment, ratio, person, language):
        where = {"assignment_id": assignment.id, "version_id": assignment.version_id}
        world.grade(passed(ratio), person, lane=Lane.h200, node="forge", language=language, **where)

    for assignment in (paid, practice):
        grade(assignment, 2.0, "Alice", Language.triton)
        grade(assignment, 0.5, "Bob", Language.cuda)
    grade(practice, 3.0, "Carol", Language.triton)
    # On the board that gives points; it does not count where the language of practice is chosen.
    grade(paid, 3.0, "Carol", Language.cuda)
    found = standings_of(world, Lane.h200)
    assert (found.language, found.languages) == (Language.triton, tuple(each for each in Language if each in both))
    assert [(rung.language, rung.entries, rung.leaders[0].name) for rung in found.rungs] == [
        (None, 3, "quiet-bob"),
        (Language.triton, 2, "quiet-alice"),
    ]
    assert {tab.entries for tab in language_tabs(found)} == {None}, "the paid board's entries are no practice"
    found = standings_of(world, Lane.h200, Language.cuda)
    assert [(rung.language, rung.entries) for rung in found.rungs] == [(None, 3), (Language.cuda, 1)]


def test_a_time_of_nothing_is_no_error_on_the_front_page(world):
    world.add_node("forge", lanes=(Lane.h200,))
    world.grade(passed(), "Alice", lane=Lane.h200, node="forge")
    with world.database.transaction() as session:
        session.execute(update(Course).values(public_leaderboards=True))
        session.execute(update(Best).values(time_us=0.0))
    with world.database.reading() as session:
        found = showcase.showcases(session, showcase.public_courses(session), world.now)
        assert found[0].leads["vector_add"].line.limit_us > 0
        page = templates_of(world.config.web).render("front_courses.html", {"courses": found, "leads_shown": 6})
    assert "quiet-alice" in page


def test_manifests_that_are_not_kept_in_mind_come_in_one_query(world, monkeypatch):
    with world.database.transaction() as session:
        for number in range(3):
            world.publish(session, manifest(slug=f"rung-{number}", title=f"Rung {number}"))
        course_id = session.scalars(select(Course.id)).one()
    monkeypatch.setattr(courses, "_SPECS", Kept(1))
    with counted(world.database) as statements, world.database.reading() as session:
        found = courses.details_of(session, course_id)
        assert len({detail.spec.slug for detail in found}) == 4
    assert len([statement for statement in statements if "manifest" in statement]) == 1


def test_throughput_counts_what_the_device_is_slowed_by(world):
    case = Case("large", {"n": 2**28}, "float32", ranked=True)
    with world.database.transaction() as session:
        streams = world.publish(session, manifest(cases=(case,), cost=Cost("n", "3 * n * e")))
        computes = world.publish(session, manifest(cases=(case,), cost=Cost("4000 * n", "3 * n * e")))
        empty = world.publish(session, manifest(cases=(case,), cost=Cost("0", "0")))
        for lane in (Lane.h200, Lane.cpu):
            assert work_of(streams, lane) == CaseWork(pytest.approx(3 * 2**28 * 4), "B")
            assert work_of(computes, lane) == CaseWork(pytest.approx(4000 * 2**28), "FLOP")
            assert work_of(empty, lane) is None
    # A terabyte in a second.
    assert CaseWork(1e12, "B").tera(1e6) == pytest.approx(1.0)


def test_steps_of_the_record_carry_names_and_dates():
    names = ["quiet-alice", "a" * 60, "quiet-bob", "quiet-carol", "quiet-dave"]
    records = [
        Record(START + timedelta(hours=hour), name, Language.triton, ratio, 1.0)
        for name, hour, ratio in zip(names, (0, 40, 41, 100, 101), (8.0, 2.0, 1.9, 1.5, 0.9), strict=True)
    ]
    plot = record_plot(records, end=START + timedelta(hours=120), zone="UTC")
    assert [one["name"] for one in plot.data["records"]] == names
    assert plot.data["records"][1]["title"] == f"2.00×, {'a' * 60}"
    assert plot.data["end"] - plot.data["records"][0]["at"] == 120 * 3_600_000
    places = [day["at"] for day in plot.data["days"]]
    assert len(places) == 5
    assert {b - a for a, b in itertools.pairwise(places)} == {24 * 3_600_000}
    assert record_plot(records[:1], end=None, zone="UTC") is None
    (first, last) = record_plot(records[1:3], end=None, zone="Europe/Berlin").data["days"]
    assert first["label"] < last["label"]


def test_a_board_of_three_hundred_costs_the_queries_of_a_board_of_three(world):
    def queries():
        with counted(world.database) as statements, world.database.reading() as session:
            assignment = session.scalars(select(Assignment)).one()
            found = leaderboard.board(session, assignment=assignment, lane=Lane.cpu)
        return len(found.entries), len(statements)

    for person in ("Alice", "Bob", "Carol"):
        world.grade(passed(), person)
    few, cost = queries()
    with world.database.transaction() as session:
        many(session, world, 297)
    began = time.perf_counter()
    assert queries() == (few + 297, cost)
    assert time.perf_counter() - began < 2


def many(session, world, count):
    """So many more students with a result each, made from Alice's."""
    like = session.scalars(select(Submission).order_by(Submission.id).options(undefer(Submission.source))).first()
    result = session.get_one(Result, like.result_id, options=[undefer(Result.payload)])
    for number in range(count):
        user = world.enrol(session, f"Student {number}")
        row, attempt, copy = clone(like), clone(session.get_one(Attempt, result.attempt_id)), clone(result)
        row.user_id, row.public_id, row.result_id = user.id, public_id(), None
        session.add(row)
        session.flush()
        attempt.submission_id, attempt.public_id = row.id, public_id()
        session.add(attempt)
        session.flush()
        copy.submission_id, copy.attempt_id, copy.ratio = row.id, attempt.id, 1.0 + number / 100
        session.add(copy)
        session.flush()
        row.result_id = copy.id


def clone(row):
    columns = [column.key for column in inspect(type(row)).column_attrs if column.key != "id"]
    return type(row)(**{name: getattr(row, name) for name in columns})


@contextmanager
def counted(database):
    statements = []

    def note(_connection, _cursor, statement, *_):
        statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    yield statements
    event.remove(database.engine, "before_cursor_execute", note)


def test_a_board_has_the_languages_that_its_lane_runs() -> None:
    detail = SimpleNamespace(board_lanes=tuple(Lane), spec=SimpleNamespace(languages=tuple(Language)))
    elsewhere = {language for language in Language if not languages.of(language).cpu_loader}
    assert elsewhere
    assert set(leaderboard.languages_of([detail], Lane.h200)) == set(Language)
    assert set(leaderboard.languages_of([detail], Lane.cpu)) == set(Language) - elsewhere
