"""Configuration of one worker: read once from the environment, at the top."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.access import complete_url
from broker.envelope import key_of
from worker.settings import NodeConfig, home_of, is_set, load_node_config, number_in


@dataclass(frozen=True)
class WorkerConfig:
    """Who this node is and where its things are.

    Attributes:
        name: its name; its queue is `grade.<name>`, which one worker consumes.
        token: its secret, which signs what it sends and fetches bundles.
        server_url: where bundles are fetched.
        broker_url: kombu URL; where it names a user without a password, the node's own password was put in.
        node: what it works on, and how.
        keep_attempts: leave attempt folders behind, to replay one by hand.
        drain_s: how long the attempt at hand may go on when the node is asked to stop, before it is handed back.
        min_free_mb: with less room on the disk of its folder, in MiB, it takes nothing.
        log_format: `text` or `json`.
    """

    name: str
    token: str = field(repr=False)
    server_url: str
    broker_url: str = field(repr=False)
    node: NodeConfig
    keep_attempts: bool = False
    drain_s: float = 30.0
    min_free_mb: int = 500
    log_format: str = "text"


def load_config(environ: Mapping[str, str] = os.environ) -> WorkerConfig:
    """Read the environment.

    Raises:
        ValueError: a variable is missing or cannot be read; the message names it.
        UnfitError: the node must not serve so.
    """
    home = home_of(environ)
    name = environ.get("LADDER_NODE_NAME", "local")
    token, token_file = _token(environ, home / f"node-{name}.token")
    broker_url = environ.get("LADDER_BROKER_URL", f"filesystem://{home / 'broker'}")
    return WorkerConfig(
        name=name,
        token=token,
        server_url=environ.get("LADDER_SERVER_URL", "http://127.0.0.1:8000").rstrip("/"),
        broker_url=complete_url(broker_url, key_of(token)),
        node=load_node_config(environ, secrets=(token_file,) if token_file else ()),
        keep_attempts=is_set(environ, "LADDER_KEEP_ATTEMPTS"),
        drain_s=number_in(environ, "LADDER_DRAIN_S", 30.0),
        min_free_mb=int(number_in(environ, "LADDER_MIN_FREE_MB", 500)),
        log_format=environ.get("LADDER_LOG_FORMAT", "text"),
    )


def _token(environ: Mapping[str, str], default: Path) -> tuple[str, Path | None]:
    if token := environ.get("LADDER_NODE_TOKEN"):
        return token, None
    path = Path(environ.get("LADDER_NODE_TOKEN_FILE", default))
    try:
        return path.read_text(encoding="utf-8").strip(), path
    except OSError as error:
        raise ValueError(
            f"LADDER_NODE_TOKEN is not set and {path} (LADDER_NODE_TOKEN_FILE) cannot be read: {error.strerror}"
        ) from None
