"""A course with its people on a private database, and the real application on a real port."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import shutil
import socket
import sqlite3
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from broker.identity import NodeKey
from server.accounts import accounts
from server.accounts.places import Place
from server.app import create_app
from server.config import Config, load_config
from server.courses import courses, sync
from server.db import Database
from server.models import Course, Lane, Language, Mode, Role, Submission, TokenScope, User
from server.submissions import submissions
from tests.doubles.machines import make_node
from tests.doubles.world import World

PASSWORD = "a long enough password"
RUNGS = Path(__file__).parent / "rungs"
COURSE = "gpu"
RUNG = "add_one"
SECRET = "SECRET-OF-THE-STAFF"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Without it every client reads all certificates of the machine."""
PATIENCE_S = 60.0


@pytest.fixture
def config(database_url: str, tmp_path: Path) -> Config:
    return make_config(database_url, tmp_path)


def make_config(database_url: str, folder: Path) -> Config:
    """Settings with rungs of their own, in `folder`."""
    shutil.copytree(RUNGS, folder / "rungs")
    return dataclasses.replace(
        load_config({"LADDER_HOME": str(folder / "home")}),
        database_url=database_url,
        assignments=folder / "rungs" / "assignments",
        reference=folder / "rungs" / "reference",
        poll_s=0.02,
        # Tests ask faster than people do; `test_rates.py` sets limits of its own.
        person_requests_per_s=0,
        person_requests_at_once=0,
        person_streams=0,
    )


@pytest.fixture
def database(config: Config) -> Iterator[Database]:
    made = Database(config.database_url)
    yield made
    made.dispose()


@dataclass(frozen=True)
class People:
    """Everybody of the course `gpu`, and a student of another one."""

    alice: User
    bob: User
    carol: User
    tom: User
    ines: User
    admin: User
    stranger: User
    course: Course


@pytest.fixture
def people(database: Database, config: Config) -> People:
    return make_people(database, config)


def make_people(database: Database, config: Config) -> People:
    """Alice and Bob are students, Carol was one and dropped the course, Tom is the TA, Ines the instructor."""
    with database.transaction() as session:
        course = courses.create_course(session, slug=COURSE, title="GPU programming")
        other = courses.create_course(session, slug="other", title="Another course")
        alice = accounts.create_user(session, email="alice@example.org", name="Alice", password=PASSWORD)
        made = {name: _like(session, alice, name) for name in ("bob", "carol", "tom", "ines", "stranger", "admin")}
        made["alice"] = alice
        made["admin"].is_admin = True
        roles = {"tom": Role.ta, "ines": Role.instructor}
        for name in ("alice", "bob", "carol", "tom", "ines"):
            courses.enrol(session, course=course, user=made[name], role=roles.get(name, Role.student))
        courses.enrol(session, course=other, user=made["stranger"], role=Role.instructor)
        courses.membership(session, made["carol"], COURSE).enrolment.dropped_at = datetime.now(UTC)
        sync.sync_assignments(session, config, course)
        return People(**made, course=course)


def _like(session: Session, user: User, name: str) -> User:
    """Another person with the same password, without the time that its hash takes."""
    made = User(
        email=f"{name}@example.org",
        name=name.title(),
        handle=f"quiet-otter-{name}",
        password_hash=user.password_hash,
        created_at=datetime.now(UTC),
    )
    session.add(made)
    session.flush()
    return made


Submit = Callable[..., Submission]


@pytest.fixture
def submit(database: Database, config: Config, people: People) -> Submit:
    assert people
    return submits(database, config)


def submits(database: Database, config: Config) -> Submit:
    """Hand something in, in a transaction of its own."""

    def call(user: User, source: bytes = b"def add_one(x, out, n): ...\n", **changes: object) -> Submission:
        arguments = {
            "assignment": RUNG, "mode": Mode.submission, "lane": Lane.cpu, "language": Language("triton"),
            "filename": "kernel.py", "now": datetime.now(UTC), "trace": "0" * 32, "config": config, **changes,
        }  # fmt: skip
        with database.transaction() as session:
            member = courses.membership(session, user, COURSE)
            return submissions.submit(session, membership=member, source=source, **arguments)

    return call


def a_token(
    session: Session, user: User, *, name: str = "test", scopes: Collection[TokenScope] = tuple(TokenScope)
) -> str:
    """A person's token, good for a day."""
    ends = datetime.now(UTC) + timedelta(days=1)
    return accounts.create_token(session, user, name=name, expires_at=ends, scopes=scopes)[1]


_routes: list[BaseRoute] = []


def an_app(config: Config) -> FastAPI:
    """An application of its own, but for its routes, which know nothing of it: FastAPI needs a quarter of a second to
    work out what each of them takes, at the first request, and most tests make a few."""
    made = create_app(config)
    if _routes:
        made.router.routes[:] = _routes
    else:
        _routes[:] = made.router.routes
    return made


@pytest.fixture
def app(config: Config) -> FastAPI:
    return an_app(config)


class Site:
    """The application behind uvicorn on a port of its own."""

    def __init__(self, url: str, stack: ExitStack, database: Database) -> None:
        self.url = url
        self._stack = stack
        self._database = database

    def browser(self, **options: object) -> httpx.Client:
        """A client without a login."""
        return self._stack.enter_context(httpx.Client(base_url=self.url, timeout=60, verify=NO_TLS, **options))

    def bearer(
        self, user: User, *, token_scopes: Collection[TokenScope] = tuple(TokenScope), **options: object
    ) -> httpx.Client:
        """A client with a new token of this person, which opens everything that they may do."""
        with self._database.transaction() as session:
            text = a_token(session, user, scopes=token_scopes)
        return self.browser(headers={"authorization": f"Bearer {text}"}, **options)

    def logged_in(self, user: User, config: Config) -> httpx.Client:
        """A client with a new login of this person, and its CSRF token as a header."""
        with self._database.transaction() as session:
            login, token = accounts.start_login(
                session, session.merge(user, load=False), place=Place("test"), agent="test", config=config
            )
        return self.browser(cookies={"ladder_login": token}, headers={"x-csrf-token": login.csrf_token})


@pytest.fixture
def site(app: FastAPI, database: Database) -> Iterator[Site]:
    with ExitStack() as stack:
        url = stack.enter_context(served(app))
        yield Site(url, stack, database)


@dataclass(frozen=True)
class Stage:
    """A course that is served, with a node and a submission of Alice's, and what its database was then.

    Attributes:
        kept: a copy of the database, in memory.
        file: where the database is, SQLite's.
        made: Alice's submission.
        node_key: of the node `node-1`.
    """

    config: Config
    database: Database
    people: People
    app: FastAPI
    url: str
    file: Path
    kept: sqlite3.Connection
    made: Submission
    node_key: NodeKey

    def site(self, stack: ExitStack) -> Site:
        """Makes clients that `stack` ends."""
        return Site(self.url, stack, self.database)

    def put_back(self) -> None:
        """Make the database what it was; whoever has it open sees that as one transaction."""
        with closing(sqlite3.connect(self.file)) as now:
            self.kept.backup(now)


@pytest.fixture(scope="module")
def served_stage(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """For many small questions about one course, which takes longer to make than to ask about."""
    folder = tmp_path_factory.mktemp("stage")
    file = folder / "ladder.sqlite"
    shutil.copy(sqlite_template, file)
    config = make_config(f"sqlite:///{file}", folder)
    database = Database(config.database_url)
    people = make_people(database, config)
    made = submits(database, config)(people.alice)
    with database.transaction() as session:
        _node, node_key = make_node(session, name="node-1", now=people.alice.created_at)
    app = create_app(config)
    with served(app) as url, closing(sqlite3.connect(":memory:", check_same_thread=False)) as kept:
        with closing(sqlite3.connect(file)) as now:
            now.backup(kept)
        yield Stage(config, database, people, app, url, file, kept, made, node_key)
    database.dispose()


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    """The small course of `tests.doubles.world` with a node that has a GPU, a TA (Tom) and an admin (Ada)."""
    made = World.make(database_url, tmp_path)
    made.add_node("forge", lanes=(Lane.h200,))
    with made.database.transaction() as session:
        made.enrol(session, "Tom", Role.ta)
        made.enrol(session, "Ada").is_admin = True
    yield made
    made.database.dispose()


class Shown(NamedTuple):
    """An answer as a person reads it: its status, its text without markup, and its markup."""

    status: int
    text: str
    html: str


Visit = Callable[..., Shown]


@pytest.fixture
def visit(world: World) -> Iterator[Visit]:
    """A page of `world` as a person sees it, by name; with `post`, the answer to a form."""
    with ExitStack() as stack:
        site = Site(stack.enter_context(served(an_app(world.config))), stack, world.database)

        def call(person: str, path: str, post: dict[str, str] | None = None) -> Shown:
            with world.database.reading() as session:
                user = session.scalars(select(User).where(User.name == person)).one()
                session.expunge_all()
            client = site.logged_in(user, world.config)
            answer = client.get(path) if post is None else client.post(path, data=post)
            text = re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text)))
            return Shown(answer.status_code, text, answer.text)

        yield call


def until(condition: Callable[[], object], patience_s: float = PATIENCE_S, look_s: float = 0.05) -> None:
    """Wait for something that happens elsewhere."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(look_s)


class _PromptServer(uvicorn.Server):
    """uvicorn that notices at once that it should end: a tenth of a second twice is much beside most tests."""

    LOOK_S = 0.01

    async def main_loop(self) -> None:
        """Until somebody says so."""
        counter = 0
        while not await self.on_tick(counter):
            counter += 1
            await asyncio.sleep(self.LOOK_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """As usual, but for the pause in which connections may end: `_idle` waits for them."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if await self._idle():
            await self.lifespan.shutdown()
        else:
            await super().shutdown(sockets)

    async def _idle(self) -> bool:
        """Wait for requests that are being answered, as long as a few looks take; whether none is left."""
        for _ in range(10):
            await asyncio.sleep(self.LOOK_S)
            if not (self.server_state.connections or self.server_state.tasks):
                return True
        return False


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The URL under which uvicorn serves `app` from a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = _PromptServer(uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
