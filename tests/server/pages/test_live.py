"""The listener: one query for everybody who watches, and none when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest
from sqlalchemy import event, update

from server.db import Database, make_engine
from server.http.live import Live
from server.models import Submission
from tests.server.conftest import People, Submit

POLL_S = 0.01
PATIENCE_S = 10.0


@pytest.fixture
def live(database: Database) -> Live:
    return Live(database, POLL_S)


def raise_revision(database: Database, submission: Submission, by: int = 1) -> None:
    # By the engine: a session would go on to work out grades and bests, whose queries are not a watcher's.
    with database.engine.begin() as connection:
        connection.execute(
            update(Submission).where(Submission.id == submission.id).values(revision=Submission.revision + by)
        )


async def following(changes: AsyncGenerator[int | None, None]) -> int | None:
    """What a watcher is told next, heartbeats left out."""
    async with asyncio.timeout(PATIENCE_S):
        async for revision in changes:
            if revision is not None:
                return revision
    raise AssertionError("the stream ended")


async def until(found: Callable[[], bool]) -> None:
    """Let the listener work until something has happened in its thread."""
    async with asyncio.timeout(PATIENCE_S):
        while not found():  # noqa: ASYNC110  # the thread that polls knows no event of this loop
            await asyncio.sleep(POLL_S)


def test_a_watcher_is_told_of_a_change_once(live: Live, database: Database, people: People, submit: Submit) -> None:
    submission = submit(people.alice)

    async def watch() -> list[int | None]:
        async with aclosing(live.changes(submission.id, seen=submission.revision)) as changes:
            raise_revision(database, submission)
            first = await following(changes)
            raise_revision(database, submission, by=3)
            return [first, await following(changes)]

    assert asyncio.run(watch()) == [submission.revision + 1, submission.revision + 4]


def test_a_watcher_who_is_behind_is_told_at_once(live: Live, people: People, submit: Submit) -> None:
    submission = submit(people.alice)

    async def watch() -> int | None:
        async with aclosing(live.changes(submission.id)) as changes:
            return await following(changes)

    assert asyncio.run(watch()) == submission.revision


def test_a_quiet_stream_says_that_it_is_alive(live: Live, people: People, submit: Submit) -> None:
    submission = submit(people.alice)

    async def watch() -> int | None:
        async with aclosing(live.changes(submission.id, seen=submission.revision, heartbeat_s=0.05)) as changes:
            return await anext(changes)

    assert asyncio.run(watch()) is None


def test_many_watchers_are_one_query_and_nobody_is_none(
    live: Live, database: Database, people: People, submit: Submit
) -> None:
    watched = [submit(people.alice) for _ in range(3)]
    queries: list[str] = []

    def count(*arguments: object) -> None:
        queries.append(str(arguments[2]))

    async def watch() -> tuple[int, int]:
        streams = [live.changes(item.id, seen=item.revision) for item in watched for _ in range(5)]
        waiting = [asyncio.create_task(following(stream)) for stream in streams]
        await asyncio.sleep(0)
        event.listen(database.engine, "before_cursor_execute", count)
        await until(lambda: len(queries) >= 3)
        watchers = live.watchers
        for item in watched:
            raise_revision(database, item)
        await asyncio.gather(*waiting)
        for stream in streams:
            await stream.aclose()
        return watchers, live.watchers

    assert asyncio.run(watch()) == (15, 0)
    event.remove(database.engine, "before_cursor_execute", count)
    selects = [query for query in queries if query.startswith("SELECT")]
    assert all(query.count("submissions.revision") == 1 for query in selects)
    # A poll asks for three submissions at once, not fifteen times for one.
    assert all(" IN (" in query for query in selects)


def test_a_database_that_does_not_answer_is_asked_again(
    *,
    live: Live,
    database: Database,
    owner_url: str,
    people: People,
    submit: Submit,
    caplog: pytest.LogCaptureFixture,
) -> None:
    submission, owner = submit(people.alice), make_engine(owner_url)

    async def watch() -> int | None:
        async with aclosing(live.changes(submission.id, seen=submission.revision)) as changes:
            with owner.connect() as connection:
                connection.exec_driver_sql("ALTER TABLE submissions RENAME TO gone")
                connection.commit()
            task = asyncio.create_task(following(changes))
            await until(lambda: "did not answer" in caplog.text)
            with owner.connect() as connection:
                connection.exec_driver_sql("ALTER TABLE gone RENAME TO submissions")
                connection.commit()
            raise_revision(database, submission)
            return await task

    assert asyncio.run(watch()) == submission.revision + 1
    owner.dispose()
