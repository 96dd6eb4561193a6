"""What a database holds, for tests of what it must not."""

from __future__ import annotations

from sqlalchemy import inspect, text

from server.db import Database


def everything_in(database: Database) -> str:
    """Every row of every table, as text."""
    with database.reading() as session:
        names = inspect(session.connection()).get_table_names()
        return "\n".join(str(row) for name in names for row in session.execute(text(f'SELECT * FROM "{name}"')))
