"""How long `/healthz` waits while one student asks for many expensive pages at once.

`python scripts/expensive_pages.py [--requests 60] [--lines 5000]` makes a course in a temporary SQLite database, serves
it on loopback, asks for the differences of sources that are dear to compare, all at once, and prints what became of the
requests, the slowest answer of `/healthz` meanwhile and the machine's load. The aim is 0.2 s.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from sqlalchemy import select

# The same small course that tests are run on.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from server.accounts import accounts
from server.accounts.places import Place
from server.models import User
from tests.doubles.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_S = 0.05
AIM_S = 0.2
VERSIONS = 8


def crafted(count: int, shift: int) -> bytes:
    """Every other line stands in few places."""
    rows = (f"x{number}=0\ns{(number + shift) % 49}=0\n" for number in range(count // 2))
    return "".join(rows).encode()


def prepare(world: World, lines: int) -> tuple[list[str], str]:
    """The addresses of differences between versions, and a student's login."""
    made = [world.submit(source=crafted(lines, 3 * number)) for number in range(VERSIONS)]
    with world.database.transaction() as session:
        alice = session.scalars(select(User).where(User.name == "Alice")).one()
        _login, cookie = accounts.start_login(
            session, alice, place=Place("127.0.0.1"), agent="expensive pages", config=world.config
        )
    return [f"/submissions/{new}/diff?from={old}" for old, new in permutations(made, 2)], cookie


@contextmanager
def served(folder: Path, url: str) -> Iterator[str]:
    """The address of `ladder web` with that database."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    environ = {**os.environ, "LADDER_HOME": str(folder), "LADDER_DATABASE_URL": url}
    command = [sys.executable, "-m", "client", "web", "--port", str(port)]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        until = time.monotonic() + 120
        while not _answers(address):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit((folder / "web.log").read_text())
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{address}/healthz", timeout=5).status_code == httpx.codes.OK
    return False


async def ask(address: str, cookie: str, paths: list[str]) -> tuple[Counter[int], list[float]]:
    """The statuses of all requests, and how long each answer of `/healthz` took meanwhile."""
    limits = httpx.Limits(max_connections=len(paths))
    async with (
        httpx.AsyncClient(base_url=address, cookies={"ladder_login": cookie}, timeout=600, limits=limits) as student,
        httpx.AsyncClient(base_url=address, timeout=600) as watcher,
    ):
        await watcher.get("/healthz")
        asked = [asyncio.create_task(student.get(path)) for path in paths]
        waits = []
        while not all(one.done() for one in asked):
            began = time.monotonic()
            await watcher.get("/healthz")
            waits.append(time.monotonic() - began)
            await asyncio.sleep(LOOK_S)
        return Counter(one.result().status_code for one in asked), waits


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--lines", type=int, default=5000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ladder.sqlite"
        world = World.make(url, Path(folder))
        paths, cookie = prepare(world, asked.lines)
        world.database.dispose()
        with served(Path(folder), url) as address:
            began = time.monotonic()
            statuses, waits = asyncio.run(ask(address, cookie, list(islice(cycle(paths), asked.requests))))
            took = time.monotonic() - began
    print(f"{asked.requests} requests, {asked.lines} lines: {dict(statuses)} in {took:.1f} s")
    print(f"/healthz: {len(waits)} looks, slowest {max(waits):.3f} s, aim {AIM_S} s; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
