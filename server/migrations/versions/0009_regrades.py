"""Regrades as proposals, and requests for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    op.add_column("results", sa.Column("speed_floor", sa.Double(), nullable=True))
    _regrades()
    _regrade_items()
    _trials()
    _regrade_rules()
    _regrade_requests()
    _regrade_messages()


def _regrades() -> None:
    op.create_table(
        "regrades",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("selection", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("may_lower", sa.Boolean(), nullable=False),
        sa.Column("tell", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("started_at", _AT, nullable=True),
        sa.Column("ready_at", _AT, nullable=True),
        sa.Column("ended_at", _AT, nullable=True),
        sa.ForeignKeyConstraint(["actor_id"], ["users.id"], name="fk_regrades_actor_id_users"),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_regrades_assignment_id_assignments", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_regrades_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["version_id"], ["assignment_versions.id"], name="fk_regrades_version_id_assignment_versions"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_regrades"),
    )
    op.create_index("ix_regrades_assignment_id", "regrades", ["assignment_id"])
    op.create_index("ix_regrades_course_id_id", "regrades", ["course_id", "id"])
    op.create_index("ix_regrades_state", "regrades", ["state"])


def _regrade_items() -> None:
    op.create_table(
        "regrade_items",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("regrade_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("stopped", sa.Boolean(), nullable=False),
        sa.Column("queue", sa.JSON(), nullable=False),
        sa.Column("why", sa.String(length=24), nullable=True),
        sa.Column("moves", sa.Boolean(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("before_verdict", sa.String(length=24), nullable=True),
        sa.Column("before_points", sa.Double(), nullable=True),
        sa.Column("before_ratio", sa.Double(), nullable=True),
        sa.Column("before_low", sa.Double(), nullable=True),
        sa.Column("before_high", sa.Double(), nullable=True),
        sa.Column("result_id", _BIG, nullable=True),
        sa.Column("scores", sa.JSON(), nullable=False),
        sa.Column("pool", sa.String(length=80), nullable=True),
        sa.Column("new_verdict", sa.String(length=24), nullable=True),
        sa.Column("new_points", sa.Double(), nullable=True),
        sa.Column("new_ratio", sa.Double(), nullable=True),
        sa.Column("new_low", sa.Double(), nullable=True),
        sa.Column("new_high", sa.Double(), nullable=True),
        sa.Column("speed_floor", sa.Double(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("found_at", _AT, nullable=True),
        sa.Column("applied_at", _AT, nullable=True),
        sa.Column("after", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["regrade_id"], ["regrades.id"], name="fk_regrade_items_regrade_id_regrades", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["result_id"], ["results.id"], name="fk_regrade_items_result_id_results", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_regrade_items_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_regrade_items_user_id_users"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["assignment_versions.id"], name="fk_regrade_items_version_id_assignment_versions"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_regrade_items"),
        sa.UniqueConstraint("regrade_id", "submission_id", name="uq_regrade_items_regrade_id"),
    )
    op.create_index("ix_regrade_items_regrade_id_state", "regrade_items", ["regrade_id", "state", "id"])
    op.create_index("ix_regrade_items_result_id", "regrade_items", ["result_id"])
    op.create_index("ix_regrade_items_submission_id_state", "regrade_items", ["submission_id", "state"])
    op.create_index("ix_regrade_items_user_id", "regrade_items", ["user_id"])


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("attempt_id", _BIG, nullable=False),
        sa.Column("item_id", _BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_trials_attempt_id_attempts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["item_id"], ["regrade_items.id"], name="fk_trials_item_id_regrade_items", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", name="pk_trials"),
    )
    op.create_index("ix_trials_item_id", "trials", ["item_id"])


def _regrade_rules() -> None:
    op.create_table(
        "regrade_rules",
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("per_assignment", sa.Integer(), nullable=False),
        sa.Column("per_course", sa.Integer(), nullable=False),
        sa.Column("window_days", sa.Integer(), nullable=False),
        sa.Column("cooling_off_h", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_regrade_rules_course_id_courses", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("course_id", name="pk_regrade_rules"),
    )


def _regrade_requests() -> None:
    op.create_table(
        "regrade_requests",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("retiming", sa.Boolean(), nullable=False),
        sa.Column("free", sa.Boolean(), nullable=False),
        sa.Column("retime", sa.JSON(), nullable=False),
        sa.Column("points_before", sa.Double(), nullable=True),
        sa.Column("reopened_at", _AT, nullable=True),
        sa.Column("regrade_id", sa.Integer(), nullable=True),
        sa.Column("answered_by_id", sa.Integer(), nullable=True),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("answered_at", _AT, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["answered_by_id"], ["users.id"], name="fk_regrade_requests_answered_by_id_users"),
        sa.ForeignKeyConstraint(
            ["assignment_id"],
            ["assignments.id"],
            name="fk_regrade_requests_assignment_id_assignments",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_regrade_requests_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["regrade_id"], ["regrades.id"], name="fk_regrade_requests_regrade_id_regrades", ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name="fk_regrade_requests_submission_id_submissions",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_regrade_requests_user_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_regrade_requests"),
        sa.UniqueConstraint("submission_id", name="uq_regrade_requests_submission_id"),
    )
    op.create_index("ix_regrade_requests_assignment_id", "regrade_requests", ["assignment_id"])
    op.create_index("ix_regrade_requests_course_id_state", "regrade_requests", ["course_id", "state", "id"])
    op.create_index("ix_regrade_requests_regrade_id", "regrade_requests", ["regrade_id"])
    op.create_index("ix_regrade_requests_user_id_assignment_id", "regrade_requests", ["user_id", "assignment_id"])


def _regrade_messages() -> None:
    op.create_table(
        "regrade_messages",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("request_id", _BIG, nullable=False),
        sa.Column("author_id", sa.Integer(), nullable=False),
        sa.Column("by_staff", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(length=24), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name="fk_regrade_messages_author_id_users"),
        sa.ForeignKeyConstraint(
            ["request_id"],
            ["regrade_requests.id"],
            name="fk_regrade_messages_request_id_regrade_requests",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_regrade_messages"),
    )
    op.create_index("ix_regrade_messages_request_id", "regrade_messages", ["request_id"])


def downgrade() -> None:
    """Undo."""
    op.drop_table("regrade_messages")
    op.drop_table("regrade_requests")
    op.drop_table("regrade_rules")
    op.drop_table("trials")
    op.drop_table("regrade_items")
    op.drop_table("regrades")
    with op.batch_alter_table("results") as table:
        table.drop_column("speed_floor")
