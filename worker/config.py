"""Configuration of one worker: read once from the environment, at the top."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.signing import SignatureError
from broker.access import complete_url
from broker.identity import NodeKey
from worker.settings import NodeConfig, home_of, is_set, load_node_config, number_in


@dataclass(frozen=True)
class WorkerConfig:
    """Who this node is and where its things are.

    Attributes:
        name: its name; its queue is `grade.<name>`, which one worker consumes.
        key: signs what it sends and asks for.
        server_url: where bundles are fetched.
        broker_url: kombu URL; where it names a user without a password, the node's own password was put in.
        node: what it works on, and how.
        keep_attempts: leave attempt folders behind, to replay one by hand.
        drain_s: how long the attempt at hand may go on when the node is asked to stop, before it is handed back.
        min_free_mb: with less room on the disk of its folder, in MiB, it takes nothing.
        log_format: `text` or `json`.
    """

    name: str
    key: NodeKey = field(repr=False)
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
    key_file = Path(environ.get("LADDER_NODE_KEY_FILE", home / f"node-{name}.key"))
    key = _key(key_file)
    broker_url = environ.get("LADDER_BROKER_URL", f"filesystem://{home / 'broker'}")
    return WorkerConfig(
        name=name,
        key=key,
        server_url=environ.get("LADDER_SERVER_URL", "http://127.0.0.1:8000").rstrip("/"),
        broker_url=complete_url(broker_url, key.broker_password),
        node=load_node_config(environ, secrets=(key_file,)),
        keep_attempts=is_set(environ, "LADDER_KEEP_ATTEMPTS"),
        drain_s=number_in(environ, "LADDER_DRAIN_S", 30.0),
        min_free_mb=int(number_in(environ, "LADDER_MIN_FREE_MB", 500)),
        log_format=environ.get("LADDER_LOG_FORMAT", "text"),
    )


def _key(path: Path) -> NodeKey:
    try:
        return NodeKey.load(path)
    except OSError as error:
        raise ValueError(f"the node's key {path} (LADDER_NODE_KEY_FILE) cannot be read: {error.strerror}") from None
    except SignatureError as error:
        raise ValueError(f"LADDER_NODE_KEY_FILE: {error}") from None
