"""What leaderboards keep: baselines of ours, and the nights in which the best are graded once more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)
_RANKED = {
    "submissions": (
        "assignment_id", "lane", "mode", "user_id", "review", "uploaded_at", "version_id", "language", "result_id",
        "course_id",
    ),
    "results": (
        "submission_id", "id", "verdict", "settled", "ratio", "ratio_low", "ratio_high", "time_us",
    ),
}  # fmt: skip


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "milestones",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("lane", sa.String(length=24), nullable=False),
        sa.Column("language", sa.String(length=24), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        _to("assignment_id", "assignments"),
        _to("version_id", "assignment_versions"),
        _to("submission_id", "submissions"),
        sa.PrimaryKeyConstraint("id", name="pk_milestones"),
        sa.UniqueConstraint("version_id", "lane", "language", "name", name="uq_milestones_version_id"),
        sa.UniqueConstraint("submission_id", name="uq_milestones_submission_id"),
    )
    op.create_index("ix_milestones_assignment_id_lane", "milestones", ["assignment_id", "lane"])
    op.create_table(
        "confirm_nights",
        sa.Column("night_at", _AT, nullable=False),
        sa.Column("queued", sa.Integer(), nullable=False),
        sa.Column("finished_at", _AT, nullable=True),
        sa.PrimaryKeyConstraint("night_at", name="pk_confirm_nights"),
    )
    for table, columns in _RANKED.items():
        op.create_index(f"ix_{table}_ranked", table, list(columns))


def _to(column: str, table: str) -> sa.ForeignKeyConstraint:
    name = f"fk_milestones_{column}_{table}"
    return sa.ForeignKeyConstraint([column], [f"{table}.id"], name=name, ondelete="CASCADE")


def downgrade() -> None:
    """Undo."""
    for table in _RANKED:
        op.drop_index(f"ix_{table}_ranked", table)
    op.drop_table("confirm_nights")
    op.drop_table("milestones")
