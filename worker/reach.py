"""Whether this node reaches what it needs: the web tier by its token, and its queue at the broker."""

from __future__ import annotations

import httpx
from kombu.exceptions import KombuError, OperationalError
from redis import RedisError

from broker.app import grade_queue, make_app
from worker.config import WorkerConfig

TIMEOUT_S = 10.0
_NO_BUNDLE = "sha256:" + "0" * 64


def problems(config: WorkerConfig) -> list[str]:
    """What is in the way, a sentence for each; empty if nothing is."""
    return [problem for problem in (_web(config), _broker(config)) if problem]


def _web(config: WorkerConfig) -> str:
    url = f"{config.server_url}/api/v1/bundles/{_NO_BUNDLE}"
    try:
        answer = httpx.get(url, headers={"Authorization": f"Bearer {config.token}"}, timeout=TIMEOUT_S)
    except httpx.HTTPError as error:
        return f"The server at {config.server_url} cannot be reached: {error}"
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return (
            f"The server does not take this node's token: has {config.name} joined again elsewhere, or been disabled?"
        )
    # It knows us, and has nothing under a name that nothing can have.
    if answer.status_code != httpx.codes.NOT_FOUND:
        return f"The server at {config.server_url} answers {answer.status_code}, which is no Kernel Ladder's answer."
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
