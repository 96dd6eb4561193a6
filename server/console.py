"""What the commands of the server's own console share: one command is one transaction, and a refusal is one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from server.config import Config, load_config
from server.db import Database
from server.errors import LadderError


def read_config() -> Config:
    """The configuration; what is wrong with it ends the command."""
    try:
        return load_config()
    except ValueError as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def opened(config: Config) -> Iterator[Database]:
    """The database, for a command that needs several transactions; what is wrong with it ends the command."""
    database = Database(config.database_url)
    try:
        yield database
    except LadderError as error:
        raise click.ClickException(error.message) from None
    except (OperationalError, ProgrammingError) as error:
        raise click.ClickException(
            f"The database cannot be used ({error.orig}). Does it exist, and did `ladder admin migrate` run?"
        ) from None
    finally:
        database.dispose()


@contextmanager
def work() -> Iterator[tuple[Session, Config]]:
    """One command is one transaction."""
    config = read_config()
    with opened(config) as database, database.transaction() as session:
        yield session, config
