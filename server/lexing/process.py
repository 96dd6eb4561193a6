"""`python -m server.lexing.process DESCRIPTOR`: lexes what it is asked there, in JSON, until nobody asks any more.

In: `[code, language, seconds]`. Out: `[[kind, text], …]`, or `null` where it took more processor time than that.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from server.lexing import lexers

_MEMORY_BYTES = 2**29


class _TooLongError(Exception):
    """The time is over."""


def _give_up(_number: int, _frame: object) -> None:
    raise _TooLongError


def answer(asked: bytes) -> str:
    """One message for one message."""
    code, language, seconds = json.loads(asked)
    try:
        # Of a match, too: it looks for signals, where it runs in the main thread.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        found = [(str(kind), value) for kind, value in lexers.tokens(code, language)]
        signal.setitimer(signal.ITIMER_PROF, 0)
    except (_TooLongError, MemoryError, RecursionError):
        return "null"
    return json.dumps(found)


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
