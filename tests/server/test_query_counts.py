"""No page asks the database more often of a larger course: every address there is, by whoever may look."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from sqlalchemy import event
from starlette.types import Receive, Scope, Send

from scripts.every_page import LEFT_OUT, Asker, addresses, askers, unknown
from scripts.large_course import Size
from scripts.seed_large import seed
from server import migrations
from server.accounts import accounts
from server.accounts.places import Place
from server.app import create_app
from server.config import Config, load_config
from server.db import Database
from server.models import User
from server.reconciliation.checks import broken_rules
from tests.server.conftest import NO_TLS, served, until

SIZES = (Size(students=6, rungs=3, submissions=120), Size(students=18, rungs=6, submissions=700))
BROKEN_OFF = 599
unknown_to_us: set[str] = set()
"""Routes with a parameter that has no value in scripts/every_page.py."""


@dataclass(frozen=True)
class Look:
    """The status of an answer and what the database was asked for it."""

    status: int
    asked: tuple[str, ...]


Looks = dict[tuple[str, str], Look]
"""By role and route."""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> list[Looks]:
    """At each size. Both are of now: at another time of a course a page asks for something else."""
    now = datetime.now(UTC)
    return [_looks(tmp_path_factory.mktemp("large"), size, now) for size in SIZES]


def _looks(home, size: Size, now: datetime) -> Looks:
    config = load_config({"LADDER_HOME": str(home), "LADDER_DATABASE_URL": f"sqlite:///{home / 'large.db'}"})
    migrations.upgrade(config.database_url)
    database = Database(config.database_url)
    try:
        with database.transaction() as session:
            course = seed(session, config, size, now=now)
        with database.reading() as session:
            assert broken_rules(session) == []
        return _looked_at(config, database, course)
    finally:
        database.dispose()


def _looked_at(config: Config, database: Database, course) -> Looks:
    app = create_app(config)
    busy = _Busy(app)
    found = {}
    with served(busy) as url, _statements(app) as statements:
        with database.reading() as session:
            everybody = askers(session, course)
            student = everybody[1].user_id
            filled = addresses(app, session, course, student)
            unknown_to_us.update(unknown(app, session, course, student))
        for asker in (item for item in everybody if item.role in {"student", "instructor"}):
            with _browser(url, database, config, asker) as browser:
                for path, address in filled.items():
                    if address is None:
                        continue
                    # The first look may write down that somebody is here, and fills caches.
                    _status(browser, address, busy)
                    looks = []
                    for _ in range(2):
                        # Of two looks one may fall on the minute in which it is written down again.
                        statements.clear()
                        looks.append(Look(_status(browser, address, busy), tuple(statements)))
                    found[asker.role, path] = min(looks, key=lambda look: len(look.asked))
    return found


def _status(browser: httpx.Client, address: str, busy: _Busy) -> int:
    """Of the answer, once what follows it has ended; one that is broken off is an error of ours as well."""
    try:
        return browser.get(address).status_code
    except httpx.TransportError:
        return BROKEN_OFF
    finally:
        busy.wait()


class _Busy:
    """An application that knows whether it still does something, such as what an answer left for later."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._calls = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        counts = scope["type"] == "http"
        self._calls += counts
        try:
            await self._app(scope, receive, send)
        finally:
            self._calls -= counts

    def wait(self) -> None:
        """Until nothing is being done."""
        until(lambda: not self._calls, look_s=0.001)


@contextmanager
def _browser(url: str, database: Database, config: Config, asker: Asker) -> Iterator[httpx.Client]:
    """A page's cookie and a program's token for the same person."""
    cookies = {}
    if asker.user_id is not None:
        with database.transaction() as session:
            user = session.get_one(User, asker.user_id)
            _login, token = accounts.start_login(session, user, place=Place("test"), agent="test", config=config)
            cookies = {"ladder_login": token}
    with httpx.Client(base_url=url, cookies=cookies, timeout=60, verify=NO_TLS) as client:
        yield client


@contextmanager
def _statements(app: FastAPI) -> Iterator[list[str]]:
    engine, statements = app.state.database.engine, []

    def note(_connection, _cursor, statement, *_rest) -> None:
        # The process says every ten seconds that it is alive, whatever is asked.
        if threading.current_thread().name != "presence":
            statements.append(statement)

    with ExitStack() as stack:
        event.listen(engine, "before_cursor_execute", note)
        stack.callback(event.remove, engine, "before_cursor_execute", note)
        yield statements


@pytest.mark.full("slow")
def test_every_page_has_an_address(counted):
    assert counted
    assert unknown_to_us == set(), "give their parameters a value in scripts/every_page.py"


@pytest.mark.full("slow")
def test_no_page_fails(counted):
    for found in counted:
        assert {key: look.status for key, look in found.items() if look.status >= 500} == {}


@pytest.mark.full("slow")
def test_most_pages_are_really_looked_at(counted):
    small, large = counted
    # The small one may lack what only few students have, such as a regrade request.
    assert small.keys() <= large.keys()
    assert len(small) > len(large) - 10
    for role in ("student", "instructor"):
        shown = [path for (who, path), look in large.items() if who == role and look.status == 200]
        assert len(shown) > 25, role


@pytest.mark.full("slow")
def test_a_larger_course_costs_no_more_queries(counted):
    small, large = counted
    both = {key: (small[key], look) for key, look in large.items() if key in small}
    more = {
        " ".join(key): Counter(many.asked) - Counter(few.asked)
        for key, (few, many) in both.items()
        if many.status == few.status and len(many.asked) > len(few.asked)
    }
    assert more == {}


def test_what_is_left_out_is_there(tmp_path):
    app = create_app(load_config({"LADDER_HOME": str(tmp_path)}))
    paths = {route.path for route in iter_route_contexts(app.routes)}
    assert set(LEFT_OUT) <= paths
