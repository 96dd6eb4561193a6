"""TCP connections of the run pass through here, so that they can be cut, delayed, and left hanging half-open.

The proxy is a process of its own: what passes must wait for nothing else. `Proxy` starts it and tells it what to do,
one JSON line for each command.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

CONNECT_S = 2.0
NICE = -10
"""It stands for a network, which does not wait for a processor. Only root may ask for that."""


# --- the process -----------------------------------------------------------------------------------------------------


class _Way:
    """What goes one way through a connection, in order: each piece with the time from which it may arrive."""

    def __init__(self, path: _Path) -> None:
        self._path = path
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._ended = False
        self._timer: asyncio.TimerHandle | None = None
        self.to: asyncio.Transport | None = None

    def put(self, data: bytes) -> None:
        """Send it on, when the route lets it."""
        now = asyncio.get_running_loop().time()
        self._waiting.append((now + self._path.delay_s, data))
        self.move()

    def end(self) -> None:
        """Nothing more comes: close the other end once everything has arrived."""
        self._ended = True
        self.move()

    def move(self) -> None:
        """Pass on what may pass now."""
        if self.to is None or self._path.hangs:
            return
        loop = asyncio.get_running_loop()
        while self._waiting and self._waiting[0][0] <= loop.time():
            self.to.write(self._waiting.popleft()[1])
        if self._waiting:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(self._waiting[0][0], self.move)
        elif self._ended:
            self.to.close()


class _End(asyncio.Protocol):
    """One end of a connection."""

    def __init__(self, path: _Path, out: _Way, back: _Way) -> None:
        self._path = path
        self._out = out
        self._back = back

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """What waited for this end goes on."""
        assert isinstance(transport, asyncio.Transport)
        self._back.to = transport
        self._path.open.add(transport)
        self._back.move()

    def data_received(self, data: bytes) -> None:
        """Pass it on."""
        self._out.put(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """The other end is told in its turn."""
        if self._back.to is not None:
            self._path.open.discard(self._back.to)
        self._out.end()


class _Path:
    """A port that leads to one of several others; the next one that answers is taken."""

    def __init__(self, upstreams: Sequence[int]) -> None:
        self._upstreams = tuple(upstreams)
        self._turn = count()
        self._ways: list[_Way] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.open: set[asyncio.Transport] = set()
        self.refuses = False
        self.hangs = False
        self.delay_s = 0.0

    def accept(self) -> asyncio.Protocol:
        """A new connection."""
        out, back = _Way(self), _Way(self)
        self._ways = [way for way in self._ways if way.to is None or not way.to.is_closing()] + [out, back]
        task = asyncio.get_running_loop().create_task(self._connect(out, back))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return _End(self, out, back)

    async def _connect(self, out: _Way, back: _Way) -> None:
        loop, first = asyncio.get_running_loop(), next(self._turn)
        for offset in range(0 if self.refuses else len(self._upstreams)):
            port = self._upstreams[(first + offset) % len(self._upstreams)]
            there = loop.create_connection(lambda: _End(self, back, out), "127.0.0.1", port)
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(there, CONNECT_S)
                return
        back.end()

    def change(self, do: str, value: Any) -> int:
        """Do what a command says; how many connections there were."""
        many = len(self.open) // 2
        if do == "cut":
            for transport in tuple(self.open):
                transport.abort()
        else:
            setattr(self, do, value)
            for way in self._ways:
                way.move()
        return many


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    paths: list[_Path] = []
    while line := await reader.readline():
        command = json.loads(line)
        if command["do"] == "add":
            path = _Path(command["value"])
            server = await loop.create_server(path.accept, "127.0.0.1", 0)
            paths.append(path)
            answer = server.sockets[0].getsockname()[1]
        else:
            answer = paths[command["route"]].change(command["do"], command["value"])
        print(json.dumps(answer), flush=True)


# --- its handle ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """A way into the proxy."""

    name: str
    index: int
    port: int


class Proxy:
    """The process, and what it is told; safe to use from several threads."""

    def __init__(self) -> None:
        repository = Path(__file__).resolve().parents[2]
        command = [sys.executable, "-m", "tests.chaos.proxy"]
        self._process = subprocess.Popen(
            command, cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._lock = threading.Lock()
        self._routes: list[Route] = []

    def _tell(self, do: str, value: object, route: int = -1) -> int:
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps({"do": do, "value": value, "route": route}) + "\n")
            self._process.stdin.flush()
            return int(json.loads(self._process.stdout.readline()))

    def add(self, name: str, upstreams: Sequence[int]) -> Route:
        """Open a route on a free port."""
        port = self._tell("add", list(upstreams))
        self._routes.append(Route(name, len(self._routes), port))
        return self._routes[-1]

    def cut(self, route: Route) -> int:
        """Break every connection of a route; how many."""
        return self._tell("cut", None, route.index)

    def refuse(self, route: Route, *, refuses: bool) -> None:
        """Let nobody in, or in again."""
        self._tell("refuses", refuses, route.index)

    def hang(self, route: Route, *, hangs: bool) -> None:
        """Let nothing through, and break nothing; or go on."""
        self._tell("hangs", hangs, route.index)

    def delay(self, route: Route, seconds: float) -> None:
        """Let everything arrive so much later."""
        self._tell("delay_s", seconds, route.index)

    def heal(self) -> None:
        """Everything passes, at once."""
        for route in self._routes:
            self.refuse(route, refuses=False)
            self.hang(route, hangs=False)
            self.delay(route, 0.0)

    def close(self) -> None:
        """Nothing passes any more."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


if __name__ == "__main__":
    with contextlib.suppress(PermissionError):
        os.nice(NICE)
    asyncio.run(_serve())
