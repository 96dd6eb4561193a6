"""Notes and sources on leaderboards: who opens them, who reads them, and that nobody does before the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from sqlalchemy import select, update

from client import boards
from client.errors import UsageError
from client.main import main
from server import audit
from server.models import (
    Assignment,
    Course,
    Enrolment,
    Extension,
    Review,
    SharedSource,
    SourceSharing,
    Submission,
    User,
)
from server.terms import erasure
from tests.server.conftest import COURSE, RUNG, a_token
from tests.server.test_leaderboard_readers import graded

__all__ = ["graded"]
BASE = f"/courses/{COURSE}/assignments/{RUNG}/leaderboard"
NOTE = "Two loads <b>in flight</b>.\n[Click](https://example.org) {{ 1 + 1 }}"
HOUR = timedelta(hours=1)


@pytest.fixture
def ended(database):
    """The assignment's end, as hours from now; before, it was due an hour earlier."""

    def call(hours=-1.0, **course):
        now = datetime.now(UTC)
        dates = {"due_at": now + (hours - 1) * HOUR, "late_until": now + hours * HOUR}
        with database.transaction() as session:
            session.execute(update(Assignment).where(Assignment.slug == RUNG).values(**dates))
            if course:
                session.execute(update(Course).where(Course.slug == COURSE).values(**course))

    return call


@pytest.fixture
def share(site, config):
    """Open or close a submission's source by its form; the status, and the page."""

    def call(user, row, *, note="", is_open=True):
        browser = site.logged_in(user, config)
        here = f"/submissions/{row.public_id}/share"
        answer = browser.post(here, data={"note": note, **({"open": "true"} if is_open else {})})
        return answer.status_code, browser.get(here).text if answer.status_code == 303 else answer.text

    return call


def address(database):
    with database.reading() as session:
        (row,) = session.scalars(select(SharedSource)).all()
        return f"{BASE}/entries/{row.public_id}"


def test_a_shared_source_is_read_with_its_note_once_the_assignment_has_closed(
    *, site, database, config, people, graded, share, ended
):
    row = graded(people.alice, 0.5)
    ended(hours=1)
    assert share(people.alice, row, note=NOTE)[0] == 303
    bob, page = site.logged_in(people.bob, config), address(database)
    assert bob.get(page).status_code == 404
    assert site.bearer(people.bob).get(f"/api/v1{page}").status_code == 404
    assert page not in bob.get(BASE).text
    ended()
    assert page in bob.get(BASE).text
    text = bob.get(page).text
    assert "Two loads &lt;b&gt;in flight&lt;/b&gt;." in text
    assert "{{ 1 + 1 }}" in text
    assert 'href="https://example.org"' not in text
    assert "0.5" in text
    assert row.public_id not in text
    (entry,) = site.bearer(people.bob).get(f"/api/v1{BASE}").json()["entries"]
    assert page.endswith(entry["shared"])
    found = site.bearer(people.bob).get(f"/api/v1{page}").json()
    assert (found["note"], found["source"]) == (NOTE, "def add_one(x, out, n): return 0.5\n")
    assert found["name"] == people.alice.handle
    # Of another assignment there is no such entry.
    assert bob.get(page.replace(RUNG, "none")).status_code == 404


def test_nothing_is_shown_while_anybody_can_hand_in(*, site, database, config, people, graded, share, ended):
    row = graded(people.alice, 0.5)
    share(people.alice, row)
    bob, page = site.logged_in(people.bob, config), address(database)

    def statuses():
        return {bob.get(page).status_code, site.logged_in(people.tom, config).get(page).status_code}

    assert statuses() == {404}, "without dates it never ends"
    ended()
    assert statuses() == {200}
    with database.transaction() as session:
        assignment = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        now = datetime.now(UTC)
        extension = Extension(
            course_id=people.course.id, assignment_id=assignment.id, user_id=people.carol.id, due_at=now,
            late_until=now + HOUR, reason="", at=now,
        )  # fmt: skip
        session.add(extension)
    assert statuses() == {404}, "somebody has an extension"
    assert site.bearer(people.bob).get(f"/api/v1{BASE}").json()["entries"][0]["shared"] is None
    with database.transaction() as session:
        session.execute(update(Extension).values(withdrawn_at=datetime.now(UTC)))
    assert statuses() == {200}
    ended(slack_s=7200)
    assert statuses() == {404}, "the grace period is not over"
    ended(slack_s=0)
    with database.transaction() as session:
        session.execute(update(Assignment).where(Assignment.slug == RUNG).values(late_until=None))
    assert statuses() == {404}, "late submissions count for ever"
    ended(archived_at=datetime.now(UTC))
    assert statuses() == {200}


def test_who_wrote_it_opens_and_closes_it_and_what_staff_closed_only_they_open(
    *, site, database, config, people, graded, share, ended
):
    row = graded(people.alice, 0.5)
    ended()
    here = f"/submissions/{row.public_id}/share"
    assert site.logged_in(people.bob, config).get(here).status_code == 404
    assert share(people.bob, row)[0] == 404
    assert share(people.alice, row, is_open=False)[0] == 409, "it is not open"
    assert share(people.alice, row, note="fast")[0] == 303
    page, bob = address(database), site.logged_in(people.bob, config)
    assert "fast" in bob.get(page).text
    assert share(people.alice, row, is_open=False)[0] == 303
    assert bob.get(page).status_code == 404
    assert share(people.tom, row, note="by staff")[0] == 303
    assert "fast" in bob.get(page).text, "the note is the author's"
    assert "by staff" not in bob.get(page).text
    assert share(people.tom, row, is_open=False)[0] == 303
    status, text = share(people.alice, row, note="again")
    assert status == 403
    assert "The staff closed this source" in text
    assert bob.get(page).status_code == 404
    assert share(people.ines, row)[0] == 303
    assert bob.get(page).status_code == 200
    assert share(people.alice, row, is_open=False)[0] == 303
    with database.reading() as session:
        log = audit.log_of(session, people.course.id, about_id=people.alice.id)
        done = [(each.row.action, each.actor.name) for each in reversed(log) if "shared" in each.row.action]
        assert done == [
            ("shared_source.opened", "Alice"), ("shared_source.closed", "Alice"), ("shared_source.opened", "Tom"),
            ("shared_source.closed", "Tom"), ("shared_source.opened", "Ines"), ("shared_source.closed", "Alice"),
        ]  # fmt: skip


def test_only_what_stands_on_a_board_is_shared_and_only_as_long(
    *, site, database, config, people, graded, submit, share, ended
):
    waiting = submit(people.alice)
    status, text = share(people.alice, waiting)
    assert status == 409
    assert "Only a submission that is on a leaderboard" in text
    row = graded(people.alice, 0.5)
    share(people.alice, row)
    ended()
    page, bob = address(database), site.logged_in(people.bob, config)
    assert bob.get(page).status_code == 200
    theirs = update(Enrolment).where(Enrolment.user_id == people.alice.id)
    with database.transaction() as session:
        session.execute(theirs.values(dropped_at=datetime.now(UTC)))
    assert bob.get(page).status_code == 404
    with database.transaction() as session:
        session.execute(theirs.values(dropped_at=None))
    ended(hours=1)
    graded(people.alice, 0.25)
    ended()
    assert bob.get(page).status_code == 404, "she is faster now"
    own = site.logged_in(people.alice, config).get(f"/submissions/{row.public_id}/share")
    assert "no longer on the leaderboard" in own.text


def test_the_course_says_who_reads_them(*, site, database, config, people, graded, share, ended):
    row = graded(people.alice, 0.5)
    share(people.alice, row, note="fast")
    ended(public_leaderboards=True)
    page, anybody = address(database), site.browser()
    assert anybody.get(page).status_code == 404
    assert page not in anybody.get(BASE).text
    assert site.logged_in(people.stranger, config).get(page).status_code == 404
    ended(source_sharing=SourceSharing.everyone)
    assert "fast" in anybody.get(page).text
    assert anybody.get(f"/api/v1{page}").json()["note"] == "fast"
    assert page in anybody.get(BASE).text
    ended(public_leaderboards=False)
    assert anybody.get(page).status_code == 303
    ended(source_sharing=SourceSharing.nobody)
    assert site.logged_in(people.bob, config).get(page).status_code == 404
    status, text = share(people.alice, row)
    assert status == 403
    assert "shows no student" in text


def test_a_note_is_short_and_comes_back_when_it_is_not(*, people, graded, share):
    row = graded(people.alice, 0.5)
    status, text = share(people.alice, row, note="<x>" * 700)
    assert status == 422
    assert "A note has at most 2,000 characters; this one has 2,100." in text
    assert "&lt;x&gt;&lt;x&gt;" in text
    assert "<x>" not in text


def test_an_erased_person_shares_nothing(*, database, people, graded, share, ended):
    row = graded(people.alice, 0.5)
    share(people.alice, row, note="my own words")
    ended()
    with database.transaction() as session:
        user = session.get_one(User, people.alice.id)
        erasure.erase_account(session, user, now=datetime.now(UTC))
    with database.reading() as session:
        assert session.scalars(select(SharedSource)).all() == []
        for entry in audit.log_of(session, people.course.id):
            assert "my own words" not in str(entry.row.detail)


def test_the_command_prints_the_note_and_the_source(*, site, database, people, graded, share, ended, monkeypatch):
    row = graded(people.alice, 0.5)
    share(people.alice, row, note=f"red \x1b[31m\n{NOTE}")
    ended()
    with database.transaction() as session:
        monkeypatch.setenv("LADDER_TOKEN", a_token(session, session.get_one(User, people.bob.id)))
    monkeypatch.setenv("LADDER_SERVER", site.url)
    monkeypatch.setenv("COLUMNS", "200")
    board = CliRunner().invoke(main, ["board", RUNG, "--course", COURSE])
    assert f"{people.alice.handle} (source shared)" in board.output
    shown = CliRunner().invoke(main, ["board", RUNG, "--course", COURSE, "--source", people.alice.handle])
    assert shown.exit_code == 0, shown.output
    assert "def add_one(x, out, n): return 0.5" in shown.output
    assert "Two loads <b>in flight</b>." in shown.output
    assert "\x1b" not in shown.output
    nobody = CliRunner().invoke(main, ["board", RUNG, "--course", COURSE, "--source", "nobody"])
    assert nobody.exit_code == 2
    with pytest.raises(UsageError):
        boards.shared_by({"entries": [{"name": "nobody"}]}, "nobody")


def test_a_rejected_entry_is_shown_no_more(*, site, database, config, people, graded, share, ended):
    row = graded(people.alice, 0.5)
    share(people.alice, row)
    ended()
    page = address(database)
    browser = site.logged_in(people.tom, config)
    review = {"decision": "rejected", "seen": "none", "reason": "copied"}
    assert browser.post(f"/submissions/{row.public_id}/review", data=review).status_code == 303
    with database.reading() as session:
        assert session.get_one(Submission, row.id).review is Review.rejected
    assert site.logged_in(people.bob, config).get(page).status_code == 404
