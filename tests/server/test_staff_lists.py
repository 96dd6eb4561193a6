"""The list of submissions, a course in numbers, and failures that are the same: right, bounded, and for staff alone."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import event, insert, select

from autograder.contract import Frame, Lane, Language, Mismatch, Mode, Pattern, Review, State, StudentError, Verdict
from server.courses import courses
from server.errors import ForbiddenError
from server.models import Assignment, Enrolment, Role, Submission, User
from server.pages import bars
from server.pages.statistics import headline
from server.statistics import clusters, numbers, statistics
from server.submissions import listing
from server.submissions.listing import Filter
from tests.doubles.world import START, World, case, passed

EVERYTHING = Filter()
NASTY = "<b>Eve & =1+1</b>"


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
    yield world
    world.database.dispose()


@pytest.fixture
def read(world):
    """Read as a member."""

    def call(work, person="Tom"):
        with world.database.reading() as session:
            user = session.scalars(select(User).where(User.name == person)).one()
            return work(session, courses.membership(session, user, "gpu"))

    return call


@pytest.fixture
def rows(read):
    """The list by a filter: (student, number)."""

    def call(wanted=EVERYTHING, **place):
        def work(session, member):
            found = listing.page(session, member, wanted, **place)
            return [(row.user.name, row.number) for row in found.rows], found

        return read(work)

    return call


def many(world, people, each):
    """`each` submissions of so many new students, in one statement."""
    with world.database.transaction() as session:
        users = [world.enrol(session, f"S{number}", section="AB"[number % 2]) for number in range(people)]
        assignment = session.scalars(select(Assignment)).one()
        session.flush()
        values = [
            {
                "public_id": f"{user.id:04}{number:022}", "number": number, "course_id": assignment.course_id,
                "assignment_id": assignment.id, "version_id": assignment.version_id, "user_id": user.id,
                "mode": Mode.submission, "lane": Lane.cpu, "language": Language.triton, "filename": "k.py",
                "source": b"x", "source_hash": "x", "trace": "x", "place_at": START, "attempts_made": 0,
                "remeasured": 0, "confirmations": 0, "suspect": False, "revision": 1, "line": "submission",
                "work": "all", "review": "none", "state": State.done, "uploaded_at": START + timedelta(hours=number),
                "verdict": Verdict.passed if number == each else Verdict.wrong_answer, "points": float(number),
            }
            for user in users for number in range(1, each + 1)
        ]  # fmt: skip
        session.execute(insert(Submission), values)


def queries(world, work):
    """How many statements it takes."""
    seen = []

    def note(*args):
        seen.append(args[2])

    event.listen(world.database.engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(world.database.engine, "before_cursor_execute", note)
    return len(seen)


# --- the list --------------------------------------------------------------------------------------------------------


def test_every_filter_leaves_what_it_says(world, rows):
    world.grade(passed(1.0))
    held = world.grade(passed(1.0, held=True), "Bob")
    world.submit("Alice", mode=Mode.run, language=Language.cuda)
    with world.database.transaction() as session:
        session.scalars(select(Submission).where(Submission.public_id == held)).one().review = Review.held
        bob = session.scalars(select(User).where(User.name == "Bob")).one()
        session.scalars(select(Enrolment).where(Enrolment.user_id == bob.id)).one().section = "B 2"
        bob_id = bob.id
    alice, run, bob = ("Alice", 1), ("Alice", 2), ("Bob", 1)
    wanted = {
        Filter(): [run, bob, alice], Filter(assignment="vector_add"): [run, bob, alice], Filter(assignment="x"): [],
        Filter(student="ALI"): [run, alice], Filter(student="bob@exam"): [bob], Filter(student="quiet-bob"): [bob],
        Filter(student=f"#{bob_id}"): [bob], Filter(student="%"): [], Filter(student="_"): [],
        Filter(section="B 2"): [bob], Filter(section=""): [run, alice], Filter(verdict=Verdict.passed): [bob, alice],
        Filter(state=State.queued): [run], Filter(review=Review.held): [bob], Filter(lane=Lane.h200): [],
        Filter(language=Language.cuda): [run], Filter(mode=Mode.run): [run],
        Filter(student="alice", mode=Mode.submission): [alice], Filter(student="#99999999999999"): [],
    }  # fmt: skip
    assert {one: rows(one)[0] for one in wanted} == wanted


def test_pages_follow_each_other_without_gap_or_repeat(world, rows):
    many(world, 6, 4)
    seen, place = [], {}
    while True:
        found, page = rows(limit=5, **place)
        seen += found
        if not page.older:
            break
        place = {"before": page.older}
    assert len(seen) == len(set(seen)) == 24
    assert seen == rows(limit=100)[0]
    _, last = rows(limit=5, **place)
    back, page = rows(limit=5, after=last.newer)
    assert back == seen[-4 - 5 : -4]
    assert page.newer
    assert page.older
    assert rows(before="01NOTHERE") == ([], listing.Page(()))


def test_the_list_is_staffs(rows, read):
    with pytest.raises(ForbiddenError):
        read(lambda s, m: listing.page(s, m, Filter()), "Alice")


def test_lists_and_statistics_take_as_many_queries_for_a_hundred_students_as_for_three(world, read):
    def work():
        def all_of_it(session, member):
            listing.page(session, member, Filter(section="A"))
            listing.choices(session, member)
            detail = courses.assignment_of(session, member, "vector_add")
            statistics.of_course(session, member)
            statistics.of_assignment(session, member, detail)
            statistics.export(session, member, detail)
            clusters.clusters_of(session, member, detail)

        read(all_of_it)

    many(world, 3, 2)
    few = queries(world, work)
    with world.database.transaction() as session:
        for user in session.scalars(select(User).where(User.name.startswith("S"))):
            user.name, user.email, user.handle = f"X{user.id}", f"x{user.id}@example.org", f"x{user.id}"
    many(world, 100, 4)
    assert queries(world, work) == few
    assert few < 40


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_histograms_count_everything_once():
    bins = numbers.histogram([0, 1, 5, 9.99, 10, -3, 99], 0, 10, 10)
    assert [one.count for one in bins] == [2, 1, 0, 0, 0, 1, 0, 0, 0, 3]
    assert numbers.histogram([1.0], 0, 0, 10) == ()
    assert sum(one.count for one in numbers.log_histogram([0.5, 1, 2, 4, 8], 6)) == 5
    assert sum(one.count for one in numbers.log_histogram([1.0, 1.0], 6)) == 2
    assert numbers.log_histogram([0.0, -1.0, float("inf")], 6) == ()
    assert numbers.summary([]) is None
    assert dataclasses.astuple(numbers.summary([3.0])) == (1, 3, 3, 3, 3, 3, 3)


def test_bars_say_what_they_are_and_leave_out_what_is_empty():
    chart = bars.of_counts("x", [(str(number), number) for number in range(40)])
    assert (chart.of, chart.most, len(chart.bars), len(chart.places)) == (40, 39, 39, 40)
    assert chart.bars[0] == bars.Bar(1, 1, "1: 1 student")
    assert chart.data["bars"][-1] == {"at": 39, "value": 39, "label": "39: 39 students", "middle": None}
    assert bars.of_points("x", ()).bars == ()
    edges = bars.of_ratios("x", numbers.log_histogram([0.5, 8.0], 2))
    assert [place.label for place in edges.places] == ["0.50×", "2.00×", "8.00×"]


def test_an_assignment_in_numbers(world, read):
    world.grade(dataclasses.replace(passed(1.0), verdict=Verdict.wrong_answer, measurements=()))
    world.wait(3 * 3600)
    world.grade(passed(2.0))
    world.grade(dataclasses.replace(passed(1.0), verdict=Verdict.compile_error, measurements=()), "Bob")
    world.submit("Bob", mode=Mode.run)
    world.submit("Tom")

    def work(session, member):
        detail = courses.assignment_of(session, member, "vector_add")
        return statistics.of_assignment(session, member, detail), statistics.of_course(session, member).rows[0]

    found, row = read(work)
    assert (found.students, found.tried, found.handed_in, found.passed) == (2, 2, 2, 1)
    assert (row.tried, row.handed_in, row.passed, row.submissions, row.runs) == (2, 2, 1, 3, 1)
    assert (found.submissions, found.runs, found.attempts, found.never) == (3, 1, {2: 1}, 1)
    assert found.verdicts == {Verdict.wrong_answer: 1, Verdict.passed: 1, Verdict.compile_error: 1}
    assert found.languages == {Language.triton: 3}
    assert [(hour.submissions, hour.runs) for hour in found.hours] == [(1, 0), (0, 0), (0, 0), (3, 1)]
    assert [lane.summary.median for lane in found.lanes] == [2.0]


def test_an_empty_course_has_statistics(world, read):
    def work(session, member):
        return statistics.of_assignment(session, member, courses.assignment_of(session, member, "vector_add"))

    found = read(work)
    assert (found.hours, found.lanes, found.attempts, found.submissions) == ((), (), {}, 0)
    with pytest.raises(ForbiddenError):
        read(work, "Alice")


# --- failures --------------------------------------------------------------------------------------------------------


def tail(name="large", **changes):
    wrong = Mismatch("out", (1000,), "float32", 3, 1000, Pattern.tail, "The last 3 elements.", (997,), "1", "0", "0")
    return case(name, Verdict.wrong_answer, mismatch=wrong, category="ranked", **changes)


def failed(*cases, verdict=Verdict.wrong_answer, **changes):
    return dataclasses.replace(passed(1.0), verdict=verdict, cases=cases, measurements=(), **changes)


def raised(line, verdict=Verdict.runtime_error, kind="IndexError"):
    error = StudentError(kind, "index 7919 is out of range", (Frame(12, "f", line),))
    return failed(case("small", verdict, error=error), verdict=verdict, error=error)


def found_in(read):
    def work(session, member):
        return clusters.clusters_of(session, member, courses.assignment_of(session, member, "vector_add"))

    return read(work)


def test_failures_that_are_the_same_stand_together(world, read):
    with world.database.transaction() as session:
        for name in ("Cleo", "Dan", "Eve", "Fay"):
            world.enrol(session, name)
    world.grade(raised("value = src[index + 1]"), "Alice")
    for person in ("Alice", "Bob", "Cleo"):
        world.grade(failed(case("small"), tail()), person)
    world.grade(raised("    a = data[i+5]"), "Dan")
    world.grade(raised("first=rows[ k + 12 ]  # mine"), "Eve")
    world.grade(passed(1.0), "Fay")
    found = found_in(read)
    assert (found.failing, found.passing) == (5, 1)
    assert [one.count for one in found.clusters] == [3, 2]
    assert headline(found.clusters[0]) == "3 students: wrong only in the tail, ranked"
    assert found.clusters[0].where == "The last 3 elements."
    assert {example.name for example in found.clusters[1].examples} == {"Dan", "Eve"}
    assert found.clusters[1].signature.line == "V=V[V+0]"


def test_of_a_hidden_case_only_the_category_is_told(world, read, visit):
    world.grade(failed(case("small"), tail("hidden n=7919 of 13")), "Alice")
    error = StudentError("SecretSize7919Error", "7919", (Frame(1, "f7919", "x = 1"),))
    world.grade(failed(case("hidden b", Verdict.runtime_error, error=error), verdict=Verdict.runtime_error), "Bob")
    text = " ".join([repr(found_in(read)), *(headline(one) for one in found_in(read).clusters)])
    assert "7919" not in text
    assert "in a hidden case" in text
    page = visit("Tom", "/courses/gpu/statistics/vector_add/failures")[1]
    assert "7919" not in page
    assert "hidden case" in page


# --- pages -----------------------------------------------------------------------------------------------------------


def test_the_pages(world, visit):
    home = "/courses/gpu"
    pages = (f"{home}/statistics", f"{home}/statistics/vector_add", f"{home}/statistics/vector_add/failures",
             f"{home}/submissions")  # fmt: skip
    for path in pages:
        assert visit("Tom", path)[0] == 200, path
        assert visit("Alice", path)[0] == 403, path
    with world.database.transaction() as session:
        session.scalars(select(User).where(User.name == "Alice")).one().name = NASTY
    world.grade(passed(1.5), NASTY)
    world.grade(raised("x = '<i>'"), "Bob")
    for path in pages:
        assert visit("Tom", path)[0] == 200, path
    text = visit("Tom", f"{home}/submissions?student=eve&mode=submission")[1]
    assert NASTY in text
    assert "Bob" not in text
    assert "Nothing fits these filters." in visit("Tom", f"{home}/submissions?verdict=time_limit&section=-")[1]
    assert visit("Tom", f"{home}/submissions?verdict=excellent")[0] == 422
    table = visit("Tom", f"{home}/statistics/vector_add/students.csv")[1]
    assert "vector_add" not in table
    assert "Bob" in table
    assert "Write an announcement about this" in visit("Tom", f"{home}/statistics/vector_add/failures")[1]
