"""What Alembic executes for every command; the connection, and its transaction, are the caller's."""

from __future__ import annotations

from alembic import context

from server.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
)
context.run_migrations()
