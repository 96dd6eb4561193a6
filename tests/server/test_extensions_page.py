"""Extensions and late days are given to one or many on the page; what is refused comes back as it was chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from server.errors import InvalidInputError
from server.models import Assignment, Enrolment, Extension, LateDayGrant, Role
from server.roster import picking, roster

COURSE, RUNG = "gpu", "add_one"
PATH = f"/courses/{COURSE}/extensions"


@pytest.fixture
def rung(database, people):
    """The rung's id; it is due in Berlin at 22:59 UTC, and Bob is in section B with a student id."""
    with database.transaction() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        row.due_at = datetime(2026, 11, 29, 22, 59, tzinfo=UTC)
        row.late_until = row.due_at + timedelta(days=3)
        session.get_one(type(people.course), people.course.id).timezone = "Europe/Berlin"
        bob = update(Enrolment).where(Enrolment.user_id == people.bob.id)
        session.execute(bob.values(section="B", student_number="0042"))
        return row.id


def _extensions(database):
    with database.reading() as session:
        rows = session.scalars(select(Extension).where(Extension.withdrawn_at.is_(None)).order_by(Extension.user_id))
        return [(row.user_id, row.due_at, row.late_until, row.reason) for row in rows]


def test_many_get_one_at_once_by_name_section_and_pasted_list(site, people, config, database, rung):
    browser = site.logged_in(people.tom, config)
    with database.transaction() as session:
        session.execute(update(Enrolment).where(Enrolment.user_id == people.carol.id).values(dropped_at=None))
    given = browser.post(
        PATH,
        data={
            "student": "Carol", "section": "B", "pasted": "ALICE@example.org;\n 0042 ", "assignment": rung,
            "due_at": "2026-12-01T12:00", "reason": "<b>ill</b>",
        },
    )  # fmt: skip
    page = browser.get(given.headers["location"]).text
    assert "Extensions given: 3. Each student was notified: Alice, Bob, Carol." in page
    assert "&lt;b&gt;ill&lt;/b&gt;" in page
    due = datetime(2026, 12, 1, 11, tzinfo=UTC)
    assert {(row[0], row[1]) for row in _extensions(database)} == {
        (user.id, due) for user in (people.alice, people.bob, people.carol)
    }


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ({"pasted": "alice@example.org, <i>nobody@x, tom@example.org"}, "&lt;i&gt;nobody@x”, “tom@example.org"),
        ({"days": "three"}, "whole number of days"),
        ({"days": "3", "due_at": "2026-12-01T12:00"}, "either a date or a number"),
        ({"due_at": "2026-11-01T12:00"}, "can only move dates to later"),
        ({"due_at": "2031-11-01T12:00"}, "366 days"),
        ({"due_at": "2027-03-28T02:30"}, "skipped"),
        ({"due_at": "2026-12-05T12:00", "late_until": "2026-12-01T12:00"}, "closing date has to be after the due date"),
        ({"days": "3", "reason": ""}, "reason"),
        ({"days": "3", "pasted": ""}, "at least one student"),
    ],
)
def test_what_cannot_be_given_is_refused_and_comes_back(*, site, people, config, database, rung, typed, why):
    browser = site.logged_in(people.tom, config)
    body = {"pasted": "alice@example.org", "assignment": rung, "reason": "she was ill", **typed}
    refused = browser.post(PATH, data=body)
    assert refused.status_code == 422
    assert why in refused.text
    assert f'name="assignment" value="{rung}" checked>' in refused.text
    assert _extensions(database) == []


def test_a_section_whose_name_is_a_rungs_number_is_not_taken_for_it(site, people, config, database, rung):
    """Sections 1, 2 and 3: whoever came from one student's grade would have given it to a whole section."""
    with database.transaction() as session:
        session.execute(update(Enrolment).where(Enrolment.user_id == people.bob.id).values(section=str(rung)))
    browser = site.logged_in(people.tom, config)
    page = browser.get(PATH, params={"user": people.alice.handle, "assignment": RUNG}).text
    assert f'name="assignment" value="{rung}" checked>' in page
    assert f'name="section" value="{rung}">' in page
    refused = browser.post(PATH, data={"section": str(rung), "reason": ""}).text
    assert f'name="section" value="{rung}" checked>' in refused
    assert f'name="assignment" value="{rung}" checked>' not in refused


def test_a_new_one_takes_the_place_of_the_old_and_can_be_withdrawn(site, people, config, database, rung):
    browser = site.logged_in(people.tom, config)
    for days in ("2", "5"):
        body = {"student": people.alice.email, "assignment": rung, "days": days, "reason": "ill"}
        assert browser.post(PATH, data=body).status_code == 303
    ((user_id, due_at, late_until, _reason),) = _extensions(database)
    assert (user_id, due_at) == (people.alice.id, datetime(2026, 12, 4, 22, 59, tzinfo=UTC))
    assert late_until == due_at + timedelta(days=3)
    with database.reading() as session:
        row_id = session.scalars(select(Extension.id).where(Extension.withdrawn_at.is_(None))).one()
    gone = browser.post(f"{PATH}/{row_id}/withdraw", data={"reason": "a mistake"})
    assert gone.status_code == 303
    assert browser.post(f"{PATH}/{row_id}/withdraw", data={"reason": "again"}).status_code == 409
    assert _extensions(database) == []


def test_who_was_given_something_is_named(site, people, config, database, rung):
    """By a part of a name somebody else may have been meant."""
    with database.transaction() as session:
        session.execute(
            update(Enrolment)
            .where(Enrolment.user_id.in_([people.tom.id, people.carol.id]))
            .values(role=Role.student, dropped_at=None)
        )
        session.get_one(type(people.alice), people.alice.id).name = "Alice <b>Lee</b>"
    browser = site.logged_in(people.ines, config)
    given = browser.post(PATH, data={"student": "lee", "assignment": rung, "days": "3", "reason": "ill"})
    assert "Each student was notified: Alice &lt;b&gt;Lee&lt;/b&gt;." in browser.get(given.headers["location"]).text
    everybody = " ".join(f"{name}@example.org" for name in ("alice", "bob", "carol", "tom"))
    given = browser.post(PATH, data={"kind": "late_days", "pasted": everybody, "days": "1", "reason": "storm"})
    page = browser.get(given.headers["location"]).text
    assert "late days were changed: 4. Each was notified: " in page
    assert " and 1 more." in page
    odd = browser.get(
        PATH, params={"done": "extension", "count": "1", "told": f"{people.stranger.id} x", "people": "1"}
    )
    assert people.stranger.name not in odd.text


def test_late_days_are_given_and_taken(site, people, config, database, rung):
    browser = site.logged_in(people.tom, config)
    for days in ("2", "-1", "\N{MINUS SIGN}1"):
        body = {"pasted": "alice@example.org bob@example.org", "days": days, "reason": "conference"}
        assert browser.post(PATH, data={"kind": "late_days", **body}).status_code == 303
    with database.reading() as session:
        rows = session.execute(select(LateDayGrant.user_id, LateDayGrant.days)).all()
        assert sorted(days for user, days in rows if user == people.alice.id) == [-1, -1, 2]
    refused = browser.post(PATH, data={"kind": "late_days", "student": "alice", "days": "0", "reason": "x"})
    assert refused.status_code == 422
    assert 'value="late_days" checked' in refused.text
    page = browser.get(f"{PATH}?user={people.alice.id}&assignment={RUNG}").text
    assert "Only Alice's are listed." in page
    assert ">alice@example.org</textarea>" in page
    assert f'name="assignment" value="{rung}" checked>' in page


def test_a_student_is_found_by_a_part_of_the_name_and_joins_the_list(site, people, config, database, rung):
    browser = site.logged_in(people.tom, config)
    found = browser.post(PATH, data={"act": "add", "student": "LIC", "pasted": "0042", "days": "3", "reason": "ill"})
    assert found.status_code == 200
    assert ">0042\nalice@example.org</textarea>" in found.text
    assert 'name="days" type="text" value="3"' in found.text
    assert _extensions(database) == []
    with database.transaction() as session:
        session.get_one(type(people.bob), people.bob.id).name = "Alicia"
    for looked_for, why in (
        ("ali", "2 students match"),
        ("zoe", "No student of this course matches"),
        ("", "Choose a"),
    ):
        refused = browser.post(PATH, data={"act": "add", "student": looked_for})
        assert (refused.status_code, why in refused.text) == (422, True)
    assert "alice@example.org" in browser.post(PATH, data={"act": "add", "student": "alice"}).text


@pytest.mark.parametrize(
    "pasted",
    [
        "alice@example.org bob@example.org",
        "alice@example.org,bob@example.org",
        "alice@example.org;bob@example.org",
        "alice@example.org\r\n\tBOB@example.org\n",
        "Alice <alice@example.org>, Bob O'Neil <bob@example.org>",
        "00 42, alice@example.org",
    ],
)
def test_pasted_addresses_are_separated_by_what_people_paste(database, people, pasted):
    with database.transaction() as session:
        bob = update(Enrolment).where(Enrolment.user_id == people.bob.id)
        session.execute(bob.values(student_number="00 42"))
        everybody = roster.students(session, people.course.id)
        assert picking.several(everybody, pasted, field="pasted") == {people.alice.id, people.bob.id}


@pytest.mark.parametrize(
    ("pasted", "unknown"),
    [
        ("Alice <alice@example.org> tim@example.org", "tim@example.org"),
        ("tim@example.org Alice <alice@example.org>", "tim@example.org"),
        ("Alice <alice@example.org> Tim", "tim"),
        ("0041 Alice <alice@example.org>", "0041"),
        ("<alice@example.org> 0041 <bob@example.org>", "0041"),
    ],
)
def test_nobody_beside_an_address_is_passed_over(database, people, rung, pasted, unknown):
    with database.reading() as session:
        everybody = roster.students(session, people.course.id)
        with pytest.raises(InvalidInputError, match=f"“{unknown}”"):
            picking.several(everybody, pasted, field="pasted")
        both = {people.alice.id, people.bob.id}
        for whole in ("Alice <alice@example.org> bob@example.org", "0042 Alice <alice@example.org>"):
            assert picking.several(everybody, whole, field="pasted") == both


def test_a_whole_name_comes_before_a_part_of_one(database, people):
    with database.transaction() as session:
        for user, name in ((people.alice, "Ann Leevers"), (people.bob, "Ann Lee")):
            session.get_one(type(user), user.id).name = name
    with database.reading() as session:
        everybody = roster.students(session, people.course.id)
        assert picking.one(everybody, " ann  LEE", field="student") == people.bob.id
        assert picking.one(everybody, "leev", field="student") == people.alice.id
        with pytest.raises(InvalidInputError, match="2 students match"):
            picking.one(everybody, "ann", field="student")


def test_an_address_is_not_looked_for_among_names(database, people):
    with database.transaction() as session:
        session.get_one(type(people.bob), people.bob.id).name = "bob@home"
    with database.reading() as session:
        everybody = roster.students(session, people.course.id)
        assert picking.one(everybody, "home", field="student") == people.bob.id
        with pytest.raises(InvalidInputError, match="No student of this course matches"):
            picking.one(everybody, "b@home", field="student")


def test_students_may_not_look(site, people, config, rung):
    assert site.logged_in(people.alice, config).get(PATH).status_code == 403
