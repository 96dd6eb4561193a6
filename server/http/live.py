"""Telling watchers that a submission changed: one listener per process, however many pages are open.

A watcher is a submission's id and an event; it holds no thread, no connection and no session. While anybody watches,
one task asks the database for the revisions of all watched submissions in one query, every `poll_s`, in a worker
thread. It ends with the last watcher.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Mapping

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from server.db import Database
from server.http import metrics
from server.models import Submission

logger = logging.getLogger(__name__)

HEARTBEAT_S = 15.0
"""After so long without a change a stream says that it is alive, and its reader may look at its login again."""


class _Watcher:
    """Somebody who waits for one submission."""

    def __init__(self, submission_id: int, seen: int) -> None:
        self.submission_id = submission_id
        self.revision = seen
        self.changed = asyncio.Event()

    def tell(self, revision: int) -> None:
        """Wake up if this revision is news; several at once are one."""
        if revision > self.revision:
            self.revision = revision
            self.changed.set()


class Live:
    """The listener of one process."""

    def __init__(self, database: Database, poll_s: float) -> None:
        self._database = database
        self._poll_s = poll_s
        self._watchers: set[_Watcher] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        """How many streams are open."""
        return len(self._watchers)

    async def changes(
        self, submission_id: int, *, seen: int = -1, heartbeat_s: float = HEARTBEAT_S
    ) -> AsyncGenerator[int | None, None]:
        """Yield the submission's revision when it is above `seen`, then whenever it grows; `None` as a heartbeat.

        Changes that come faster than the reader reads are one change. The reader decides when to stop: at a final
        state, or when the login that it authorised has ended. It closes the generator (`contextlib.aclosing`).
        """
        watcher = _Watcher(submission_id, seen)
        self._watchers.add(watcher)
        metrics.watchers.inc()
        try:
            while True:
                self._listen()
                try:
                    async with asyncio.timeout(heartbeat_s):
                        await watcher.changed.wait()
                except TimeoutError:
                    yield None
                    continue
                watcher.changed.clear()
                yield watcher.revision
        finally:
            self._watchers.discard(watcher)
            metrics.watchers.dec()

    def _listen(self) -> None:
        """See to it that the listener runs, on the loop of whoever watches."""
        if self._task is None or self._task.done() or self._task.get_loop() is not asyncio.get_running_loop():
            self._task = asyncio.create_task(self._run(), name="live")

    async def _run(self) -> None:
        while self._watchers:
            try:
                revisions = await asyncio.to_thread(self._revisions, {w.submission_id for w in self._watchers})
            except SQLAlchemyError:
                logger.warning("the database did not answer; watchers wait", exc_info=True)
            else:
                self._tell(revisions)
            await asyncio.sleep(self._poll_s)

    def _revisions(self, submission_ids: Collection[int]) -> Mapping[int, int]:
        query = select(Submission.id, Submission.revision).where(Submission.id.in_(submission_ids))
        with self._database.reading() as session:
            return dict(session.execute(query).all())

    def _tell(self, revisions: Mapping[int, int]) -> None:
        for watcher in self._watchers:
            if watcher.submission_id in revisions:
                watcher.tell(revisions[watcher.submission_id])
