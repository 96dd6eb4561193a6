"""Lexing in a process of its own: what a student wrote holds up nobody but itself."""

from __future__ import annotations

import atexit
import hashlib
import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from multiprocessing import Pipe

from pygments.token import string_to_tokentype

from server.lexing.lexers import Token

_COMMAND = (sys.executable, "-m", "server.lexing.process")
_WAIT_S = 10.0
"""Beyond the processor time that is allowed: for the machine, and for others' sources."""
_KNOWN = 1000
"""Of sources that took too long."""


class NotLexedError(Exception):
    """It was not lexed in the time that it may take."""


class NoLexerError(NotLexedError):
    """There is no process to do it, or it died; it may be otherwise the next time."""


class Lexing:
    """One such process, begun when it is needed and again after it had to be ended; for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._too_long: OrderedDict[bytes, None] = OrderedDict()

    def tokens(self, code: str, language: str, *, seconds: float) -> Sequence[Token]:
        """Every character of the code, in order.

        Raises:
            NotLexedError: it takes more than so many seconds of processor time, or there was no turn for it.
            NoLexerError: the process could not be begun, or has died.
        """
        key = hashlib.blake2b(f"{language}\n{code}".encode(errors="surrogatepass"), digest_size=16).digest()
        if key in self._too_long or not self._lock.acquire(timeout=_WAIT_S):
            raise NotLexedError
        try:
            found = self._asked(json.dumps([code, language, seconds]).encode(), seconds + _WAIT_S)
            if found is None:
                self._remember(key)
                raise NotLexedError
        except (OSError, EOFError, ValueError) as error:
            # Perhaps the machine's fault and not the source's: it may ask again.
            self.close()
            raise NoLexerError(str(error)) from error
        finally:
            self._lock.release()
        return [(string_to_tokentype(kind.removeprefix("Token.")), value) for kind, value in found]

    def close(self) -> None:
        """End the process; may be called again."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _asked(self, asked: bytes, seconds: float) -> list[tuple[str, str]] | None:
        """The answer; `None` where there is none in time."""
        if self._child is None or not self._child.is_alive():
            self.close()
            self._child = _Child()
        try:
            answer: list[tuple[str, str]] | None = json.loads(self._child.answer(asked, seconds))
        except TimeoutError:
            self.close()
            return None
        return answer

    def _remember(self, key: bytes) -> None:
        self._too_long[key] = None
        if len(self._too_long) > _KNOWN:
            self._too_long.popitem(last=False)


class _Child:
    """The process, and the line to it."""

    def __init__(self) -> None:
        self._line, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen((*_COMMAND, str(number)), stdin=subprocess.DEVNULL, pass_fds=(number,))

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def answer(self, asked: bytes, seconds: float) -> bytes:
        self._line.send_bytes(asked)
        if not self._line.poll(seconds):
            raise TimeoutError
        return self._line.recv_bytes()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._line.close()


LEXING = Lexing()
"""Of this process."""
atexit.register(LEXING.close)
