"""Configuration of one worker: read once from the environment, at the top."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.contract import Lane

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class WorkerConfig:
    """Who this node is and where its things are.

    Attributes:
        node: its name; its queue is `grade.<node>`, which one worker consumes.
        token: its secret, which signs what it sends and fetches bundles.
        server_url: where bundles are fetched.
        broker_url: kombu URL, the same as the server's.
        work: its folder: attempts, claims, bundles, the judge's log.
        lanes: what it grades.
        judge: the command that serves as the judge's process.
        keep_attempts: leave attempt folders behind, to replay one by hand.
    """

    node: str
    token: str = field(repr=False)
    server_url: str
    broker_url: str
    work: Path
    lanes: tuple[Lane, ...]
    judge: tuple[str, ...]
    keep_attempts: bool = False


def load_config(environ: Mapping[str, str] = os.environ) -> WorkerConfig:
    """Read the environment.

    Raises:
        ValueError: a variable is missing or cannot be read; the message names it.
    """
    home = Path(environ.get("LADDER_HOME", REPOSITORY / "var")).resolve()
    node = environ.get("LADDER_NODE_NAME", "local")
    judge = environ.get("LADDER_JUDGE")
    return WorkerConfig(
        node=node,
        token=_token(environ, home / f"node-{node}.token"),
        server_url=environ.get("LADDER_SERVER_URL", "http://127.0.0.1:8000").rstrip("/"),
        broker_url=environ.get("LADDER_BROKER_URL", f"filesystem://{home / 'broker'}"),
        work=Path(environ.get("LADDER_WORK", home / "work")).resolve(),
        lanes=_lanes(environ.get("LADDER_LANES", "cpu")),
        judge=tuple(shlex.split(judge)) if judge else (sys.executable, "-P", "-m", "autograder.judge", "serve"),
        keep_attempts=environ.get("LADDER_KEEP_ATTEMPTS", "") not in {"", "0"},
    )


def _token(environ: Mapping[str, str], default: Path) -> str:
    if token := environ.get("LADDER_NODE_TOKEN"):
        return token
    path = Path(environ.get("LADDER_NODE_TOKEN_FILE", default))
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(
            f"LADDER_NODE_TOKEN is not set and {path} (LADDER_NODE_TOKEN_FILE) cannot be read: {error.strerror}"
        ) from None


def _lanes(text: str) -> tuple[Lane, ...]:
    try:
        return tuple(Lane(name.strip()) for name in text.split(","))
    except ValueError:
        raise ValueError(f"LADDER_LANES has to be some of {', '.join(Lane)}, it is {text!r}") from None
