"""Nodes have key pairs; what they may grade is given by staff; each of their messages is taken once.

What signed before could be made from this database, so it is dropped: every node joins again (docs/deploy.md). It may
grade what it graded before, of every course.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_NODES = sa.table("nodes", sa.column("id"), sa.column("granted_lanes", sa.JSON), sa.column("lanes", sa.JSON))
_STAMPS = sa.table("node_stamps", sa.column("node_id"), sa.column("sessions", sa.JSON), sa.column("floor_at"))
_INVITES = sa.table("node_invites")


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("nodes") as batch:
        batch.drop_column("key")
        batch.add_column(sa.Column("public_key", sa.String(length=44), nullable=True))
        batch.add_column(sa.Column("broker_hash", sa.String(length=64), nullable=True))
        batch.add_column(sa.Column("granted_lanes", sa.JSON(), nullable=True))
        batch.add_column(sa.Column("granted_courses", sa.JSON(), nullable=True))
    op.execute(_NODES.update().values(granted_lanes=_NODES.c.lanes))
    with op.batch_alter_table("nodes") as batch:
        batch.alter_column("granted_lanes", existing_type=sa.JSON(), nullable=False)
    # Codes that were not used say nothing about lanes: staff make new ones.
    op.execute(_INVITES.delete())
    with op.batch_alter_table("node_invites") as batch:
        batch.add_column(sa.Column("lanes", sa.JSON(), nullable=False))
        batch.add_column(sa.Column("courses", sa.JSON(), nullable=True))
    op.create_table(
        "node_stamps",
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("sessions", sa.JSON(), nullable=False),
        sa.Column("floor_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_node_stamps_node_id_nodes", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node_id", name="pk_node_stamps"),
    )
    rows = sa.select(_NODES.c.id, sa.literal_column("'[]'"), sa.literal_column("0"))
    op.execute(_STAMPS.insert().from_select(["node_id", "sessions", "floor_at"], rows))


def downgrade() -> None:
    """Undo; no node can sign until it has joined again."""
    op.drop_table("node_stamps")
    with op.batch_alter_table("node_invites") as batch:
        batch.drop_column("courses")
        batch.drop_column("lanes")
    with op.batch_alter_table("nodes") as batch:
        batch.drop_column("granted_courses")
        batch.drop_column("granted_lanes")
        batch.drop_column("broker_hash")
        batch.drop_column("public_key")
        batch.add_column(sa.Column("key", sa.String(length=64), server_default="", nullable=False))
    with op.batch_alter_table("nodes") as batch:
        batch.alter_column("key", existing_type=sa.String(length=64), server_default=None)
