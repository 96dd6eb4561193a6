"""One expensive page at a time for each person, and a few for all: the rest wait without a thread, or are refused.

    @router.get(…, dependencies=[Turn])

What is expensive is what shows a whole text by somebody: it is laid out, coloured or compared (`server.apart`), and
making its page takes this process a while, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from fastapi import Depends, Request

from server.errors import TooManyError
from server.http.identity import Someone

AT_ONCE = 4
"""Pages of all people that are made at once in one process; more would take no less time in all."""
MOST_WAITING = 12
"""Of one person, with the one that is made: somebody opens a list of submissions in tabs."""
PATIENCE_S = 15.0
RETRY_S = 5.0


@dataclass
class _Line:
    """One person's."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class Turns:
    """Whose turn it is, in one process."""

    def __init__(
        self, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING, patience_s: float = PATIENCE_S
    ) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._lines: dict[int, _Line] = {}
        self._most_waiting = most_waiting
        self._patience_s = patience_s

    @asynccontextmanager
    async def turn(self, person: int) -> AsyncIterator[None]:
        """Wait for one.

        Raises:
            TooManyError: this person has too many waiting, or it took too long.
        """
        line = self._lines.setdefault(person, _Line())
        if line.length >= self._most_waiting:
            raise TooManyError(
                f"{line.length} other pages of yours are still loading. Wait until they are done.",
                retry_after_s=RETRY_S,
            )
        line.length += 1
        try:
            async with AsyncExitStack() as held:
                await self._take(line, held)
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[person]

    async def _take(self, line: _Line, held: AsyncExitStack) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await held.enter_async_context(line.lock)
                await held.enter_async_context(self._all)
        except TimeoutError:
            raise TooManyError("The server is busy with other pages. Try again.", retry_after_s=RETRY_S) from None


async def _turn(request: Request, who: Someone) -> AsyncIterator[None]:
    turns: Turns = request.app.state.turns
    # Who previews a course as a student waits in their own line.
    async with turns.turn(who.login.user_id if who.login else who.user.id):
        yield


Turn = Depends(_turn, scope="function")
"""For pages that show a whole text."""
