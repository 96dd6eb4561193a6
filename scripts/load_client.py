"""A client that costs little, because it shares the cores with what it measures: HTTP/1.1 by hand over asyncio streams.

Requests are sent when their time has come, whether or not earlier ones were answered; a latency is counted from that
time, so that a server that stalls cannot hide it by keeping the client waiting.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

IDLE_S = 3.0
"""A connection that was idle for longer may have been closed by the other side; it is not used again."""
MAX_LINE = 1 << 20
"""Bytes of one line of a stream: a part of a page is one line."""
OPEN_S = 120.0
ANSWER_S = 30.0
"""After so long without an answer a request has failed."""


@dataclass(frozen=True)
class Request:
    """What is sent, byte for byte, and what it is called in the table."""

    kind: str
    data: bytes
    key: str = ""


@dataclass
class Answers:
    """What came of the requests of one kind.

    Attributes:
        seconds: from the time when each was to be sent to its last byte, of those that were answered as they should.
        problems: what went wrong otherwise, and how often.
    """

    seconds: list[float] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)

    def quantile(self, share: float) -> float:
        """In seconds; of nothing it is not a number."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")

    @property
    def failed(self) -> int:
        """How many were not answered as they should."""
        return self.problems.total()


def get(kind: str, path: str, headers: str) -> Request:
    """A GET."""
    return Request(kind, f"GET {path} HTTP/1.1\r\nHost: ladder\r\n{headers}\r\n".encode())


def post(kind: str, path: str, headers: str, content: object, key: str) -> Request:
    """A POST of JSON."""
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: ladder\r\n{headers}Content-Type: application/json\r\n"
    return Request(kind, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body, key)


def bearer(token: str) -> str:
    """The header of a command line."""
    return f"Authorization: Bearer {token}\r\n"


def cookie(token: str) -> str:
    """The header of a browser."""
    return f"Cookie: ladder_login={token}\r\n"


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Client:
    """Connections to one port, kept and used again; the last one given back goes first."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[float, Streams]] = []
        self.answers: dict[str, Answers] = {}
        self.accepted: dict[str, str] = {}
        """Public id → `key` of the request, of every submission that was accepted."""

    async def send(self, request: Request, due: float) -> None:
        """Send one request and note what came; `due` is when it was to be sent."""
        answers = self.answers.setdefault(request.kind, Answers())
        try:
            async with asyncio.timeout(ANSWER_S):
                status, body = await self._exchange(request.data)
        except TimeoutError:
            answers.problems[f"no answer in {ANSWER_S:.0f} s"] += 1
        except (OSError, EOFError, ValueError) as error:
            answers.problems[type(error).__name__] += 1
        else:
            self._note(request, answers, status, body, time.perf_counter() - due)

    def _note(self, request: Request, answers: Answers, status: int, body: bytes, seconds: float) -> None:
        if status == 201:  # noqa: PLR2004  # Created
            self.accepted[json.loads(body)["public_id"]] = request.key
        elif status != 200:  # noqa: PLR2004  # OK
            answers.problems[f"status {status}"] += 1
            return
        answers.seconds.append(seconds)

    async def _exchange(self, data: bytes) -> tuple[int, bytes]:
        reader, writer = await self._connection()
        try:
            writer.write(data)
            status, length = _head(await reader.readuntil(b"\r\n\r\n"))
            body = await reader.readexactly(length)
        except BaseException:
            writer.close()
            raise
        self._idle.append((time.perf_counter(), (reader, writer)))
        return status, body

    async def _connection(self) -> Streams:
        while self._idle:
            since, (reader, writer) = self._idle.pop()
            if time.perf_counter() - since < IDLE_S and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self._port)

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop()[1][1].close()


def _head(head: bytes) -> tuple[int, int]:
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return int(head[9:12]), int(length)


async def at_rate(client: Client, requests: Iterator[Request], per_second: float, seconds: float) -> None:
    """Send requests evenly for so long, then wait for the last answer."""
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(per_second * seconds)):
            due = began + number / per_second
            if (early := due - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            group.create_task(client.send(next(requests), due))


async def one_after_another(client: Client, requests: Iterator[Request], clients: int, seconds: float) -> None:
    """So many clients that each send as soon as they were answered."""
    end = time.perf_counter() + seconds

    async def one() -> None:
        while (now := time.perf_counter()) < end:
            await client.send(next(requests), now)

    await asyncio.gather(*(one() for _ in range(clients)))


class Watcher:
    """One open stream of server-sent events; notes when its first event after `awaited` comes."""

    def __init__(self, key: str, data: bytes) -> None:
        self.key = key
        self._data = data
        self.events = 0
        self.ended = ""
        """Why it ended; empty while it is open."""
        self.is_open = asyncio.Event()
        """It had its first event, or has ended."""
        self._awaited: float | None = None
        self.told_s: float | None = None

    def expect(self) -> None:
        """What it watches changes now."""
        self._awaited = time.perf_counter()

    async def watch(self, port: int) -> None:
        """Read until it ends or is cancelled."""
        try:
            await self._watch(port)
        except (OSError, EOFError, ValueError) as error:
            self.ended = type(error).__name__
        finally:
            self.is_open.set()

    async def _watch(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=MAX_LINE)
        try:
            writer.write(self._data)
            await self._read(reader)
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head[9:12] != b"200":
            self.ended = f"status {head[9:12].decode()}"
            return
        # A chunk is as long as the server likes; no line of ours begins inside one by chance.
        while line := await reader.readline():
            if line.startswith(b"event:"):
                self._hear()
        self.ended = "closed"

    def _hear(self) -> None:
        self.events += 1
        self.is_open.set()
        if self._awaited is not None and self.told_s is None:
            self.told_s = time.perf_counter() - self._awaited


async def opened(watchers: Sequence[Watcher]) -> None:
    """Wait until each has had its first event or has ended."""
    async with asyncio.timeout(OPEN_S):
        for watcher in watchers:
            await watcher.is_open.wait()
