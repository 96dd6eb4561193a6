"""The dispatcher: gives free slots the next submission, and sweeps. `python -m server.dispatcher` runs it.

Several may run; the database decides who claims what. A claim is committed before its message leaves: a message that
cannot be sent leaves an attempt whose lease expires, which the sweeper gives back.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from functools import partial

from celery import Celery
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from autograder import codec
from autograder.contract import GradeTask
from autograder.errors import ContractError
from broker.app import GRADE, grade_queue, make_app, send
from server.config import Config, load_config
from server.db import Database, after_commit
from server.grading.service import WAITING, claim_next, sweep
from server.models import Node, Submission
from server.nodes import service as nodes

logger = logging.getLogger(__name__)

SWEEP_EVERY_S = 1.0
DATABASE_PAUSE_S = 1.0
"""How long to wait before asking a database again that did not answer."""


class Dispatcher:
    """Claims and sends; every call of `step` is one look at the queue."""

    def __init__(self, database: Database, app: Celery, config: Config) -> None:
        self._database = database
        self._app = app
        self._config = config
        self._next_sweep = 0.0
        self._resting: set[int] = set()

    def step(self) -> int:
        """Sweep if it is time, then fill every free slot once; how many attempts were sent."""
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + SWEEP_EVERY_S
            self.sweep()
        return sum(self._dispatch(node_id, name) for node_id, name in self._nodes_with_work())

    def sweep(self) -> int:
        """Give back what was lost; how many attempts."""
        with self._database.transaction() as session:
            return sweep(session, now=datetime.now(UTC), config=self._config)

    def _nodes_with_work(self) -> list[tuple[int, str]]:
        """Id and name of the nodes worth asking for, by a query that locks nothing: most looks find an empty queue."""
        with self._database.reading() as session:
            waiting = set(session.scalars(select(Submission.lane).where(Submission.state.in_(WAITING)).distinct()))
            if not waiting:
                return []
            working = nodes.working_nodes(session, now=datetime.now(UTC))
            matching = [node for node in working if waiting.intersection(node.lanes)]
            awake = [node for node in matching if not self._rests(session, node)]
            return [(node.id, node.name) for node in awake if nodes.free_slots(session, node) > 0]

    def _rests(self, session: Session, node: Node) -> bool:
        """Whether the node rests; when it begins to, the log says why, once."""
        reason = nodes.why_resting(session, node, datetime.now(UTC))
        if not reason:
            self._resting.discard(node.id)
        elif node.id not in self._resting:
            self._resting.add(node.id)
            logger.warning("node %s rests up to %.0f s: %s", node.name, nodes.REST_S, reason)
        return bool(reason)

    def _dispatch(self, node_id: int, name: str) -> bool:
        with self._database.transaction() as session:
            task = claim_next(session, node_id=node_id, now=datetime.now(UTC), config=self._config)
            if task is not None:
                after_commit(session, partial(self._send, name, task))
        return task is not None

    def _send(self, node: str, task: GradeTask) -> None:
        logger.info("trace %s: attempt %s (fence %d) goes to node %s", task.trace, task.attempt, task.fence, node)
        try:
            # A task that nobody took while its lease lasted is stale: its attempt was given back.
            send(self._app, GRADE, grade_queue(node), codec.dumps(task), expires_s=task.lease_s)
        except (BrokerError, OSError, ContractError):
            # One that fits into no message must not end the dispatcher either: everybody else's wait behind it.
            logger.exception("trace %s: attempt %s was not sent; its lease will expire", task.trace, task.attempt)


def run(config: Config, stop: threading.Event) -> None:
    """Dispatch until `stop` is set."""
    database = Database(config.database_url)
    dispatcher = Dispatcher(database, make_app("dispatcher", config.broker_url), config)
    logger.info("dispatching")
    try:
        while not stop.is_set():
            if not _step(dispatcher, stop):
                stop.wait(config.poll_s)
    finally:
        database.dispose()


def _step(dispatcher: Dispatcher, stop: threading.Event) -> int:
    try:
        return dispatcher.step()
    except OperationalError:
        logger.exception("the database did not answer")
        stop.wait(DATABASE_PAUSE_S)
        return 0


def main() -> int:
    """Run until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run(load_config(), stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
