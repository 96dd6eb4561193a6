"""The dispatcher: gives free slots the next submission, and sweeps. `python -m server.dispatcher` runs it.

Several may run; the database decides who claims what. A claim is committed before its message leaves. A message that
cannot be sent is tried again for as long as its attempt lives, and until then nothing else is claimed; if the
dispatcher ends meanwhile, the attempt's lease does.

Whatever goes wrong with one node, or in one of the things that are done now and then, is logged, told to staff and
keeps nobody else waiting. Only a database that does not answer makes the whole dispatcher pause.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import takewhile

from celery import Celery
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import GradeTask, Lane
from broker import logs
from broker.app import GRADE, TICK, grade_queue, make_app, queue_of_ticks, send
from server import alerts, announcements
from server.accounts import links, second_factor, sso
from server.config import Config, load_config
from server.db import Database, after_commit, is_away, now
from server.grading.confirm import confirm_due, measure_suspects_again
from server.grading.forecast import store_forecasts
from server.grading.interface import (
    LIVE,
    WAITING,
    Queue,
    Watch,
    fill_slots,
    forget_artefacts,
    look_at_all,
    make_tick,
    sweep,
)
from server.grading.rejected import put_apart
from server.grading.sample_sets import refresh_pools
from server.messages import messages, outbox
from server.messages.sender import Sender
from server.models import AlertKind, Attempt, Submission
from server.nodes import nodes
from server.reconciliation import runs as reconciliation
from server.regrades import runner as regrading
from server.service_heartbeat import Presence, forget_silent
from server.similarity.supervisor import Keeper
from server.submissions.board_inspections import inspect_due

logger = logging.getLogger(__name__)

SWEEP_EVERY_S = 1.0
TICK_EVERY_S = 1.0
"""How often it is looked whether a tick is due; they are two seconds apart."""
WATCH_EVERY_S = 5.0
FORECASTS_EVERY_S = 2.0
TIDY_EVERY_S = 300.0
POOLS_EVERY_S = 60.0
MOST_PUT_APART = 100
"""So many rejected submissions are taken out of their pools at once; there are some only after an upgrade."""
SIMILARITY_EVERY_S = 5.0
ACCOUNTS_EVERY_S = 10.0
"""How often it is looked whether a course's accounts are due: each is examined once a minute, by whichever looks."""
REGRADES_EVERY_S = 2.0
ANNOUNCEMENTS_EVERY_S = 10.0
PAUSE_S = 1.0
"""How long to wait before asking a database or a broker again that did not answer."""
JUMP_S = 2.0
"""The database's clock jumped if it and ours disagree by more about the time between two looks."""
END_WITHIN_S = 1.0
"""A dispatcher that is asked to stop waits for no network longer than this: what it left undone, the lease undoes."""


class Clock:
    """Watches the database's clock with this process's own, which nobody can set."""

    def __init__(self) -> None:
        self._seen: tuple[float, float, datetime] | None = None

    def jump_s(self, session: Session) -> float:
        """By how much the database's clock jumped since the last look; 0 if it only went on.

        A look is between two readings of our own clock, so that waiting for an answer is no jump.
        """
        before, theirs, after = time.monotonic(), now(session), time.monotonic()
        seen, self._seen = self._seen, (before, after, theirs)
        if seen is None:
            return 0.0
        passed = (theirs - seen[2]).total_seconds()
        least, most = before - seen[1], after - seen[0]
        jump = max(passed - most, 0.0) + min(passed - least, 0.0)
        return jump if abs(jump) > JUMP_S else 0.0


@dataclass(frozen=True)
class Unsent:
    """A message whose claim is committed."""

    node: str
    attempt: str
    trace: str
    text: str


class Dispatcher:
    """Claims and sends; every call of `step` is one look at the queue."""

    def __init__(self, database: Database, app: Celery, config: Config) -> None:
        self._database = database
        self._app = app
        self._config = config
        self._clock = Clock()
        self._watch = Watch(config)
        self._presence = Presence(database, "dispatcher")
        self._comparisons = Keeper(database)
        self._calm_at = 0.0
        self._unsent: deque[Unsent] = deque()
        self._due: dict[str, float] = {}

    def step(self) -> int:
        """Do what is due, then fill every free slot once; how many attempts were sent."""
        self._when_due("tick", TICK_EVERY_S, self.tick)
        self._when_due("sweep", SWEEP_EVERY_S, self.sweep)
        self._when_due("watch", WATCH_EVERY_S, self.watch)
        self._when_due("forecasts", FORECASTS_EVERY_S, self.forecast)
        self._when_due("tidy", TIDY_EVERY_S, self.tidy)
        self._when_due("pools", POOLS_EVERY_S, self.pools)
        if self._config.confirm_s > 0:
            self._when_due("confirmations", self._config.confirm_s, self.confirm)
        self._when_due("regrades", REGRADES_EVERY_S, self.regrades)
        self._when_due("announcements", ANNOUNCEMENTS_EVERY_S, self.announce)
        self._when_due("accounts", ACCOUNTS_EVERY_S, partial(reconciliation.check_due, self._database))
        self._when_due("similarity", SIMILARITY_EVERY_S, self._comparisons.step)
        self._presence.beat()
        if not self._send_unsent():
            return 0
        return self._guarded("queue", self._fill_all)

    def leave(self) -> None:
        """Say that this dispatcher ends."""
        self._presence.leave()

    @property
    def waits_for_the_broker(self) -> bool:
        """There are messages that could not be sent."""
        return bool(self._unsent)

    def sweep(self) -> int:
        """Give back what was lost; how many attempts. After a jump of the clock nothing, for as long as a lease is."""
        with self._database.transaction() as session:
            if jump := self._clock.jump_s(session):
                self._calm_at = time.monotonic() + self._config.lease_s
                message = (
                    f"The database's clock jumped by {jump:+.1f} s; no lease expires for {self._config.lease_s:g} s."
                )
                alerts.raise_alert(session, AlertKind.clock_jumped, "database", message, now(session))
            if time.monotonic() < self._calm_at:
                return 0
            return sweep(session, now=now(session), config=self._config)

    def tick(self) -> None:
        """Send the results queue a message of ours, so that it is known how far the recorder has heard."""
        with self._database.transaction() as session:
            nonce = make_tick(session, now=now(session))
            if nonce is not None:
                after_commit(session, partial(self._send_tick, nonce))

    def watch(self) -> None:
        """Bring alerts up to date."""
        with self._database.transaction() as session:
            self._watch.look(session, now=now(session))

    def forecast(self) -> int:
        """Store for newcomers when their result is expected; how many. What came is held against it later."""
        with self._database.transaction() as session:
            return store_forecasts(session, now(session))

    def tidy(self) -> None:
        """Remove what is kept for a while only."""
        with self._database.transaction() as session:
            forget_silent(session, now=now(session))
            forget_artefacts(session, now=now(session), config=self._config)
            outbox.forget_old(session, now=now(session))
            messages.forget_old(session, now=now(session))
            links.forget_old(session, now=now(session))
            sso.forget_old(session)
            second_factor.forget_old(session)

    def announce(self) -> int:
        """Tell members of announcements whose time has come; how many."""
        with self._database.transaction() as session:
            return announcements.tell_due(session)

    def pools(self) -> int:
        """Bring up to date what was passed over while its pool grew, or shrank; how many."""
        apart = sum(takewhile(bool, (self._put_apart() for _ in range(MOST_PUT_APART))))
        with self._database.transaction() as session:
            return apart + refresh_pools(session, now=now(session))

    def _put_apart(self) -> int:
        with self._database.transaction() as session:
            return put_apart(session, now=now(session))

    def confirm(self) -> int:
        """Queue what is to be graded once more, then what the sanitizer is to see of leaderboards; how many."""
        with self._database.transaction() as session:
            at = now(session)
            return measure_suspects_again(session, now=at) + confirm_due(session, now=at) + inspect_due(session, now=at)

    def regrades(self) -> int:
        """Do the next bit for every proposal that is under way, each in a transaction of its own; how many."""
        with self._database.reading() as session:
            ids = regrading.active_ids(session)
        return sum(self._guarded(f"regrade {one}", partial(self._regrade, one)) for one in ids)

    def _regrade(self, regrade_id: int) -> int:
        with self._database.transaction() as session:
            return regrading.step_one(session, regrade_id, now=now(session))

    def _when_due(self, name: str, every_s: float, work: Callable[[], int | None]) -> None:
        if time.monotonic() >= self._due.get(name, 0.0):
            self._due[name] = time.monotonic() + every_s
            self._guarded(name, work)

    def _guarded(self, name: str, work: Callable[[], int | None]) -> int:
        """Do it; what goes wrong is told, and keeps nothing else waiting. What it came to."""
        try:
            return work() or 0
        except Exception as error:
            # Around the job: one row, one node. A database that is away is everybody's matter.
            if is_away(error):
                raise
            logger.exception("dispatcher: %s", name)
            self._tell(name, f"The dispatcher cannot do its work ({name}): {error!r}. See its log for details.")
            return 0

    def _tell(self, name: str, message: str) -> None:
        try:
            with self._database.transaction() as session:
                alerts.raise_alert(session, AlertKind.queue_stuck, f"dispatcher:{name}", message, now(session))
        except SQLAlchemyError:
            logger.exception("an alert was not written")

    def _look(self) -> tuple[list[tuple[int, str]], Mapping[Lane, Queue]]:
        """Id and name of the nodes with a free slot, and what waits; it locks nothing: most looks find nothing."""
        with self._database.reading() as session:
            waiting = set(session.scalars(select(Submission.lane).where(Submission.state.in_(WAITING)).distinct()))
            if not waiting:
                return [], {}
            at = now(session)
            working = [node for node in nodes.working_nodes(session, now=at) if waiting.intersection(node.lanes)]
            awake = [node for node in working if not nodes.why_resting(session, node, at)]
            free = [(node.id, node.name) for node in awake if nodes.free_slots(session, node) > 0]
            return free, look_at_all(session, now=at) if free else {}

    def _fill_all(self) -> int:
        working, queues = self._look()
        return sum(self._fill(node_id, name, queues) for node_id, name in working)

    def _fill(self, node_id: int, name: str, queues: Mapping[Lane, Queue]) -> int:
        return self._guarded(f"node {name}", partial(self._dispatch, node_id, name, queues))

    def _dispatch(self, node_id: int, name: str, queues: Mapping[Lane, Queue]) -> int:
        with self._database.transaction() as session:
            tasks = fill_slots(session, node_id=node_id, queues=queues, now=now(session), config=self._config)
            for task in tasks:
                after_commit(session, partial(self._queue_up, name, task, codec.dumps(task)))
        return len(tasks)

    def _queue_up(self, node: str, task: GradeTask, text: str) -> None:
        logger.info("trace %s: attempt %s (fence %d) goes to node %s", task.trace, task.attempt, task.fence, node)
        self._unsent.append(Unsent(node, task.attempt, task.trace, text))
        self._send_unsent()

    def _send_unsent(self) -> bool:
        """Send what waits, oldest first; false while the broker does not answer."""
        while self._unsent:
            message = self._unsent[0]
            try:
                send(self._app, GRADE, grade_queue(message.node), message.text)
            except (BrokerError, OSError) as error:
                logger.warning("trace %s: attempt %s is not sent yet: %r", message.trace, message.attempt, error)
                self._forget_unsent()
                return False
            except Exception:
                # Around one row: what can never be sent, its lease ends.
                logger.exception("trace %s: attempt %s cannot be sent", message.trace, message.attempt)
            self._unsent.popleft()
        return True

    def _forget_unsent(self) -> None:
        """Forget messages whose attempts have ended meanwhile."""
        names = [message.attempt for message in self._unsent]
        with self._database.reading() as session:
            living = select(Attempt.public_id).where(Attempt.public_id.in_(names), Attempt.state.in_(LIVE))
            lives = set(session.scalars(living))
        self._unsent = deque(message for message in self._unsent if message.attempt in lives)

    def _send_tick(self, nonce: str) -> None:
        try:
            send(self._app, TICK, queue_of_ticks(self._app), nonce)
        except (BrokerError, OSError) as error:
            logger.warning("a tick was not sent: %r", error)


def run(config: Config, stop: threading.Event) -> None:
    """Dispatch until `stop` is set."""
    database = Database(config.database_url, statement_timeout_s=config.statement_timeout_s)
    dispatcher = Dispatcher(database, make_app("dispatcher", config.broker_url), config)
    sender = Sender(database, config)
    sender.start()
    logger.info("dispatching")
    try:
        while not stop.is_set():
            if not _step(dispatcher, stop):
                stop.wait(PAUSE_S if dispatcher.waits_for_the_broker else config.poll_s)
        dispatcher.leave()
        sender.stop()
    finally:
        database.dispose()


def _step(dispatcher: Dispatcher, stop: threading.Event) -> int:
    try:
        return dispatcher.step()
    except DBAPIError:
        logger.exception("the database did not answer")
        stop.wait(PAUSE_S)
        return 0


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    config = load_config()
    logs.configure(config.log_format)
    stop = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        # Whatever it waits for in the middle of a step: a transaction is whole or undone, a message sent or not.
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, END_WITHIN_S)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    run(config, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
