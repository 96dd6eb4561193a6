"""`python -m server.apart.process DESCRIPTOR`: does what it is asked there, in JSON, until nobody asks any more.

In: `[seconds, [module, function, arguments]]`. Out: what the function returned, or `null` where that took more
processor time or memory, or is larger, than it may.
"""

from __future__ import annotations

import importlib
import json
import resource
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

_MEMORY_BYTES = 2**29
MAX_ANSWER_BYTES = 4 * 2**20


class _TooLongError(BaseException):
    """The time is over; no broad `except` of the work may keep it."""


def _give_up(_number: int, _frame: object) -> None:
    raise _TooLongError


def answer(asked: bytes) -> str:
    """One message for one message."""
    seconds, (module, name, given) = json.loads(asked)
    # Loading it is none of its time.
    work = getattr(importlib.import_module(module), name)
    try:
        # Of a match, too: it looks for signals, where it runs in the main thread.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        said = json.dumps(work(*given))
        signal.setitimer(signal.ITIMER_PROF, 0)
    except (_TooLongError, MemoryError, RecursionError, ValueError, LookupError, TypeError):
        # What a lexer or a parser raises of a text, it raises of it again.
        return "null"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return said if len(said) <= MAX_ANSWER_BYTES else "null"


def main() -> None:
    """Until whoever asks hangs up."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    line: Connection[bytes, bytes] = Connection(int(sys.argv[1]))
    with suppress(EOFError):
        while True:
            line.send_bytes(answer(line.recv_bytes()).encode())


if __name__ == "__main__":
    main()
