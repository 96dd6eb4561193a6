"""Engine and sessions. The commit stands here and nowhere else (a house rule checks).

SQLite is the embedded default: write-ahead log, foreign keys on, and every transaction begins `IMMEDIATE`, so that two
writers queue at the start instead of failing at the commit. PostgreSQL needs nothing special.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from select import POLLIN, poll
from typing import Any, TypeVarTuple

import psycopg
from sqlalchemy import Engine, Row, Select, create_engine, event, func, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidatePoolError, InvalidRequestError, OperationalError
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import ConnectionPoolEntry

Columns = TypeVarTuple("Columns")

BUSY_TIMEOUT_S = 20
"""How long a writer waits for another on SQLite."""
IDLE_S = 10.0
"""A connection to PostgreSQL that nobody used for so long is tried before it is used."""

_LIVELY = {
    "connect_timeout": 20,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A database host that went away without a word is found out within half a minute, also in the middle of a query; one
that is only slow is waited for."""


def make_engine(url: str, *, statement_timeout_s: float = 0.0) -> Engine:
    """Connect to the database that `url` names; SQLite's folder is made.

    Args:
        statement_timeout_s: PostgreSQL gives a statement up that takes longer; 0: never.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        parsed = parsed.set(drivername="postgresql+psycopg")
        limits = {"options": f"-c statement_timeout={statement_timeout_s * 1000:.0f}"} if statement_timeout_s else {}
        engine = create_engine(parsed, pool_size=10, connect_args={**_LIVELY, **limits}, hide_parameters=True)
        event.listen(engine, "checkin", _note_time)
        event.listen(engine, "checkout", _see_that_it_lives)
        return engine
    if parsed.database and parsed.database != ":memory:":
        path = Path(parsed.database)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Its owner's alone from the beginning; the files that SQLite makes beside it are made like it.
        path.touch(mode=0o600)
    arguments = {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}
    engine = create_engine(parsed, connect_args=arguments, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _note_time(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info["idle_since"] = time.monotonic()


def _see_that_it_lives(connection: psycopg.Connection, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Before a connection is used again, see that PostgreSQL has not ended meanwhile; the pool then makes new ones.

    One that was used a moment ago is not asked, which would be a round trip more for every unit of work: the system
    knows whether its other end is closed. What the system may not know, such as a cable, is asked after a while.
    """
    try:
        ended = poll()
        ended.register(connection.fileno(), POLLIN)
        if ended.poll(0):
            raise InvalidatePoolError("the other end has closed it")
        if time.monotonic() - record.info.get("idle_since", math.inf) > IDLE_S:
            connection.execute("SELECT 1")
            connection.rollback()
    except psycopg.Error as error:
        raise InvalidatePoolError(str(error)) from error


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

    def __init__(self, url: str, *, statement_timeout_s: float = 0.0) -> None:
        self.engine = make_engine(url, statement_timeout_s=statement_timeout_s)
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        self._read = sessionmaker(self.engine.execution_options(read_only=True), expire_on_commit=False)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """One unit of work: committed at the end, after what `before_commit` asked for; rolled back by an exception.

        Then runs what `after_commit` collected, or, in a transaction of its own, what `after_rollback` did.
        """
        with self._write() as session:
            try:
                with session.begin(), _fresh_after_error(session):
                    yield session
                    _finish(session)
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


def is_away(error: BaseException) -> bool:
    """Whether it is the database that does not answer, not one statement that it does not take."""
    if isinstance(error, OperationalError | InterfaceError):
        return True
    return isinstance(error, DBAPIError) and error.connection_invalidated


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
            # A flush that failed has given its connection back already.
            with suppress(InvalidRequestError):
                connection = session.connection()
                # Closing alone would keep the lock for as long as those frames live.
                connection.connection.rollback()
                connection.invalidate()
        raise


def before_commit(session: Session, key: str, act: Callable[[Session], object]) -> None:
    """Do `act` when everything else of the transaction is done, as its last part; once for each key."""
    session.info.setdefault("before_commit", {})[key] = act


def _finish(session: Session) -> None:
    if not session.in_transaction():
        # Who was only rehearsing has rolled everything back.
        for key in ("before_commit", "after_commit"):
            session.info.pop(key, None)
        return
    # What is written only now may ask for acts as well.
    session.flush()
    while acts := session.info.pop("before_commit", {}):
        for act in acts.values():
            act(session)
        session.flush()


def after_commit(session: Session, message: Callable[[], object]) -> None:
    """Run `message` once the transaction is committed; a rollback forgets it."""
    session.info.setdefault("after_commit", []).append(message)


def after_rollback(session: Session, write: Callable[[Session], object]) -> None:
    """Write this if the transaction is undone, such as the failed login that an error reports; a commit forgets it."""
    session.info.setdefault("after_rollback", []).append(write)


def now(session: Session) -> datetime:
    """The one clock that the queue decides by: PostgreSQL's own; on SQLite everything is one host, whose clock it is.

    It runs on within a transaction, so that a wait for a lock is part of what it shows. A session that only reads may
    be shown another time (`show_at`).
    """
    shown: datetime | None = session.info.get("shown_at")
    if shown is not None:
        return shown
    if session.get_bind().dialect.name == "postgresql":
        theirs: datetime = session.scalars(select(func.clock_timestamp())).one()
        return theirs.astimezone(UTC)
    return datetime.now(UTC)


def plain_rows(session: Session, query: Select[*Columns]) -> Sequence[Row[*Columns]]:
    """The rows of a query for columns, without what a session does to every row; for a whole course's ten thousand."""
    session.flush()
    return session.connection().execute(query).all()


def is_reading(session: Session) -> bool:
    """Whether the session is one of `Database.reading`."""
    return bool(session.get_bind().get_execution_options().get("read_only", False))


def let_go(session: Session) -> None:
    """Give the connection of a session that only reads back, before something long that needs none.

    What was read stays; whatever is asked next begins anew. Any other session is left as it is.
    """
    if is_reading(session) and not (session.new or session.dirty or session.deleted):
        session.commit()


def show_at(session: Session, at: datetime) -> None:
    """Have `now` say `at` in this session, for who looks at how things will be then; it may only read."""
    if not is_reading(session):
        raise ValueError("only what is read can be looked at as at another time")
    session.info["shown_at"] = at
