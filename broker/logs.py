"""How processes of ours log: a line for people or an object for a collector, with one id from request to result.

A request's id travels: the web tier makes it, the submission keeps it, the task carries it to the node. Whoever works
for one `follows` it, or names it in the message (`trace 0123…`); both become the field `trace`.

Whatever looks like a token or a password in a URL is struck out here, wherever it came from.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

FORMATS = ("text", "json")
STRUCK = "[struck out]"

_trace: ContextVar[str] = ContextVar("trace", default="")
_NAMED = re.compile(r"\btrace[ =]([0-9a-f]{32})\b")
_SECRETS = (
    # Our own tokens: a person's, an invitation's.
    re.compile(r"\bk[a-z]_[A-Za-z0-9_-]{16,}"),
    re.compile(r"(?i)(?<=bearer )[A-Za-z0-9._~+/=-]{8,}"),
    # The password in a URL of a database or a broker.
    re.compile(r"(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=password=)[^\s&'\"]+"),
)


@contextmanager
def follow(trace: str) -> Iterator[None]:
    """Every line from here on is about this request."""
    token = _trace.set(trace)
    try:
        yield
    finally:
        _trace.reset(token)


def configure(form: str) -> None:
    """Log to standard error from now on, all of this process, libraries included.

    Args:
        form: one of `FORMATS`.

    Raises:
        ValueError: it is none of them.
    """
    if form not in FORMATS:
        raise ValueError(f"LADDER_LOG_FORMAT has to be one of {', '.join(FORMATS)}, it is {form!r}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # Every download would be a line.
    logging.getLogger("httpx").setLevel(logging.WARNING)


def strike_out(text: str) -> str:
    """`text` without what looks like a secret."""
    for secret in _SECRETS:
        text = secret.sub(STRUCK, text)
    return text


def trace_of(record: logging.LogRecord) -> str:
    """The id of the request that a line is about, empty where it is about none."""
    named = _NAMED.search(record.getMessage())
    return named[1] if named else _trace.get()


class _Text(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        trace = trace_of(record)
        if trace and trace not in line:
            line = f"{line} trace={trace}"
        return strike_out(line)


class _Json(JsonFormatter):
    def __init__(self) -> None:
        super().__init__(
            ["levelname", "name", "message", "process"],
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="at",
            # uvicorn says the same again, for terminals.
            reserved_attrs=[*RESERVED_ATTRS, "color_message"],
        )

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        if trace := trace_of(record):
            log_data["trace"] = trace

    def format(self, record: logging.LogRecord) -> str:
        # The whole object is text by then: what is struck out holds no quote, so that it stays an object.
        return strike_out(super().format(record))
