"""What tests of several parts need: a private database, on SQLite and, where it answers on localhost, on PostgreSQL."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql
from sqlalchemy import Engine, create_engine, make_url

from server import db, migrations

POSTGRES_USERS = ("postgres", "root")
_EMPTIED = """
DO $$
DECLARE
    one record;
    found boolean;
BEGIN
    -- No references are checked while everything goes.
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', one.tablename) INTO found;
        IF found THEN EXECUTE format('DELETE FROM %I', one.tablename); END IF;
    END LOOP;
    FOR one IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL LOOP
        EXECUTE format('ALTER SEQUENCE %I RESTART', one.sequencename);
    END LOOP;
END $$
"""
"""Deletes the rows that there are: a test leaves few, and truncating some sixty tables takes over a second."""

# As in a judge (`autograder.judge.__main__`), torch has one thread here and in what tests start. With one per core, the
# threads of two test processes wait for each other in loops, which takes three times the processor time of the work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile(
    "long", max_examples=3000, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)


class _Texts(dict[Any, Any]):
    """What SQLAlchemy has compiled, by statement alone: its keys begin with the engine's own dialect."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key[1:], value)


_TEXTS = {"sqlite": _Texts(), "postgresql": _Texts()}


def _engine_that_knows(*arguments: Any, **options: Any) -> Engine:
    """An engine that has the texts of statements from all before it.

    Nearly every test has a new one, which would compile the same statements again: the 60 tests on SQLite of
    `test_submissions.py` and `test_leaderboard.py` take 10.4 s of processor time with this and 14.3 s without.
    """
    made = create_engine(*arguments, **options)
    made._compiled_cache = _TEXTS[made.dialect.name]
    return made


db.create_engine = _engine_that_knows


def _postgres() -> psycopg.Connection:
    """Connect to the server on localhost by trust, as one of the users that a machine may have."""
    problems = []
    for user in POSTGRES_USERS:
        try:
            return psycopg.connect(host="localhost", user=user, dbname="postgres", autocommit=True, connect_timeout=30)
        except psycopg.OperationalError as error:
            problems.append(f"{user}: {str(error).splitlines()[0]}")
    pytest.skip("PostgreSQL does not answer on localhost: " + "; ".join(problems))


@pytest.fixture
def fresh_postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL database, dropped after the test."""
    yield from _created_database()


@dataclass(frozen=True)
class Roles:
    """One database by two roles: the one that owns its tables, and the one that the application has."""

    owner: str
    application: str


@pytest.fixture(scope="session")
def shared_postgres() -> Iterator[Roles]:
    """A migrated PostgreSQL database."""
    for role in _created_role():
        for url in _created_database():
            migrations.upgrade(url)
            application = make_url(url).set(username=role).render_as_string()
            migrations.grant(url, application)
            yield Roles(url, application)


@pytest.fixture
def postgres_url(shared_postgres: Roles) -> Iterator[str]:
    """The URL of a migrated PostgreSQL database by the application's role, emptied after the test."""
    yield shared_postgres.application
    with psycopg.connect(shared_postgres.owner) as connection:
        connection.execute(_EMPTIED)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite database; to be copied."""
    path = tmp_path_factory.mktemp("template") / "ladder.sqlite"
    migrations.upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a migrated SQLite database of this test's own."""
    path = tmp_path / "ladder.sqlite"
    shutil.copy(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated, empty database; the test runs once on SQLite and once on PostgreSQL."""
    name = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(name)
    return url


@pytest.fixture
def owner_url(database_url: str, request: pytest.FixtureRequest) -> str:
    """The same database by the role that owns its tables, for a test that changes them."""
    if database_url.startswith("sqlite"):
        return database_url
    roles: Roles = request.getfixturevalue("shared_postgres")
    return roles.owner


def _created_role() -> Iterator[str]:
    """A role that may log in and nothing else."""
    name = f"ladder_test_role_{os.getpid()}_{secrets.token_hex(4)}"
    with _postgres() as server:
        server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        try:
            yield name
        finally:
            server.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def _created_database() -> Iterator[str]:
    name = f"ladder_test_{os.getpid()}_{secrets.token_hex(4)}"
    with _postgres() as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        # What a machine that dies would lose here is nobody's.
        server.execute(sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(sql.Identifier(name)))
        try:
            yield f"postgresql://{server.info.user}@localhost/{name}"
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
