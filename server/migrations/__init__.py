"""Move a database's schema up and down. Alembic is run from here: it has no file of settings.

On SQLite foreign keys are off while a migration runs: batch mode makes a table anew and drops the old one, which would
delete whatever refers to it. They are checked before the transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, make_url

from server.db import make_engine
from server.models import Base

HEAD = "head"
BASE = "base"


def upgrade(database_url: str, revision: str = HEAD) -> None:
    """Bring the schema up to `revision`, in one transaction."""
    _run(database_url, lambda config: command.upgrade(config, revision))


def downgrade(database_url: str, revision: str) -> None:
    """Take the schema down to `revision`, in one transaction; what newer revisions stored is lost."""
    _run(database_url, lambda config: command.downgrade(config, revision))


def grant(owner_url: str, application_url: str) -> None:
    """Let the application's role read and write rows of every table there is now, and do nothing else.

    It makes, changes and empties no table, and nobody but it and the owner gets in.
    """
    named = make_url(application_url)
    if named.username is None or named.username == make_url(owner_url).username:
        raise ValueError("the application's role is the one that owns the tables")
    with _connection(owner_url) as connection, connection.begin():
        quote = connection.dialect.identifier_preparer.quote_identifier
        role, database = quote(named.username), quote(str(connection.engine.url.database))
        for statement in _GRANTS:
            connection.exec_driver_sql(statement.format(role=role, database=database))


_GRANTS = (
    "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
    "REVOKE ALL ON DATABASE {database} FROM {role}",
    "GRANT CONNECT ON DATABASE {database} TO {role}",
    "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    "GRANT USAGE ON SCHEMA public TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}",
    # Which revision the tables are at is the owner's to say.
    "REVOKE INSERT, UPDATE, DELETE ON alembic_version FROM {role}",
)


def current(database_url: str) -> str | None:
    """The revision that the database is at, `None` where it is empty."""
    with _connection(database_url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def newest() -> str:
    """The revision that this version of the program works with."""
    head = ScriptDirectory(str(Path(__file__).parent)).get_current_head()
    if head is None:
        raise RuntimeError("there are no migrations beside this program")
    return head


def differences(database_url: str) -> list[object]:
    """What the tables of `server.models` have that the database has not, or the other way round."""
    with _connection(database_url) as connection:
        return list(compare_metadata(MigrationContext.configure(connection), Base.metadata))


def configuration(connection: Connection) -> Config:
    """Alembic's settings for work on this connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _run(database_url: str, work: Callable[[Config], None]) -> None:
    with _connection(database_url) as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:
            _switch_foreign_keys_off(connection)
        with connection.begin():
            work(configuration(connection))
            if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first()):
                raise RuntimeError(f"the migration left a row of {broken[0]} that refers to nothing")


def _switch_foreign_keys_off(connection: Connection) -> None:
    # By the driver: inside of a transaction, which SQLAlchemy would begin, SQLite ignores this.
    cursor = connection.connection.cursor()
    cursor.execute("PRAGMA foreign_keys=OFF")
    cursor.close()


@contextmanager
def _connection(database_url: str) -> Iterator[Connection]:
    engine = make_engine(database_url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
