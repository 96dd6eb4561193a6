"""The recorder: applies what nodes sent to the database. `python -m server.recorder` runs it.

Several may run; every message is applied under its submission's lock, and a repeated one changes nothing.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

from celery import Celery
from celery.exceptions import Reject
from sqlalchemy.exc import DBAPIError

from autograder import codec
from autograder.contract import Envelope
from autograder.errors import ContractError
from broker import logs
from broker.app import RECORD, RESULTS, TICK, consume, is_redis, make_app, serve
from server.config import Config, load_config
from server.db import Database, is_away, now
from server.grading.interface import Outcome, hear, record
from server.memory_limit import keep_within_the_container
from server.nodes.collector import Collector
from server.service_heartbeat import Beating, Presence

logger = logging.getLogger(__name__)

DATABASE_PAUSE_S = 1.0
"""How long a message waits before it is tried again while the database does not answer."""


class Recorder:
    """Applies one message at a time, each in its own transaction."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._config = config

    def apply(self, text: object) -> Outcome:
        """Apply one envelope; whatever is wrong with it is logged and the message dropped.

        Raises:
            OperationalError, InterfaceError: the database did not answer; the message is worth another try.
        """
        try:
            if not isinstance(text, str):
                raise ContractError("it is no text")  # noqa: TRY301  (one way to drop)
            envelope = codec.loads(Envelope, text)
        except ContractError as error:
            logger.warning("dropped a message that is no envelope: %.300s", error)
            return Outcome.refused
        try:
            with self._database.transaction() as session:
                return record(session, envelope, now=now(session), config=self._config)
        except Exception as error:
            # Around the job: one message must not end the recorder. What it was about is the sweeper's now.
            if is_away(error):
                raise
            logger.exception("dropped a %s from node %.60s", envelope.kind, envelope.node)
            return Outcome.refused

    def hear(self, nonce: object) -> bool:
        """Note that a tick came through the queue; false for one that is none of ours.

        Raises:
            OperationalError, InterfaceError: the database did not answer; the message is worth another try.
        """
        with self._database.transaction() as session:
            return hear(session, nonce, now=now(session))


def make_recorder(config: Config, database: Database) -> Celery:
    """The application with its two tasks, `record` and `tick`."""
    app = make_app("recorder", config.broker_url, queue=RESULTS)
    recorder = Recorder(database, config)

    def record_envelope(envelope: object) -> None:
        _or_wait(recorder.apply, envelope)

    def hear_tick(nonce: object) -> None:
        _or_wait(recorder.hear, nonce)

    # Acknowledged when it is in the database. If a recorder is killed in between, Redis gives its message to the next
    # one; files have given it away by then, and its node, which is not told that it was recorded, sends it again.
    serve(app, RECORD, record_envelope, acks_late=True)
    serve(app, TICK, hear_tick, acks_late=True)
    return app


def _or_wait(work: Callable[[object], object], message: object) -> None:
    """Do it, or give the message back for a while."""
    try:
        work(message)
    except DBAPIError as error:
        logger.exception("the database did not answer; the message waits")
        time.sleep(DATABASE_PAUSE_S)
        raise Reject("the database did not answer", requeue=True) from error


def run(config: Config) -> int:
    """Record until SIGTERM; returns the exit status."""
    # A message that ended the process would come again, and end the next one.
    keep_within_the_container()
    database = Database(config.database_url, statement_timeout_s=config.statement_timeout_s)
    alive, collector = Beating(Presence(database, "recorder")), Collector(database, config)
    try:
        alive.start()
        if is_redis(config.broker_url):
            collector.start()
        return consume(make_recorder(config, database))
    finally:
        collector.stop()
        alive.stop()
        database.dispose()


def main() -> int:
    """Run until SIGTERM."""
    config = load_config()
    logs.configure(config.log_format)
    return run(config)


if __name__ == "__main__":
    sys.exit(main())
