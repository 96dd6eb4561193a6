"""The recorder: applies what nodes sent to the database. `python -m server.recorder` runs it.

Several may run; every message is applied under its submission's lock, and a repeated one changes nothing.
"""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime

from celery import Celery
from celery.exceptions import Reject
from sqlalchemy.exc import OperationalError

from autograder import codec
from autograder.contract import Envelope
from autograder.errors import ContractError
from broker.app import RECORD, RESULTS, consume, make_app, serve
from server.config import Config, load_config
from server.db import Database
from server.grading.service import Outcome, record

logger = logging.getLogger(__name__)

DATABASE_PAUSE_S = 1.0
"""How long a message waits before it is tried again while the database does not answer."""


class Recorder:
    """Applies one message at a time, each in its own transaction."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._config = config

    def apply(self, text: str) -> Outcome:
        """Apply one envelope; whatever is wrong with it is logged and the message dropped.

        Raises:
            OperationalError: the database did not answer; the message is worth another try.
        """
        try:
            envelope = codec.loads(Envelope, text)
        except ContractError as error:
            logger.warning("dropped a message that is no envelope: %.300s", error)
            return Outcome.refused
        try:
            with self._database.transaction() as session:
                return record(session, envelope, now=datetime.now(UTC), config=self._config)
        except OperationalError:
            raise
        except Exception:
            # Around the job: one message must not end the recorder. What it was about is the sweeper's now.
            logger.exception("dropped a %s from node %.60s", envelope.kind, envelope.node)
            return Outcome.refused


def make_recorder(config: Config, database: Database) -> Celery:
    """The application with its one task, `record`."""
    app = make_app("recorder", config.broker_url, queue=RESULTS)
    recorder = Recorder(database, config)

    def record_envelope(envelope: str) -> None:
        try:
            recorder.apply(envelope)
        except OperationalError as error:
            logger.exception("the database did not answer; the message waits")
            time.sleep(DATABASE_PAUSE_S)
            raise Reject("the database did not answer", requeue=True) from error

    # Acknowledged when it is in the database. If a recorder is killed in between, Redis gives its message to the next
    # one; files have given it away by then, and the sweeper ends the attempt that nothing more is heard of.
    serve(app, RECORD, record_envelope, acks_late=True)
    return app


def run(config: Config) -> int:
    """Record until SIGTERM; returns the exit status."""
    database = Database(config.database_url)
    try:
        return consume(make_recorder(config, database))
    finally:
        database.dispose()


def main() -> int:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    return run(load_config())


if __name__ == "__main__":
    sys.exit(main())
