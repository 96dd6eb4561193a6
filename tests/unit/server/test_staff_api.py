"""What staff go through, as JSON: the roster, what waits for a decision, extensions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from server.courses import service as courses
from server.gradebook import extensions
from server.models import Assignment, Review, State, Submission, Verdict

API = "/api/v1/courses/gpu"


@pytest.fixture
def tom(site, people):
    return site.bearer(people.tom)


def names(client, query=""):
    answer = client.get(f"{API}/roster{query}")
    assert answer.status_code == 200
    return [person["name"] for person in answer.json()["people"]]


def test_the_roster_is_read_by_name_and_filtered(tom, people):
    everybody = names(tom)
    assert everybody == sorted(everybody, key=str.casefold)
    assert {"Alice", "Bob", "Tom"} <= set(everybody)
    assert "Carol" not in everybody
    assert names(tom, "?dropped=true") == ["Carol"]
    assert names(tom, "?role=student&search=ALI") == ["Alice"]
    assert names(tom, "?section=none%20such") == []
    first = tom.get(f"{API}/roster?search=alice").json()
    assert (first["found"], first["page"], first["pages"]) == (1, 1, 1)
    assert first["people"][0]["email"] == "alice@example.org"
    assert tom.get(f"{API}/roster?page=99").json()["page"] == 1


def test_what_waits_for_a_decision_is_there(tom, people, submit, database):
    row = submit(people.alice)
    assert tom.get(f"{API}/review").json()["held"] == {"count": 0, "items": []}
    with database.transaction() as session:
        stored = session.get_one(Submission, row.id)
        stored.review, stored.state, stored.verdict = Review.held, State.done, Verdict.passed
    held = tom.get(f"{API}/review").json()["held"]
    assert held["count"] == 1
    (item,) = held["items"]
    assert (item["submission"], item["student"], item["assignment"]) == (row.public_id, "Alice", "add_one")
    assert (item["review"], item["appeal"], item["findings"]) == ("held", "", [])


def test_extensions_say_whether_they_hold(tom, people, database):
    now = datetime.now(UTC)
    with database.transaction() as session:
        session.scalars(select(Assignment)).one().due_at = now
    with database.transaction() as session:
        staff = courses.membership(session, people.tom, "gpu")
        row = session.scalars(select(Assignment)).one()
        (given,) = extensions.give(
            session, staff, assignment_ids=[row.id], user_ids=[people.alice.id], due_at=now + timedelta(days=3),
            days=None, late_until=None, reason="Ill.", now=now,
        )  # fmt: skip
    (read,) = tom.get(f"{API}/extensions").json()
    assert (read["name"], read["assignment"], read["reason"], read["by"]) == ("Alice", "add_one", "Ill.", "Tom")
    assert read["withdrawn_at"] is None
    with database.transaction() as session:
        staff = courses.membership(session, people.tom, "gpu")
        extensions.withdraw(session, staff, given.id, reason="Well again.", now=now)
    assert tom.get(f"{API}/extensions").json()[0]["withdrawn_at"] is not None
