"""What went wrong in a submission, for the student: their own frames, none of triton's, torch's or ours.

The exception is the student's object: its text may raise, print, or be a megabyte long.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

MAX_MESSAGE = 4_000
MAX_FRAMES = 32
MAX_CODE = 400
MAX_NAME = 100

_walk = traceback.walk_tb
_line = linecache.getline


class SubmissionError(Exception):
    """A problem that the runner itself found; `kind` and `stage` as in `protocol.Raised`.

    Attributes:
        line: of the student's file where it is, 0 where that is not known or the traceback says it.
    """

    def __init__(self, stage: str, kind: str, message: str, line: int = 0) -> None:
        self.stage = stage
        self.kind = kind
        self.message = message
        self.line = line
        super().__init__(message)


def describe(error: BaseException, filename: str, wrappers: tuple[type[BaseException], ...]) -> dict[str, Any]:
    """Kind, message and frames of an exception, as `protocol.Raised` has them.

    Args:
        filename: of the student's frames.
        wrappers: exceptions by which a toolchain wraps the student's; their causes are what is reported.
    """
    try:
        return _describe(error, filename, wrappers)
    except BaseException:  # noqa: BLE001 -- the exception is an object of the student's, and may resist.
        return {"kind": "an exception", "message": "(it cannot be shown: looking at it failed)", "frames": []}


def _describe(error: BaseException, filename: str, wrappers: tuple[type[BaseException], ...]) -> dict[str, Any]:
    chain = list(_unwrap(error, wrappers))
    innermost = chain[-1]
    frames = [frame for link in chain for frame in _frames(link.__traceback__, filename)]
    if isinstance(innermost, SyntaxError):
        frames += _syntax_frame(innermost, filename)
    if isinstance(innermost, SubmissionError):
        frames += [{"line": innermost.line, "function": "", "code": ""}] if innermost.line else []
        return {"kind": innermost.kind, "message": cut(innermost.message, MAX_MESSAGE), "frames": frames[-MAX_FRAMES:]}
    kind = _guarded(lambda: type(innermost).__name__, MAX_NAME) or "an exception"
    return {"kind": kind, "message": _message(innermost), "frames": frames[-MAX_FRAMES:]}


def _unwrap(error: BaseException, wrappers: tuple[type[BaseException], ...]) -> Iterator[BaseException]:
    yield error
    for _ in range(MAX_FRAMES):
        if not isinstance(error, wrappers) or error.__cause__ is None:
            return
        error = error.__cause__
        yield error


def _frames(trace: TracebackType | None, filename: str) -> list[dict[str, Any]]:
    return [
        {
            "line": line,
            "function": cut(frame.f_code.co_name, MAX_NAME),
            "code": cut(_line(filename, line).strip(), MAX_CODE),
        }
        for frame, line in _walk(trace)
        if frame.f_code.co_filename == filename
    ]


def _syntax_frame(error: SyntaxError, filename: str) -> list[dict[str, Any]]:
    if error.filename != filename or not isinstance(error.lineno, int):
        return []
    return [
        {"line": error.lineno, "function": "<module>", "code": cut(_line(filename, error.lineno).strip(), MAX_CODE)}
    ]


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return _guarded(lambda: error.msg, MAX_MESSAGE) or ""
    text = _guarded(lambda: str(error), MAX_MESSAGE)
    return "(its text cannot be shown: making it failed)" if text is None else text


def _guarded(make: Callable[[], str], most: int) -> str | None:
    try:
        return cut(make(), most)
    except BaseException:  # noqa: BLE001 -- the student's code makes this text, and may raise anything.
        return None


def cut(text: str, most: int) -> str:
    """At most `most` characters that can be encoded, of a text whose class may be the student's."""
    plain = str.__getitem__(text, slice(most + 1))
    if len(plain) > most:
        plain = plain[: most - 1] + "…"
    return plain.encode("utf-8", "replace").decode()
