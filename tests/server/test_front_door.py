"""What a stranger sees: the front page, and the page of a course that made its boards public, and of no other."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, select, update

from server.config import load_config
from server.courses import courses, sync
from server.models import Assignment, Course
from server.pages import home
from tests.server.conftest import COURSE, RUNG, SECRET
from tests.server.test_leaderboard_readers import graded, open_to_all, students

__all__ = ["graded", "students"]
HOME = f"/courses/{COURSE}"
BOARD = f"{HOME}/assignments/{RUNG}/leaderboard"


def test_the_front_page_says_what_this_is_and_leads_to_log_in(site):
    page = site.browser().get("/")
    assert page.status_code == 200
    assert "An autograder for GPU kernel programming courses" in page.text
    assert 'href="/login"' in page.text
    assert "make up" in page.text
    assert "Public courses" not in page.text
    assert "Forgot your password?" in site.browser().get("/login").text


def test_links_to_docs_and_source_are_those_that_are_configured(tmp_path):
    home = {"LADDER_HOME": str(tmp_path)}
    config = load_config({**home, "LADDER_DOCS_URL": "https://docs.example.org"})
    assert (config.docs_url, config.source_url) == ("https://docs.example.org", "")
    with pytest.raises(ValueError, match="LADDER_SOURCE_URL must begin with https://"):
        load_config({**home, "LADDER_SOURCE_URL": "javascript:alert(1)"})


def test_nothing_of_a_private_course_is_on_the_front_page(site, database, people, graded):
    entry = graded(people.alice, 0.5)
    stranger = site.browser().get("/").text
    for secret in (people.course.title, COURSE, RUNG, people.alice.handle, people.alice.name, entry.public_id):
        assert secret not in stranger
    assert site.browser().get(HOME).status_code == 303
    open_to_all(database)
    assert people.course.title in site.browser().get("/").text


def test_a_public_course_shows_its_leaders_and_newest_entries_as_they_chose_to_be_named(
    *, site, database, config, people, students, graded
):
    named, hidden = graded(students[0], 0.5), graded(students[2], 0.8)
    held = graded(students[3], 0.1, held=True)
    open_to_all(database, title="Add <i>one</i>")
    front, course = site.browser().get("/").text, site.browser().get(HOME).text
    for text in (front, course):
        assert "&lt;b&gt;Real 0&lt;/b&gt;" in text
        assert "<b>Real" not in text
        assert "Add &lt;i&gt;one&lt;/i&gt;" in text
        assert "<i>one" not in text
        assert "B/s" in text
        assert "@" not in text
        assert not any(row.public_id in text for row in (named, hidden, held))
        assert not any(secret in text for secret in ("Real 2", "Real 3", "calm-ibis-0", "calm-ibis-3", "section=A"))
    assert "calm-ibis-2" not in front, "only the fastest is there"
    assert "calm-ibis-2" in course, "as one of the newest entries"
    for text in (front, course):
        assert f'<th scope="row"><a href="{BOARD}?lane=cpu&amp;language=triton">' in text
    # Whoever is in it sees the ladder there, whoever is in another course what the public sees.
    assert "Newest entries" in site.logged_in(people.stranger, config).get(HOME).text
    assert "Rungs passed" in site.logged_in(people.alice, config).get(HOME).text


def test_the_front_page_is_made_once_in_a_while_and_leaves_a_course_out_at_once(
    *, site, app, database, people, graded, monkeypatch
):
    open_to_all(database)
    graded(people.alice, 0.5)
    assert people.alice.handle in site.browser().get("/").text
    with asked(app) as statements:
        graded(people.bob, 0.2)
        statements.clear()
        assert people.bob.handle not in site.browser().get("/").text
    assert len(statements) == 1, "only which courses are public"
    with database.transaction() as session:
        session.execute(update(Course).values(public_leaderboards=False))
    assert people.course.title not in site.browser().get("/").text
    open_to_all(database)
    assert people.bob.handle in site.browser().get("/").text
    graded(people.alice, 0.1)
    monkeypatch.setattr(home, "PUBLIC_KEPT_S", 0)
    assert people.alice.handle in site.browser().get("/").text


def test_a_board_that_is_frozen_or_not_open_yet_tells_nothing(*, site, database, config, people, graded, monkeypatch):
    monkeypatch.setattr(home, "PUBLIC_KEPT_S", 0)
    graded(people.alice, 0.5)
    now = datetime.now(UTC)
    open_to_all(database, leaderboard_freeze_at=now - timedelta(hours=1), due_at=now + timedelta(hours=1))
    for path in ("/", HOME):
        text = site.browser().get(path).text
        assert "frozen" in text
        assert people.alice.handle not in text
    assert "Newest entries" in site.logged_in(people.tom, config).get(f"{HOME}/standings").text
    assert "Newest entries" not in site.logged_in(people.bob, config).get(f"{HOME}/standings").text
    open_to_all(database, leaderboard_freeze_at=None, due_at=None, published=False)
    for path in ("/", HOME):
        text = site.browser().get(path).text
        assert people.alice.handle not in text
        assert RUNG not in text


def test_a_board_says_what_was_timed_and_how_much_that_is(*, site, database, people, graded):
    graded(people.alice, 2.0)
    open_to_all(database)
    board = site.browser().get(f"/api/v1{BOARD}").json()
    (entry,) = board["entries"]
    assert board["work_unit"] == "B"
    with database.reading() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        spec = courses.assignment_for_anyone(session, people.course, row.slug).spec
    (case,) = [case for case in spec.cases_for("cpu") if case.ranked]
    moved = spec.cost_of(case)[1]
    assert entry["throughput"] == pytest.approx(moved / entry["time_us"] / 1e6)
    page = site.browser().get(BOARD).text
    assert f"n = {case.size['n']:,}" in page
    assert spec.summary in page
    assert all(technique in page for technique in spec.techniques)
    assert 'class="button">Show</button>' not in page
    assert f'href="{HOME}/standings?lane=cpu"' in page
    assert "Log in to read the handout" in page


@contextmanager
def asked(app):
    """What a database is asked of courses and boards."""
    statements = []

    def note(_connection, _cursor, statement, *_):
        if any(told in statement for told in ("public_leaderboards", "leaderboard_bests", "FROM assignment")):
            statements.append(statement)

    engine = app.state.database.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_the_standings_ask_once_for_the_assignments(site, app, database, people, graded):
    graded(people.alice, 0.5)
    open_to_all(database)
    with asked(app) as statements:
        assert "Newest entries" in site.browser().get(f"{HOME}/standings").text
    assert len([statement for statement in statements if "FROM assignments" in statement]) == 1


def test_strangers_pages_cost_the_same_queries_of_many_courses(
    *, site, app, database, config, people, students, graded, monkeypatch
):
    monkeypatch.setattr(home, "PUBLIC_KEPT_S", 0)
    graded(people.alice, 0.5)
    open_to_all(database)

    def cost(path):
        site.browser().get(path)
        with asked(app) as statements:
            page = site.browser().get(path)
        assert page.status_code == 200
        return len(statements)

    before = {path: cost(path) for path in ("/", HOME)}
    assert before["/"] == 3
    with database.transaction() as session:
        for number in range(4):
            course = courses.create_course(session, slug=f"more-{number}", title=f"More {number}")
            course.public_leaderboards = True
            sync.sync_assignments(session, config, course)
    for user in students:
        graded(user, 0.9)
    assert {path: cost(path) for path in ("/", HOME)} == before
    assert len(re.findall("More [0-3]<", site.browser().get("/").text)) == 4


def test_a_public_handout_is_read_without_an_account_and_nothing_else_of_the_assignment(
    *, site, database, config, people
):
    anybody, stranger = site.browser(), site.logged_in(people.stranger, config)
    handout = f"{HOME}/assignments/{RUNG}/handout"
    open_to_all(database)
    assert anybody.get(handout).headers["location"] == handout.removesuffix("/handout")
    assert stranger.get(handout).status_code == 404
    assert handout not in anybody.get(HOME).text
    with database.transaction() as session:
        session.execute(update(Course).where(Course.slug == COURSE).values(public_handouts=True))
    text = anybody.get(handout).text
    assert stranger.get(handout).status_code == 200
    with database.reading() as session:
        detail = courses.assignment_for_anyone(session, people.course, RUNG)
        assert all(f">{case.name}<" in text for case in detail.spec.cases)
        for item in detail.version.milestones:
            assert item["source"] not in text
        assert not any(source in text for source in detail.starters.values())
        assert detail.spec.summary in text
    assert SECRET not in text
    assert "1,009" not in text, "a hidden size"
    for page in (HOME, BOARD):
        assert f'href="{handout}"' in anybody.get(page).text
    for closed in ("milestones", "solutions", "quiz", "submissions"):
        assert anybody.get(f"{HOME}/assignments/{RUNG}/{closed}").status_code == 303
        assert stranger.get(f"{HOME}/assignments/{RUNG}/{closed}").status_code == 404
    # A member has the page itself.
    member = site.logged_in(people.alice, config).get(handout)
    assert member.headers["location"] == handout.removesuffix("/handout")
    # What its students do not see yet, nobody sees.
    open_to_all(database, open_at=datetime.now(UTC) + timedelta(days=1))
    assert anybody.get(handout).status_code == 404
    open_to_all(database, open_at=None, published=False)
    assert anybody.get(handout).status_code == 404
    # Boards that are not public have no public page beside them.
    with database.transaction() as session:
        session.execute(update(Course).where(Course.slug == COURSE).values(public_leaderboards=False))
    assert stranger.get(handout).status_code == 404
    assert anybody.get(handout).status_code == 303
