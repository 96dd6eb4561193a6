"""Samples that attempts took, pools of them, confirmations, receipts' keys, and what nodes say about their health."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    _submissions()
    _results()
    _nodes()
    _samplings()
    _grades()


def _submissions() -> None:
    with op.batch_alter_table("submissions") as table:
        table.add_column(sa.Column("pool", sa.String(length=80), nullable=True))
        table.add_column(sa.Column("remeasured", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("confirmations", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("confirmed_at", _AT, nullable=True))
        table.add_column(sa.Column("avoid_node_id", sa.Integer(), nullable=True))
        table.create_index("ix_submissions_pool", ["pool"])
        table.create_foreign_key("fk_submissions_avoid_node_id_nodes", "nodes", ["avoid_node_id"], ["id"])
    with op.batch_alter_table("submissions") as table:
        table.alter_column("remeasured", server_default=None)
        table.alter_column("confirmations", server_default=None)


def _results() -> None:
    with op.batch_alter_table("results") as table:
        table.add_column(sa.Column("pooled", sa.JSON(), nullable=False, server_default="[]"))
        table.add_column(sa.Column("pooled_attempts", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("formula_version", sa.Integer(), nullable=False, server_default="1"))
        table.add_column(sa.Column("scored_version_id", sa.Integer(), nullable=True))
        table.create_foreign_key(
            "fk_results_scored_version_id_assignment_versions", "assignment_versions", ["scored_version_id"], ["id"]
        )
        table.add_column(sa.Column("settled", sa.Boolean(), nullable=False, server_default=sa.true()))
    with op.batch_alter_table("results") as table:
        for name in ("pooled", "pooled_attempts", "formula_version", "settled"):
            table.alter_column(name, server_default=None)


def _nodes() -> None:
    with op.batch_alter_table("nodes") as table:
        table.add_column(sa.Column("calibration", sa.JSON(), nullable=True))
        table.add_column(sa.Column("suspect_since_at", _AT, nullable=True))
        table.add_column(sa.Column("suspect_until_at", _AT, nullable=True))
        table.add_column(sa.Column("suspect_handled", sa.Boolean(), nullable=False, server_default=sa.true()))
    with op.batch_alter_table("nodes") as table:
        table.alter_column("suspect_handled", server_default=None)


def _samplings() -> None:
    op.create_table(
        "samplings",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("attempt_id", _BIG, nullable=False),
        sa.Column("pool", sa.String(length=80), nullable=False),
        sa.Column("case", sa.String(length=120), nullable=False),
        sa.Column("measurement", sa.JSON(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_samplings_attempt_id_attempts", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_samplings"),
        sa.UniqueConstraint("attempt_id", "case", name="uq_samplings_attempt_id"),
    )
    op.create_index("ix_samplings_pool", "samplings", ["pool", "id"])
    op.create_index("ix_samplings_created_at", "samplings", ["created_at"])


def _grades() -> None:
    op.create_table(
        "grade_changes",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.Column("reason", sa.String(length=24), nullable=False),
        sa.Column("before", sa.Double(), nullable=True),
        sa.Column("after", sa.Double(), nullable=True),
        sa.Column("formula_version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_grade_changes_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_grade_changes"),
    )
    op.create_index("ix_grade_changes_submission_id", "grade_changes", ["submission_id"])
    op.create_table(
        "receipt_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("public", sa.String(length=64), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("retired_at", _AT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_receipt_keys"),
        sa.UniqueConstraint("public", name="uq_receipt_keys_public"),
    )


def downgrade() -> None:
    """Undo."""
    for name in ("receipt_keys", "grade_changes", "samplings"):
        op.drop_table(name)
    # The older version knows no such line: what stands in it has its grade.
    op.execute("UPDATE submissions SET line = 'regrade' WHERE line = 'confirm'")
    op.execute("UPDATE attempts SET line = 'regrade' WHERE line = 'confirm'")
    op.execute("DELETE FROM alerts WHERE kind IN ('node_unfit', 'result_held', 'confirmation_failed')")
    with op.batch_alter_table("nodes") as table:
        for name in ("suspect_handled", "suspect_until_at", "suspect_since_at", "calibration"):
            table.drop_column(name)
    with op.batch_alter_table("results") as table:
        table.drop_constraint("fk_results_scored_version_id_assignment_versions", type_="foreignkey")
        for name in ("settled", "scored_version_id", "formula_version", "pooled_attempts", "pooled"):
            table.drop_column(name)
    with op.batch_alter_table("submissions") as table:
        table.drop_constraint("fk_submissions_avoid_node_id_nodes", type_="foreignkey")
        table.drop_index("ix_submissions_pool")
        for name in ("avoid_node_id", "confirmed_at", "confirmations", "remeasured", "pool"):
            table.drop_column(name)
