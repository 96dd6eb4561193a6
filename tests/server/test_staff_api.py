"""What staff go through, as JSON: the roster, what waits for a decision, extensions, submissions, the audit log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from server.courses import courses
from server.gradebook import extensions
from server.models import Assignment, AuditEntry, Course, Mode, Review, State, Submission, User, Verdict

API = "/api/v1/courses/gpu"
LATER = datetime(2027, 1, 1, tzinfo=UTC)


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


@pytest.fixture
def handed_in(people, submit, database):
    """Alice's of section A: one that passed and is held, and a run; Bob's that waits. By name."""
    made = {
        "held": submit(people.alice).public_id,
        "run": submit(people.alice, mode=Mode.run).public_id,
        "bobs": submit(people.bob).public_id,
    }
    with database.transaction() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == made["held"])).one()
        row.review, row.state, row.verdict = Review.held, State.done, Verdict.passed
        courses.membership(session, people.alice, "gpu").enrolment.section = "A"
    return made


def found(client, handed_in, query=""):
    answer = client.get(f"{API}/submissions{query}")
    assert answer.status_code == 200, answer.text
    called = {public_id: name for name, public_id in handed_in.items()}
    return [called[item["public_id"]] for item in answer.json()]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["bobs", "run", "held"]),
        ("?student=ALI", ["run", "held"]),
        ("?student=nobody%20at%20all", []),
        ("?section=A", ["run", "held"]),
        ("?section=", ["bobs"]),
        ("?verdict=passed", ["held"]),
        ("?review=held&state=done", ["held"]),
        ("?mode=run", ["run"]),
        ("?lane=cpu&language=triton&assignment=add_one&limit=1", ["bobs"]),
        ("?lane=h200", []),
        ("?assignment=none", []),
        ("?before=none", []),
    ],
)
def test_staff_find_submissions_as_on_their_page(tom, handed_in, query, names):
    assert found(tom, handed_in, query) == names


def test_staff_go_through_submissions_page_by_page_and_by_person(tom, people, handed_in):
    assert found(tom, handed_in, f"?before={handed_in['bobs']}") == ["run", "held"]
    assert found(tom, handed_in, f"?student=%23{people.bob.id}") == ["bobs"]
    item = tom.get(f"{API}/submissions?limit=1").json()[0]
    assert (item["author"], item["user"]) == ("Bob", people.bob.id)
    for wrong in ("?verdict=fine", "?limit=0", f"?student={'x' * 200}", "?lane=cpu&lane=none"):
        assert tom.get(f"{API}/submissions{wrong}").status_code == 422, wrong


def test_a_student_finds_their_own_and_asks_for_nobody(site, people, handed_in):
    alice = site.bearer(people.alice)
    assert found(alice, handed_in) == ["run", "held"]
    assert found(alice, handed_in, "?verdict=passed") == ["held"]
    assert found(alice, handed_in, f"?before={handed_in['bobs']}") == []
    for asked in ("?student=bob", f"?student=%23{people.alice.id}", "?section=A", "?section="):
        assert alice.get(f"{API}/submissions{asked}").status_code == 403


def test_the_audit_log_says_who_did_what_to_whom(tom, people, database):
    with database.transaction() as session:
        ines = courses.membership(session, session.get_one(User, people.ines.id), "gpu")
        rung = session.scalars(select(Assignment)).one()
        courses.set_dates(session, rung, open_at=None, due_at=LATER, late_until=None, actor=ines.user)
        extensions.grant_late_days(session, ines, user_ids=[people.bob.id], days=2, reason="was ill <b>", now=LATER)
    days, dates = tom.get(f"{API}/audit?limit=2").json()
    assert (dates["action"], dates["actor"], dates["assignment"]) == ("assignment.dates_set", "Ines", "add_one")
    assert (days["action"], days["about"], days["reason"]) == ("late_days.granted", "Bob", "was ill <b>")
    assert (days["actor_id"], days["about_id"]) == (people.ines.id, people.bob.id)
    assert days["detail"]
    assert [one["id"] for one in tom.get(f"{API}/audit?before={days['id']}&limit=1").json()] == [dates["id"]]
    assert tom.get(f"{API}/audit?user={people.bob.id}").json()[0] == days
    assert dates in tom.get(f"{API}/audit?assignment=add_one").json()
    assert days not in tom.get(f"{API}/audit?assignment=add_one").json()
    assert tom.get(f"{API}/audit?assignment=none").json() == []
    for wrong in ("?before=0", "?user=x", f"?user={'9' * 30}", "?limit=101"):
        assert tom.get(f"{API}/audit{wrong}").status_code == 422, wrong


def test_the_audit_log_is_of_one_course(tom, people, database):
    with database.transaction() as session:
        other = session.scalars(select(Course.id).where(Course.slug != "gpu")).first()
        session.add(AuditEntry(at=LATER, action="x.secret", subject="course:other", course_id=other, detail={}))
        session.add(AuditEntry(at=LATER, action="x.secret", subject="server", course_id=None, detail={}))
    assert "x.secret" not in tom.get(f"{API}/audit").text
