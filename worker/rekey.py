"""Replacing a node's key by another that it makes itself: the old one signs for it, the new one consents."""

from __future__ import annotations

from pathlib import Path

import httpx

from broker.identity import NodeKey
from worker.config import WorkerConfig
from worker.disk import locked
from worker.node_errors import RefusedError
from worker.server import Signature

TIMEOUT_S = 30.0


def replace_key(config: WorkerConfig, path: Path) -> None:
    """Make a new key, have the server take it for the old one, and leave it in the file `path`.

    May be said again after it was interrupted: the new key lies beside the old one until the server has it.

    Raises:
        FolderTakenError: the node's worker runs, and would go on signing with the old key.
        RefusedError: the server takes neither key.
        httpx.HTTPError: it does not answer.
    """
    with locked(config.node.work):
        waiting = path.with_name(f"{path.name}.new")
        if not waiting.exists():
            NodeKey.generate().save(waiting)
        new = NodeKey.load(waiting)
        with httpx.Client(base_url=f"{config.server_url}/api/v1/nodes", timeout=TIMEOUT_S) as client:
            refusal = _offer(client, config, new)
            if refusal and not _is_known(client, config, new):
                raise RefusedError(f"The server refused the new key: {refusal}")
        waiting.replace(path)


def _offer(client: httpx.Client, config: WorkerConfig, new: NodeKey) -> str:
    """Why the server did not take it, empty if it did."""
    body = {
        "public_key": new.identity.public_key,
        "broker_hash": new.identity.broker_hash,
        "consent": new.consent(config.name, config.key.identity.public_key),
    }
    answer = client.put("/own/key", json=body, auth=Signature(config.name, config.key))
    return "" if answer.is_success else f"{answer.status_code} {answer.text[:300]}"


def _is_known(client: httpx.Client, config: WorkerConfig, new: NodeKey) -> bool:
    """Whether it took it before, when nobody heard its answer."""
    return client.get("/own", auth=Signature(config.name, new)).is_success
