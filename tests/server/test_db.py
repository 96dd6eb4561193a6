"""Transactions: what they keep, what they forget, and that nobody reads the past."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from server.db import IDLE_S, Database, after_commit, after_rollback, before_commit, now
from server.models import ApiToken, Course, LoginAttempt


def _row(email):
    return LoginAttempt(address="", email=email, at=datetime.now(UTC))


def _emails(database):
    with database.reading() as session:
        return sorted(session.scalars(select(LoginAttempt.email)))


def _fail_after(database, work, unit="transaction"):
    with getattr(database, unit)() as session:
        work(session)
        raise ZeroDivisionError


def test_messages_leave_after_the_commit_and_never_without_one(database):
    said = []
    with database.transaction() as session:
        session.add(_row("a"))
        after_commit(session, lambda: said.append(_emails(database)))
        after_rollback(session, lambda other: other.add(_row("never")))
    with pytest.raises(ZeroDivisionError):
        _fail_after(database, lambda session: after_commit(session, lambda: said.append("never")))
    assert said == [["a"]]
    assert _emails(database) == ["a"]


def test_what_stays_of_an_undone_transaction_is_written_afterwards(database):
    def work(session):
        session.add(_row("undone"))
        session.flush()
        after_rollback(session, lambda other: other.add(_row("stays")))

    with pytest.raises(ZeroDivisionError):
        _fail_after(database, work)
    assert _emails(database) == ["stays"]


def test_a_rehearsal_that_is_rolled_back_leaves_nothing_to_be_done(database):
    said = []
    with database.transaction() as session:
        session.add(_row("rehearsed"))
        before_commit(session, "key", lambda _: said.append("before"))
        after_commit(session, lambda: said.append("after"))
        session.rollback()
    assert (said, _emails(database)) == ([], [])


def test_a_commit_that_fails_leaves_what_stays_and_raises(database):
    def commit():
        with database.transaction() as session:
            after_rollback(session, lambda other: other.add(_row("stays")))
            session.add(
                ApiToken(
                    user_id=9,
                    name="",
                    token_hash="",
                    start="",
                    scopes="",
                    created_at=datetime.now(UTC),
                    expires_at=datetime.now(UTC),
                )
            )

    with pytest.raises(IntegrityError):
        commit()
    assert _emails(database) == ["stays"]


@pytest.mark.parametrize("unit", ["reading", "transaction"])
def test_after_an_error_in_the_middle_of_a_result_nobody_reads_the_past(database, config, unit):
    with database.transaction() as session:
        session.add_all([_row("a"), _row("b")])
    kept = []

    def work(session):
        kept.append(session.execute(select(LoginAttempt.email)))

    with pytest.raises(ZeroDivisionError):
        _fail_after(database, work, unit)
    elsewhere = Database(config.database_url)
    with elsewhere.transaction() as session:
        session.add(_row("c"))
    elsewhere.dispose()
    assert _emails(database) == ["a", "b", "c"]
    assert kept


def test_a_reader_does_not_wait_for_a_writer(database):
    with database.transaction() as session:
        session.add(_row("a"))
        session.flush()
        found = []
        reader = threading.Thread(target=lambda: found.append(_emails(database)))
        reader.start()
        reader.join()
        assert found == [[]]


def test_two_writers_add_up(database):
    with database.transaction() as session:
        session.add(_row("0"))

    def count():
        for _ in range(10):
            with database.transaction() as session:
                row = session.scalars(select(LoginAttempt).with_for_update()).one()
                row.email = str(int(row.email) + 1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _emails(database) == ["40"]
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(LoginAttempt)) == 1


def test_a_flush_that_fails_says_what_it_failed_of(database):
    def twice():
        with database.transaction() as session:
            session.add_all(Course(slug="twice", title="", created_at=datetime.now(UTC)) for _ in range(2))
            session.flush()

    with pytest.raises(IntegrityError) as caught:
        twice()
    assert "courses" in str(caught.value)


def test_an_error_of_the_database_does_not_tell_what_was_sent(database):
    """It goes into the log with its traceback: sources, addresses and hashes of passwords do not."""
    with pytest.raises(DBAPIError) as caught, database.reading() as session:
        session.execute(text("SELECT :said FROM nothing_of_this_name"), {"said": "a source of somebody"})
    assert "a source of somebody" not in str(caught.value)


def test_the_database_has_one_clock_which_runs_on_within_a_transaction(database):
    with database.transaction() as session:
        first = now(session)
        session.execute(select(func.count()).select_from(LoginAttempt))
        assert first < now(session)
        assert first.tzinfo is UTC
        assert abs(datetime.now(UTC) - first) < timedelta(minutes=5)


@pytest.mark.postgres
@pytest.mark.parametrize("idle_s", [0.0, 3600.0])
def test_a_connection_that_postgresql_ended_is_not_used_again(postgres_url, monkeypatch, idle_s):
    database, elsewhere = Database(postgres_url), Database(postgres_url)
    with database.transaction() as session:
        pid = session.scalar(text("SELECT pg_backend_pid()"))
    with elsewhere.transaction() as session:
        assert session.scalar(text("SELECT pg_terminate_backend(:pid, 10000)"), {"pid": pid})
    clock = time.monotonic() + idle_s
    monkeypatch.setattr("server.db.time.monotonic", lambda: clock)
    with database.transaction() as session:
        assert session.scalar(text("SELECT pg_backend_pid()")) != pid
    database.dispose()
    elsewhere.dispose()


@pytest.mark.postgres
def test_only_a_connection_that_was_idle_for_long_is_tried(postgres_url, monkeypatch):
    database = Database(postgres_url)
    tried = []
    monkeypatch.setattr(psycopg.Connection, "execute", lambda _self, query: tried.append(query))
    for clock in (0.0, IDLE_S - 1, IDLE_S, 2 * IDLE_S + 1):
        monkeypatch.setattr("server.db.time.monotonic", lambda clock=clock: clock)
        with database.reading() as session:
            session.scalar(select(1))
    assert tried == ["SELECT 1"]
    database.dispose()
