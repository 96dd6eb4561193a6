"""Asking the process for what is expensive, and keeping what it answered."""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any

logger = logging.getLogger(__name__)

_COMMAND = (sys.executable, "-m", "server.apart.process")
_WAIT_S = 10.0
"""Beyond the processor time that is allowed: for the machine, and for what others asked before."""
KEPT_BYTES = 32 * 2**20
"""Of answers, those asked for last."""
_NOTHING = b"null"
"""What is kept of work that took too long; each entry counts for at least `_ENTRY_BYTES`."""
_ENTRY_BYTES = 200


class GivenUpError(Exception):
    """It was not done with what it may take."""


class NoProcessError(GivenUpError):
    """There is no process to do it, or it died; it may be otherwise the next time."""


class Apart:
    """One such process, begun when it is needed and again after it had to be ended; for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._answers = _Answers()

    def ask(self, work: Callable[..., Any], *given: Any, seconds: float) -> Any:
        """What `work(*given)` returns, in JSON's types; asked a second time, the same is not done again.

        Args:
            work: a function of a module, never `None`'s; it depends on nothing but what it is given.
            seconds: of processor time.

        Raises:
            GivenUpError: it takes more than it may, or there was no turn for it.
            NoProcessError: the process could not be begun, or has died.
        """
        asked = json.dumps([seconds, [work.__module__, work.__name__, given]])
        key = hashlib.blake2b(asked.encode(), digest_size=16).digest()
        answer = self._answers.get(key)
        if answer is None:
            answer = self._done(key, asked.encode(), seconds, work.__name__)
        if answer == _NOTHING:
            raise GivenUpError(work.__name__)
        return json.loads(answer)

    def close(self) -> None:
        """End the process; may be called again."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def processor_s(self) -> float:
        """What the process that there is now has taken; for tests and figures."""
        with self._lock:
            return self._child.processor_s() if self._child else 0.0

    def _done(self, key: bytes, asked: bytes, seconds: float, name: str) -> bytes:
        if not self._lock.acquire(timeout=_WAIT_S):
            raise GivenUpError("no turn")
        try:
            # Whoever had the turn before may have asked for the same.
            answer = self._answers.get(key)
            if answer is None:
                answer = self._answered(asked, seconds + _WAIT_S)
                self._answers.keep(key, answer)
                if answer == _NOTHING:
                    logger.warning("%s was given up after %.1f s of processor time", name, seconds)
        except (OSError, EOFError) as error:
            # Perhaps the machine's fault and not the text's: it may ask again.
            self.close()
            raise NoProcessError(str(error)) from error
        finally:
            self._lock.release()
        return answer

    def _answered(self, asked: bytes, seconds: float) -> bytes:
        if self._child is None or not self._child.is_alive():
            self.close()
            self._child = _Child()
        try:
            return self._child.answer(asked, seconds)
        except TimeoutError as error:
            # By the wall's clock: the machine stood still, as processor time ends the work by itself.
            self.close()
            raise NoProcessError("no answer in time") from error


class _Answers:
    """The latest of them, up to a size; for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, key: bytes) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def keep(self, key: bytes, answer: bytes) -> None:
        with self._lock:
            self._bytes -= _size(self._kept.pop(key, None))
            self._kept[key] = answer
            self._bytes += _size(answer)
            while self._bytes > KEPT_BYTES:
                self._bytes -= _size(self._kept.popitem(last=False)[1])


def _size(answer: bytes | None) -> int:
    return 0 if answer is None else len(answer) + _ENTRY_BYTES


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

    def processor_s(self) -> float:
        self._line.send_bytes(b'[1, ["time", "process_time", []]]')
        return float(json.loads(self._line.recv_bytes()))

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._line.close()


APART = Apart()
"""Of this process."""
atexit.register(APART.close)
