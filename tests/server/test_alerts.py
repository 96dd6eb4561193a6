"""Alerts: counted while they are open, never at the cost of what raised them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from server import alerts
from server.db import Database
from server.models import Alert, AlertKind, Course, User
from tests.doubles.world import START

LATER = START + timedelta(seconds=5)
SILENT = AlertKind.node_silent


def rows(database):
    with database.reading() as session:
        found = list(session.scalars(select(Alert).order_by(Alert.id)))
        session.expunge_all()
        return found


def tell(database, subject="node:anvil", message="It is gone.", now=START, kind=SILENT):
    with database.transaction() as session:
        alerts.raise_alert(session, kind, subject, message, now)


def test_the_same_again_while_it_is_open_is_counted(database):
    tell(database)
    tell(database, message="It is still gone.", now=LATER)
    (row,) = rows(database)
    assert (row.count, row.first_at, row.last_at, row.message) == (2, START, LATER, "It is still gone.")


def test_another_subject_or_kind_is_another_alert(database):
    tell(database)
    tell(database, subject="node:forge")
    tell(database, kind=AlertKind.node_rests)
    assert [row.count for row in rows(database)] == [1, 1, 1]


def test_one_that_ended_and_comes_back_is_a_new_one(database):
    tell(database)
    with database.transaction() as session:
        user = User(email="a@example.org", name="A", handle="a", created_at=START)
        session.add(user)
        session.flush()
        assert alerts.resolve(session, SILENT, "node:anvil", LATER, by=user)
        assert not alerts.resolve(session, SILENT, "node:anvil", LATER)
        assert not alerts.open_alerts(session)
    tell(database, now=LATER)
    first, second = rows(database)
    assert (first.resolved_at, first.resolved_by_id) == (LATER, user.id)
    assert (second.resolved_at, second.count) == (None, 1)
    with database.reading() as session:
        assert [row.id for row in alerts.open_alerts(session)] == [second.id]
        assert alerts.open_subjects(session, SILENT) == {"node:anvil"}


def test_twice_in_one_transaction_is_one_alert(database):
    with database.transaction() as session:
        for _ in range(3):
            alerts.raise_alert(session, SILENT, "node:anvil", "gone", START)
    assert [row.count for row in rows(database)] == [3]


def test_what_a_stranger_says_is_bounded_and_no_error(database):
    tell(database, subject="node:\0" + "x" * 10_000, message="a\0" + "y" * 100_000)
    tell(database, subject="node:\0" + "x" * 10_000)
    (row,) = rows(database)
    assert (len(row.subject), row.count) == (alerts.MAX_SUBJECT_CHARS, 2)


def test_an_alert_that_cannot_be_written_costs_its_transaction_nothing(owner_url, caplog):
    database = Database(owner_url)
    with database.transaction() as session:
        session.execute(text("ALTER TABLE alerts RENAME TO elsewhere"))
        session.add(Course(slug="kept", title="Kept", created_at=START))
        alerts.raise_alert(session, SILENT, "node:anvil", "gone", START)
        assert not alerts.resolve(session, SILENT, "node:anvil", START)
        session.execute(text("ALTER TABLE elsewhere RENAME TO alerts"))
    with database.reading() as session:
        assert session.scalar(select(Course.slug)) == "kept"
    assert "an alert was not written" in caplog.text
    database.dispose()


def test_a_mistake_of_the_caller_is_not_swallowed(database):
    def raise_behind_a_mistake():
        with database.transaction() as session:
            session.add_all(Course(slug="twice", title="", created_at=START) for _ in range(2))
            alerts.raise_alert(session, SILENT, "node:anvil", "gone", START)

    with pytest.raises(IntegrityError):
        raise_behind_a_mistake()


@pytest.mark.postgres
def test_two_transactions_that_raise_the_same_never_wait_for_each_other(postgres_url):
    database = Database(postgres_url)
    try:
        with database.transaction() as one, database.transaction() as other:
            one.execute(text("SET lock_timeout = '3s'"))
            other.execute(text("SET lock_timeout = '3s'"))
            for session, names in ((one, "ab"), (other, "ba")):
                for name in names:
                    alerts.raise_alert(session, SILENT, f"node:{name}", "gone", START)
        assert sorted((row.subject, row.count) for row in rows(database)) == [("node:a", 1), ("node:b", 1)]
    finally:
        database.dispose()
