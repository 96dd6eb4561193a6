"""Extensions and late days are given to one or many on the page; what is refused comes back as it was chosen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from server.models import Assignment, Enrolment, Extension, LateDayGrant

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
            "student": people.carol.id, "section": "B", "pasted": "ALICE@example.org;\n 0042 ", "assignment": rung,
            "due_at": "2026-12-01T12:00", "reason": "<b>ill</b>",
        },
    )  # fmt: skip
    page = browser.get(given.headers["location"]).text
    assert "Extensions given: 3." in page
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
        ({"due_at": "2026-11-01T12:00"}, "only moves dates back"),
        ({"due_at": "2031-11-01T12:00"}, "366 days"),
        ({"due_at": "2027-03-28T02:30"}, "skipped"),
        ({"due_at": "2026-12-05T12:00", "late_until": "2026-12-01T12:00"}, "closes after it is due"),
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
    assert f'<option value="{rung}" selected>' in refused.text
    assert _extensions(database) == []


def test_a_section_whose_name_is_a_rungs_number_is_not_taken_for_it(site, people, config, database, rung):
    """Sections 1, 2 and 3: whoever came from one student's grade would have given it to a whole section."""
    with database.transaction() as session:
        session.execute(update(Enrolment).where(Enrolment.user_id == people.bob.id).values(section=str(rung)))
    browser = site.logged_in(people.tom, config)
    page = browser.get(PATH, params={"user": people.alice.handle, "assignment": RUNG}).text
    assert f'<option value="{rung}" selected>' in page
    assert f'name="section" value="{rung}">' in page
    refused = browser.post(PATH, data={"section": str(rung), "reason": ""}).text
    assert f'name="section" value="{rung}" checked>' in refused
    assert f'<option value="{rung}" selected>' not in refused


def test_a_new_one_takes_the_place_of_the_old_and_can_be_withdrawn(site, people, config, database, rung):
    browser = site.logged_in(people.tom, config)
    for days in ("2", "5"):
        body = {"student": people.alice.id, "assignment": rung, "days": days, "reason": "ill"}
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


def test_late_days_are_given_and_taken(site, people, config, database, rung):
    browser = site.logged_in(people.tom, config)
    for days in ("2", "-1", "\N{MINUS SIGN}1"):
        body = {"student": [people.alice.id, people.bob.id], "days": days, "reason": "conference"}
        assert browser.post(f"{PATH}/late-days", data=body).status_code == 303
    with database.reading() as session:
        rows = session.execute(select(LateDayGrant.user_id, LateDayGrant.days)).all()
        assert sorted(days for user, days in rows if user == people.alice.id) == [-1, -1, 2]
    refused = browser.post(f"{PATH}/late-days", data={"student": people.alice.id, "days": "0", "reason": "x"})
    assert refused.status_code == 422
    page = browser.get(f"{PATH}?user={people.alice.id}&assignment={RUNG}").text
    assert "Only Alice's are listed." in page
    assert f'<option value="{people.alice.id}" selected>' in page
    assert f'<option value="{rung}" selected>' in page


def test_students_may_not_look(site, people, config, rung):
    assert site.logged_in(people.alice, config).get(PATH).status_code == 403
