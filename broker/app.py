"""The Celery application that dispatcher, recorder and worker make, and how a consumer of one queue runs.

Celery's own retries stay off everywhere: the sweeper (`server.grading.sweep`) is the only retry, so that a poisonous
job cannot loop in the broker.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import setup_logging
from kombu.entity import Exchange, Queue

GRADE = "grade"
RECORD = "record"
TICK = "tick"
"""The server's own message through the results queue (`server.grading.lease_clock`)."""
RESULTS = "results"
"""What the recorder consumes."""
TICKS = "ticks"

SEND_TIMEOUT_S = 5.0
"""How long one try to reach the broker may take."""


def grade_queue(node: str) -> str:
    """The queue that only this node consumes."""
    return f"grade.{node}"


def said_queue(node: str) -> str:
    """Where on Redis this node puts what it says; `server.nodes.collector` takes it on to the recorder."""
    return f"said.{node}"


def queue_of_sayings(app: Celery, node: str) -> str:
    """Where a node puts what it says. A folder knows no users: there it is the recorder's queue itself."""
    return said_queue(node) if _on_redis(app) else RESULTS


def queue_of_ticks(app: Celery) -> str:
    """Where ticks are put: behind whatever nodes said before them."""
    return TICKS if _on_redis(app) else RESULTS


def _on_redis(app: Celery) -> bool:
    return is_redis(str(app.conf.broker_url))


def is_redis(url: str) -> bool:
    """Whether this broker is a Redis, which has users."""
    return urlsplit(url).scheme in {"redis", "rediss"}


def unacked_keys(queue: str) -> tuple[str, str, str]:
    """Where Redis keeps what a queue's consumer took and did not acknowledge yet: the messages, an index, a lock.

    Each queue has its own. By default all consumers of a Redis share them, and could read what others were given.
    """
    return f"{queue}.unacked", f"{queue}.unacked_index", f"{queue}.unacked_mutex"


def make_app(name: str, broker_url: str, *, queue: str | None = None) -> Celery:
    """An application for this broker, the folders of a filesystem broker made.

    Args:
        queue: what `consume` will consume. It is named here because Celery reads it once, at the first message, which
            may be one that is sent.
    """
    app = Celery(name, set_as_current=False)
    app.conf.update(
        task_queues=(_queue(queue),) if queue is not None else (),
        # Nothing is ever unpickled.
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        # What came of a task travels on the results queue, signed; Celery keeps no second copy of it.
        task_ignore_result=True,
        result_backend=None,
        # A slot takes one message at a time: what waits, waits in the database, where its place can still change. For
        # the same reason there are no priorities here.
        worker_prefetch_multiplier=1,
        worker_concurrency=1,
        # No broadcast queues: nobody sends commands to workers, and on a folder each of them would be polled.
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        task_send_sent_event=False,
        # A publisher decides itself how long a message is worth another try (a heartbeat: not at all).
        task_publish_retry=False,
        broker_connection_timeout=SEND_TIMEOUT_S,
        # Services start in any order and survive a restart of the broker, however long it takes. A Redis that is still
        # loading, or full, or a replica for a moment, answers with an error: it is asked again like one that is away.
        broker_connection_retry=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,
        # What is being graded or recorded goes on while the broker is away: its message is acknowledged before
        # (grading) or changes nothing when it comes again (recording).
        worker_cancel_long_running_tasks_on_connection_loss=False,
        # After a lost connection Celery would lower a prefetch that is one already.
        worker_enable_prefetch_count_reduction=False,
        # A task that raises is done with: the sweeper is the only retry. The recorder says what is to come again.
        task_acks_on_failure_or_timeout=True,
        task_reject_on_worker_lost=False,
        # A grading that is cut short is handed back by the worker, not drawn out by Celery.
        worker_soft_shutdown_timeout=0.0,
        # Standard output stays what it is (`consume` keeps the logging as well).
        worker_redirect_stdouts=False,
        **{"broker_url": broker_url, **_transport(broker_url, queue)},
    )
    return app


def _transport(broker_url: str, queue: str | None) -> dict[str, Any]:
    scheme = urlsplit(broker_url).scheme
    if scheme == "filesystem":
        return _filesystem(Path(urlsplit(broker_url).path))
    if is_redis(broker_url):
        return {
            "broker_transport": "broker.redis:Transport",
            "broker_transport_options": {**_REDIS, **_own_keys(queue)},
        }
    return {}


_REDIS: dict[str, Any] = {
    # What waits, waits in the database, in its order; a queue is one list.
    "priority_steps": [0],
    # Only the recorder acknowledges late. Its jobs take milliseconds, and a repeated one changes nothing, so that what
    # a killed recorder had in its hands may come again soon. The times are those of the consumers' clocks: recorders
    # whose clocks disagree by more repeat each other's work, and nothing worse.
    "visibility_timeout": 20,
    # As shipped, what is overdue is looked for every 100 s, and a lock that a killed consumer held lasts 300 s.
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "unacked_mutex_expire": 20,
    # A half-open connection is found out instead of waited for: a publisher's after one timeout, a consumer's after
    # about the time of two checks. A consumer asks anew every second, so that no silence is as long as a timeout.
    "socket_connect_timeout": SEND_TIMEOUT_S,
    "socket_timeout": 8.0,
    "socket_keepalive": True,
    "health_check_interval": 10,
    # A publisher that finds nobody says so after one more try; waiting is its caller's matter. (0 means for ever.)
    "max_retries": 1,
    "interval_start": 0.2,
    # No `global_keyprefix`: what several installations share is told apart by the number of Redis's database, and what
    # a node may touch by the names of its keys (`broker.access`).
}


def _own_keys(queue: str | None) -> dict[str, str]:
    names = ("unacked_key", "unacked_index_key", "unacked_mutex_key")
    return dict(zip(names, unacked_keys(queue), strict=True)) if queue is not None else {}


def _filesystem(folder: Path) -> dict[str, Any]:
    # Messages carry sources and results: the folder is its owner's alone.
    for path in (folder, folder / "messages", folder / "control"):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {
        # The folder is named by the options; a URL without a host would be a warning for every connection.
        "broker_url": "filesystem://localhost",
        "broker_transport": "broker.filesystem:Transport",
        "broker_transport_options": {
            "data_folder_in": str(folder / "messages"),
            "data_folder_out": str(folder / "messages"),
            "control_folder": str(folder / "control"),
            # The default polls once a second; at 0.05 a hop takes 10 to 20 ms (measured).
            "polling_interval": 0.05,
        },
    }


_ARGUMENTS = {GRADE: "task", RECORD: "envelope", TICK: "nonce"}


def send(app: Celery, task: str, queue: str, text: str) -> None:
    """Publish one task by name; `text` is its one argument.

    It never expires: Celery would compare the sender's clock with the receiver's. Who receives a message asks whether
    it is still wanted.

    Raises:
        kombu.exceptions.OperationalError, OSError: the broker cannot be reached.
    """
    # Declaring nothing: the anonymous exchange routes by the queue's name, on a folder as on Redis.
    app.send_task(task, kwargs={_ARGUMENTS[task]: text}, queue=_queue(queue), declare=[])


def _queue(name: str) -> Queue:
    return Queue(name, Exchange(""), routing_key=name)


def serve(app: Celery, task: str, function: Callable[..., None], *, acks_late: bool) -> None:
    """Let `function` run when a task of this name arrives.

    Args:
        acks_late: acknowledge when it is done: what a killed process had comes again; otherwise before it starts.
    """
    # Not shared: Celery would give it to every other application of this process as well.
    app.task(name=task, acks_late=acks_late, shared=False)(function)


def _leave_logging_alone(**_kwargs: object) -> None:
    """Celery configures logging unless somebody listens to this signal."""


def consume(app: Celery) -> int:
    """Consume the application's queue in this process until SIGTERM, which lets the task at hand finish.

    Returns:
        The exit status.
    """
    setup_logging.connect(_leave_logging_alone)
    # A node that shuts runners in is root, by design; the advice is for those that are not.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    # Two lines for every message, heartbeats among them; what a message did, its task logs.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
    worker = app.Worker(
        # One task at a time, in this process: a forked child must never own a GPU context or a database connection.
        pool="solo",
        hostname=f"{app.main}.{os.getpid()}@{socket.gethostname()}",
        # Workers need not know each other; these would need broadcast queues.
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()
    return int(worker.exitcode or 0)
