"""Configuration of one worker: read once from the environment, at the top."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.contract import Lane, Work
from broker.access import complete_url
from broker.envelope import key_of

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class WorkerConfig:
    """Who this node is and where its things are.

    Attributes:
        node: its name; its queue is `grade.<node>`, which one worker consumes.
        token: its secret, which signs what it sends and fetches bundles.
        server_url: where bundles are fetched.
        broker_url: kombu URL; where it names a user without a password, the node's own password was put in.
        work: its folder: attempts, claims, bundles, the judge's log.
        lanes: what it grades.
        works: what of a grading it does.
        judge: the command that serves as the judge's process.
        keep_attempts: leave attempt folders behind, to replay one by hand.
        drain_s: how long the attempt at hand may go on when the node is asked to stop, before it is handed back.
        min_free_mb: with less room on the disk of `work`, in MiB, it takes nothing.
        log_format: `text` or `json`.
    """

    node: str
    token: str = field(repr=False)
    server_url: str
    broker_url: str = field(repr=False)
    work: Path
    lanes: tuple[Lane, ...]
    judge: tuple[str, ...]
    keep_attempts: bool = False
    works: tuple[Work, ...] = tuple(Work)
    drain_s: float = 30.0
    min_free_mb: int = 500
    log_format: str = "text"


def load_config(environ: Mapping[str, str] = os.environ) -> WorkerConfig:
    """Read the environment.

    Raises:
        ValueError: a variable is missing or cannot be read; the message names it.
    """
    home = Path(environ.get("LADDER_HOME", REPOSITORY / "var")).resolve()
    node = environ.get("LADDER_NODE_NAME", "local")
    judge = environ.get("LADDER_JUDGE")
    token = _token(environ, home / f"node-{node}.token")
    broker_url = environ.get("LADDER_BROKER_URL", f"filesystem://{home / 'broker'}")
    return WorkerConfig(
        node=node,
        token=token,
        server_url=environ.get("LADDER_SERVER_URL", "http://127.0.0.1:8000").rstrip("/"),
        broker_url=complete_url(broker_url, key_of(token)),
        work=Path(environ.get("LADDER_WORK", home / "work")).resolve(),
        lanes=_lanes(environ.get("LADDER_LANES", "cpu")),
        judge=tuple(shlex.split(judge)) if judge else (sys.executable, "-P", "-m", "autograder.judge", "serve"),
        keep_attempts=environ.get("LADDER_KEEP_ATTEMPTS", "") not in {"", "0"},
        works=_works(environ.get("LADDER_WORKS", ",".join(Work))),
        drain_s=_number(environ, "LADDER_DRAIN_S", 30.0),
        min_free_mb=int(_number(environ, "LADDER_MIN_FREE_MB", 500)),
        log_format=environ.get("LADDER_LOG_FORMAT", "text"),
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


def _works(text: str) -> tuple[Work, ...]:
    try:
        return tuple(Work(name.strip()) for name in text.split(","))
    except ValueError:
        raise ValueError(f"LADDER_WORKS has to be some of {', '.join(Work)}, it is {text!r}") from None


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} has to be a number from 0, it is {text!r}")
    return number
