from __future__ import annotations

import time
from datetime import timedelta

import pytest
from sqlalchemy import select

from server import service_heartbeat as module
from server.db import Database, now
from server.models import Service
from server.service_heartbeat import Beating, Presence, forget_silent


def rows(database):
    with database.reading() as session:
        found = list(session.scalars(select(Service)))
        session.expunge_all()
        return found


@pytest.fixture
def clock(monkeypatch):
    at = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: at[0])
    return at


def test_a_process_says_that_it_is_alive_every_ten_seconds_in_one_row(database, clock):
    mine = Presence(database, "web")
    mine.beat({"port": "8000"})
    (first,) = rows(database)
    clock[0] += 9
    mine.beat()
    assert rows(database)[0].last_seen_at == first.last_seen_at
    clock[0] += 1
    mine.beat()
    (second,) = rows(database)
    assert (second.started_at, second.instance) == (first.started_at, module.instance())
    assert second.last_seen_at > first.last_seen_at
    assert first.facts["port"] == "8000"


def test_an_older_process_of_the_same_id_is_replaced(database):
    Presence(database, "web").beat()
    (before,) = rows(database)
    Presence(database, "web").beat()
    (after,) = rows(database)
    assert after.started_at > before.started_at


def test_a_process_that_ends_takes_its_row_away_and_no_others(database):
    mine, other = Presence(database, "web"), Presence(database, "recorder")
    mine.beat()
    other.beat()
    mine.leave()
    assert [row.kind for row in rows(database)] == ["recorder"]


def test_a_database_that_does_not_answer_is_no_error(caplog):
    away = Database("postgresql://nobody@127.0.0.1:1/nothing")
    mine = Presence(away, "web")
    mine.beat()
    mine.leave()
    assert "could not say that this web is alive" in caplog.text
    away.dispose()


def test_silent_ones_are_forgotten_after_a_day(database):
    Presence(database, "web").beat()
    for hours, left in ((23, 1), (25, 0)):
        with database.transaction() as session:
            forget_silent(session, now=now(session) + timedelta(hours=hours))
        assert len(rows(database)) == left


def test_a_thread_beats_for_those_whose_work_is_in_other_hands(database):
    beating = Beating(Presence(database, "recorder"))
    beating.stop()
    beating = Beating(Presence(database, "recorder"))
    beating.start()
    give_up_at = time.monotonic() + 30
    while not rows(database) and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert [row.kind for row in rows(database)] == ["recorder"]
    beating.stop()
    assert rows(database) == []
