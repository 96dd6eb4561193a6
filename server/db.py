"""Engine and sessions. The commit stands here and nowhere else (a house rule checks).

SQLite is the embedded default: write-ahead log, foreign keys on, and every transaction begins `IMMEDIATE`, so that two
writers queue at the start instead of failing at the commit. PostgreSQL needs nothing special.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session, sessionmaker

BUSY_TIMEOUT_S = 20
"""How long a writer waits for another on SQLite."""


def make_engine(url: str) -> Engine:
    """Connect to the database that `url` names; SQLite's folder is made."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed.set(drivername="postgresql+psycopg"), pool_pre_ping=True, pool_size=10)
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Without its own transaction handling, sqlite3 leaves BEGIN to us.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Any) -> None:
    # A read-only unit of work asks for a deferred transaction: readers never wait in WAL mode.
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")


class Database:
    """Sessions for one database."""

    def __init__(self, url: str) -> None:
        self.engine = make_engine(url)
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        self._read = sessionmaker(self.engine.execution_options(read_only=True), expire_on_commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """One unit of work: committed at the end, rolled back by an exception.

        Then runs what `after_commit` collected, or, in a transaction of its own, what `after_rollback` did.
        """
        with self._write() as session:
            try:
                with session.begin(), _fresh_after_error(session):
                    yield session
            except BaseException:
                self._write_what_stays(session)
                raise
            for message in session.info.pop("after_commit", []):
                message()

    def _write_what_stays(self, undone: Session) -> None:
        writes = undone.info.pop("after_rollback", [])
        undone.close()
        if writes:
            with self._write.begin() as session:
                for write in writes:
                    write(session)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A unit of work that writes nothing."""
        with self._read() as session:
            with _fresh_after_error(session):
                yield session
            session.rollback()

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()


@contextmanager
def _fresh_after_error(session: Session) -> Iterator[None]:
    """On SQLite, throw the connection away when an exception passes.

    The exception's frames may hold a result that was not read to its end. SQLite then keeps the snapshot that it reads
    from, even over a rollback, and whoever gets the connection next would see the past.
    """
    try:
        yield
    except BaseException:
        if session.in_transaction() and session.get_bind().dialect.name == "sqlite":
            connection = session.connection()
            # Closing alone would keep the lock for as long as those frames live.
            connection.connection.rollback()
            connection.invalidate()
        raise


def after_commit(session: Session, message: Callable[[], object]) -> None:
    """Run `message` once the transaction is committed; a rollback forgets it."""
    session.info.setdefault("after_commit", []).append(message)


def after_rollback(session: Session, write: Callable[[Session], object]) -> None:
    """Write this if the transaction is undone, such as the failed login that an error reports; a commit forgets it."""
    session.info.setdefault("after_rollback", []).append(write)
