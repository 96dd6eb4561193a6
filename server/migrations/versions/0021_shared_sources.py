"""Notes and sources that are open on leaderboards, and who can read them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("courses") as table:
        table.add_column(sa.Column("source_sharing", sa.String(length=24), nullable=False, server_default="members"))
    op.create_table(
        "shared_sources",
        sa.Column("submission_id", _BIG, autoincrement=False, nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("public_id", sa.String(length=26), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("by_staff", sa.Boolean(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name="fk_shared_sources_submission_id_submissions",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_shared_sources_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("submission_id", name="pk_shared_sources"),
        sa.UniqueConstraint("public_id", name="uq_shared_sources_public_id"),
    )
    op.create_index("ix_shared_sources_user_id", "shared_sources", ["user_id"])


def downgrade() -> None:
    """Undo."""
    op.drop_table("shared_sources")
    with op.batch_alter_table("courses") as table:
        table.drop_column("source_sharing")
