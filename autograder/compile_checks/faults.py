"""What went wrong in compiling, with the student's line.

Triton says where in a kernel's own text it stopped; the student reads lines of the file. A kernel that calls another
has a chain of them, and the last is where it is wrong.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from typing import Any

from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources, PTXASError

from autograder.runner.report import cut, describe

_MOST_FRAMES = 4
_MOST_MESSAGE = 800
_MOST_CODE = 160
_ERROR_LINE = re.compile(r"(?:line \d+; error|fatal)\s*:\s*(.+)")
_line = linecache.getline

_OF_A_KERNEL = (CompilationError, PTXASError, OutOfResources)
"""What triton says of a kernel; any other exception is a flaw, of triton's or of ours."""
_OURS = (MemoryError, OSError, RecursionError)
_OF_THE_FILE = re.compile(r"line \d+; error\s*:|Entry function")
"""How ptxas begins an error that is the file's; it may also have been killed, or have had no room."""


def is_refusal(error: BaseException) -> bool:
    """Whether the file is at fault: not what this node has of memory or room, nor a compiler that was ended."""
    if isinstance(error, PTXASError):
        return _OF_THE_FILE.search(str(error)) is not None
    innermost = list(_chain(error))
    root = innermost[-1].__cause__ if innermost else None
    return isinstance(error, _OF_A_KERNEL) and not isinstance(root, _OURS)


def of_kernel(error: BaseException, function: Any, filename: str) -> dict[str, Any]:
    """Kind, message and frames of why a kernel does not compile, as in `messages.Fault`."""
    if not isinstance(error, _OF_A_KERNEL):
        return of_host(error, filename)
    try:
        frames = list(_frames(error, function, filename))[-_MOST_FRAMES:]
        return {"kind": type(error).__name__, "message": cut(_message(error), _MOST_MESSAGE), "frames": frames}
    except Exception:  # noqa: BLE001 -- names and texts in it are the student's, and may be of any kind.
        return of_host(error, filename)


def of_host(error: BaseException, filename: str) -> dict[str, Any]:
    """The same of an exception of the host code."""
    said = describe(error, filename, ())
    frames = [{**frame, "code": cut(frame["code"], _MOST_CODE)} for frame in said["frames"][-_MOST_FRAMES:]]
    return {**said, "message": cut(said["message"], _MOST_MESSAGE), "frames": frames}


def _chain(error: BaseException | None) -> Iterator[CompilationError]:
    """From the kernel that was launched to the function in which it is wrong."""
    while isinstance(error, CompilationError):
        yield error
        error = error.__cause__


def _frames(error: BaseException, function: Any, filename: str) -> Iterator[dict[str, Any]]:
    """One per function: its text is found in the file, as triton tells lines within the function's text only."""
    for link in _chain(error):
        place = getattr(link.node, "lineno", None)
        first = _first_line(link.src, filename)
        if place is None or first is None:
            continue
        line = first + place - 1
        name = function.__name__ if link is error else _defined(link.src)
        yield {"line": line, "function": cut(str(name), 100), "code": cut(_line(filename, line).strip(), _MOST_CODE)}


def _first_line(text: str | None, filename: str) -> int | None:
    """The line of the file at which a function's text begins, from its `def` on; `None` if it is not the file's."""
    if not text:
        return None
    lines = [line.strip() for line in linecache.getlines(filename)]
    wanted = [line.strip() for line in text.rstrip().split("\n")]
    places = range(len(lines) - len(wanted) + 1)
    return next((place + 1 for place in places if lines[place : place + len(wanted)] == wanted), None)


def _defined(text: str | None) -> str:
    found = re.search(r"def\s+(\w+)", text or "")
    return found[1] if found else "a function"


def _message(error: BaseException) -> str:
    """The last thing that was said, without triton's excerpt of the source."""
    if isinstance(error, CompilationError):
        said = [str(link.error_message) for link in _chain(error) if link.error_message]
        last = list(_chain(error))[-1]
        if isinstance(last, CompileTimeAssertionFailure) and not said:
            return "its assertion fails"
        return said[-1] if said else str(last.__cause__ or error)
    if isinstance(error, PTXASError):
        found = _ERROR_LINE.search(str(error))
        return found[1] if found else str(error)
    return str(error)
