"""Composes one worker and runs it. `python -m worker` does."""

from __future__ import annotations

import logging
import sys

from celery.signals import worker_shutting_down

from broker.app import GRADE, consume, grade_queue, make_app, serve
from worker.attempts import Attempts
from worker.bundles import Bundles
from worker.config import WorkerConfig, load_config
from worker.grade import Grader
from worker.judge import JudgeProcess
from worker.processes import adopt_orphans, keep_memory_private
from worker.reports import Reporter
from worker.results import Outbox

logger = logging.getLogger(__name__)


def run(config: WorkerConfig) -> int:
    """Grade until SIGTERM, which lets the attempt at hand finish; returns the exit status."""
    keep_memory_private()
    adopt_orphans()
    app = make_app("worker", config.broker_url, queue=grade_queue(config.node))
    outbox = Outbox(app, config.node, config.token)
    attempts = Attempts(config.work, keep=config.keep_attempts)
    judge = JudgeProcess(config.judge, config.work / "judge.log", adopt=True)
    bundles = Bundles(config.work / "bundles", config.server_url, config.token)
    grader = Grader(attempts=attempts, bundles=bundles, judge=judge, outbox=outbox)
    reporter = Reporter(outbox, config.lanes)

    def grade(task: str) -> None:
        grader.run(task)

    # Acknowledged before it runs: what a killed worker had is given back by the sweeper, never by the broker.
    serve(app, GRADE, grade, acks_late=False)

    def drain(**_kwargs: object) -> None:
        reporter.drain()

    worker_shutting_down.connect(drain)
    try:
        judge.start()
        grader.fail_unfinished()
        reporter.start()
        return consume(app)
    finally:
        reporter.stop()
        judge.close()


def main() -> int:
    """Run until SIGTERM."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    # Every download would be a line.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        config = load_config()
    except ValueError as error:
        logger.error("%s", error)  # noqa: TRY400  (a message for who configures the node, not a trace)
        return 2
    return run(config)
