"""Composes one worker and runs it. `python -m worker` does."""

from __future__ import annotations

import logging

from celery.signals import worker_shutting_down

from autograder.errors import GpuError
from broker import logs
from broker.app import GRADE, consume, grade_queue, make_app, serve
from worker.aftermath import Aftermath
from worker.attempts import Attempts
from worker.bundles import Bundles
from worker.config import WorkerConfig, load_config
from worker.disk import Disk, locked
from worker.grade import Around, Grader
from worker.node import compose
from worker.node_errors import FolderTakenError, GpuUnknownError, UnfitError
from worker.outbox import Outbox
from worker.processes import adopt_orphans, keep_memory_private
from worker.reports import Reporter
from worker.server import Server, Signature
from worker.stopping import Stopping

logger = logging.getLogger(__name__)


def run(config: WorkerConfig) -> int:
    """Grade until SIGTERM, which lets the attempt at hand finish; a second one, or its patience, hands it back.

    Returns:
        The exit status.

    Raises:
        FolderTakenError: another worker has this one's folder.
        GpuUnknownError, UnfitError, GpuError: it cannot serve as it is configured.
    """
    keep_memory_private()
    adopt_orphans()
    with locked(config.node.work):
        return _run(config)


def _run(config: WorkerConfig) -> int:
    app = make_app("worker", config.broker_url, queue=grade_queue(config.name))
    stopping, disk = Stopping(config.drain_s), Disk(config.node.work, config.min_free_mb)
    signature = Signature(config.name, config.key)
    outbox, server = Outbox(app, config.name, config.key), Server(config.server_url, signature)
    aftermath = Aftermath(outbox, server)
    node = compose(config.node, stopping)
    judge, life = node.judge, node.life
    grader = Grader(
        attempts=Attempts(config.node.work, keep=config.keep_attempts),
        bundles=Bundles(config.node.work / "bundles", config.server_url, signature, wait=stopping.sleep),
        judge=judge,
        around=Around(outbox, server, aftermath, stopping, disk, life),
    )
    reporter = Reporter(outbox, node.serves, stopping=stopping, disk=disk, life=life)

    def grade(task: str) -> None:
        grader.run(task)

    # Acknowledged before it runs: what a killed worker had is given back by the sweeper, never by the broker.
    serve(app, GRADE, grade, acks_late=False)

    def stop(**_kwargs: object) -> None:
        stopping.ask()

    # Celery sends this for every SIGTERM, the second one as well.
    worker_shutting_down.connect(stop)
    try:
        judge.start()
        grader.say_what_was_left()
        aftermath.start()
        # Before it announces itself: who has not heard of a node sends it nothing.
        life.begin()
        life.start()
        reporter.start()
        return consume(app)
    finally:
        life.stop()
        reporter.stop()
        judge.close()
        aftermath.stop()
        server.close()


def main() -> int:
    """Run until SIGTERM."""
    try:
        config = load_config()
    except (ValueError, UnfitError) as error:
        logs.configure("text")
        logger.error("%s", error)  # noqa: TRY400  (a message for who configures the node, not a trace)
        return 2
    logs.configure(config.log_format)
    try:
        return run(config)
    except (FolderTakenError, GpuUnknownError, UnfitError, GpuError) as error:
        logger.error("%s", error)  # noqa: TRY400  (as above)
        return 2
