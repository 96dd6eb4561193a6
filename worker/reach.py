"""Whether this node reaches what it needs: the web tier, which knows its key, and its queue at the broker."""

from __future__ import annotations

import httpx
from kombu.exceptions import KombuError, OperationalError
from redis import RedisError

from broker.app import grade_queue, make_app
from worker.config import WorkerConfig
from worker.server import Signature

TIMEOUT_S = 10.0


def problems(config: WorkerConfig) -> list[str]:
    """What is in the way, a sentence for each; empty if nothing is."""
    return [problem for problem in (_web(config), _broker(config)) if problem]


def _web(config: WorkerConfig) -> str:
    signature = Signature(config.name, config.key)
    try:
        answer = httpx.get(f"{config.server_url}/api/v1/nodes/own", auth=signature, timeout=TIMEOUT_S)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            return f"The server rejects what {config.name} signs: {answer.json()['message']}"
        granted = set(answer.json()["lanes"]) if answer.status_code == httpx.codes.OK else None
    except httpx.HTTPError as error:
        return f"The server at {config.server_url} cannot be reached: {error}"
    except (ValueError, KeyError, TypeError):
        granted = None
    if granted is None:
        return (
            f"The server at {config.server_url} answers {answer.status_code}, which is not an answer of Kernel Ladder."
        )
    if beyond := sorted({lane.value for lane in config.node.lanes} - granted):
        return f"Staff did not grant {config.name} the lane {', '.join(beyond)}: `ladder admin grant-node`."
    return ""


def _broker(config: WorkerConfig) -> str:
    app = make_app("reach", config.broker_url, queue=grade_queue(config.name))
    try:
        with app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, timeout=TIMEOUT_S)
            connection.default_channel.queue_declare(grade_queue(config.name), passive=False)
    except (OperationalError, KombuError, RedisError, OSError) as error:
        return f"The broker cannot be reached as {config.name}: {error}"
    return ""
