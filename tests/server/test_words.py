"""What somebody wrote to staff in their own words: it is in the copy of their data, and goes when they are erased."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from server import audit
from server.exports import exports
from server.models import (
    Alert,
    Appeal,
    FindingLook,
    RegradeMessage,
    RegradeRequest,
    Review,
    Submission,
    User,
)
from server.models.regrades import RequestState
from server.terms import erasure
from tests.doubles.database import everything_in
from tests.doubles.world import World, passed

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
THEIRS = ("I had a broken leg", "look again, I am ill", "as to your leg: no", "no, although you are ill")
STAFFS = ("she told me of her leg", "the sick one")


@pytest.fixture
def asked(database, people, submit):
    """Alice appealed and asked for a regrade, and staff answered both with what she had told them."""
    row = submit(people.alice)
    where = {"course_id": row.course_id, "assignment_id": row.assignment_id}
    decided = {"decided_at": NOW, "decided_by_id": people.tom.id, "decision": Review.rejected}
    with database.transaction() as session:
        session.add(
            Appeal(course_id=row.course_id, submission_id=row.id, text=THEIRS[0], created_at=NOW, reason=THEIRS[2],
                   **decided)
        )  # fmt: skip
        request = RegradeRequest(
            **where, submission_id=row.id, user_id=people.alice.id, state=RequestState.declined, created_at=NOW,
        )  # fmt: skip
        session.add(request)
        session.flush()
        for author, said in ((people.alice, THEIRS[1]), (people.tom, THEIRS[3])):
            by_staff = author is people.tom
            session.add(
                RegradeMessage(request_id=request.id, author_id=author.id, by_staff=by_staff, text=said, at=NOW)
            )
        audit.record(
            session, action="submission.reviewed", subject=f"submission:{row.public_id}", actor=people.tom,
            detail={"told": STAFFS[1]}, reason=STAFFS[1],
        )  # fmt: skip
    return row


def test_it_is_in_the_copy_of_ones_data_and_in_nobody_elses(asked, database, people):
    def whole(user):
        return {file.name: file.content for file in exports.files(database.reading, user.id, lambda _receipt: {})}

    found = json.loads(whole(people.alice)["requests.json"])
    said = [item["text"] for item in found["appeals"] + found["regrade_requests"]]
    assert said == [THEIRS[0], THEIRS[1], THEIRS[3]]
    assert found["appeals"][0]["reason"] == THEIRS[2]
    assert {item["submission"] for item in found["appeals"]} == {asked.public_id}
    assert b"leg" not in b"".join(whole(people.bob).values())


def test_it_goes_with_who_is_erased_and_so_does_what_they_were_answered(asked, database, people):
    assert all(one in everything_in(database) for one in (*THEIRS, *STAFFS[1:]))
    with database.transaction() as session:
        erasure.erase_account(session, session.get_one(User, people.alice.id), now=NOW)
    left = everything_in(database)
    assert [one for one in (*THEIRS, *STAFFS[1:]) if one in left] == []


def test_what_staff_noted_on_a_finding_goes_too(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    world.grade(passed())
    with world.database.transaction() as session:
        row = session.scalars(select(Submission)).one()
        session.add(
            FindingLook(course_id=row.course_id, submission_id=row.id, result_id=row.result_id, kinds=[],
                        created_at=NOW, looked_at=NOW, reason=STAFFS[0])
        )  # fmt: skip
    with world.database.transaction() as session:
        erasure.erase_account(session, session.get_one(User, row.user_id), now=NOW)
    assert STAFFS[0] not in everything_in(world.database)
    world.database.dispose()


def test_an_alert_that_quotes_the_address_does_not_keep_it(database, people):
    with database.transaction() as session:
        said = "Mail 1 to user:1 was given up after 1 attempts: 550 <Alice@example.org>: no such mailbox"
        session.add(Alert(kind="mail_failed", subject="mail:given_up", message=said, first_at=NOW, last_at=NOW))
    with database.transaction() as session:
        erasure.erase_account(session, session.get_one(User, people.alice.id), now=NOW)
    assert "alice@example.org" not in everything_in(database).lower()
    assert "no such mailbox" in everything_in(database)
