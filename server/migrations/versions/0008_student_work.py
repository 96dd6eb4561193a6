"""Drafts, groups, write-ups."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    _drafts()
    _groups()
    _write_ups()
    op.create_table(
        "data_exports",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("started_at", _AT, nullable=False),
        sa.Column("ended_at", _AT, nullable=True),
        _to("data_exports", "user_id", "users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", name="pk_data_exports"),
    )


def _drafts() -> None:
    op.create_table(
        "drafts",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(length=24), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("saved_at", _AT, nullable=False),
        _to("drafts", "user_id", "users", ondelete="CASCADE"),
        _to("drafts", "assignment_id", "assignments", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_drafts"),
        sa.UniqueConstraint("user_id", "assignment_id", "language", name="uq_drafts_user_id"),
    )
    op.create_index("ix_drafts_assignment_id", "drafts", ["assignment_id"])


def _groups() -> None:
    op.create_table(
        "student_groups",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(length=16), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        _to("student_groups", "course_id", "courses", ondelete="CASCADE"),
        _to("student_groups", "assignment_id", "assignments", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_student_groups"),
        sa.UniqueConstraint("code", name="uq_student_groups_code"),
    )
    op.create_index("ix_student_groups_course_id", "student_groups", ["course_id"])
    op.create_index("ix_student_groups_assignment_id", "student_groups", ["assignment_id"])
    op.create_table(
        "group_members",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("joined_at", _AT, nullable=False),
        _to("group_members", "group_id", "student_groups", ondelete="CASCADE"),
        _to("group_members", "assignment_id", "assignments", ondelete="CASCADE"),
        _to("group_members", "user_id", "users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_group_members"),
        sa.UniqueConstraint("assignment_id", "user_id", name="uq_group_members_assignment_id"),
    )
    op.create_index("ix_group_members_group_id", "group_members", ["group_id"])
    op.create_index("ix_group_members_user_id", "group_members", ["user_id"])
    op.create_table(
        "group_invites",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("group_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("invited_by_id", sa.Integer(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        _to("group_invites", "group_id", "student_groups", ondelete="CASCADE"),
        _to("group_invites", "user_id", "users", ondelete="CASCADE"),
        _to("group_invites", "invited_by_id", "users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_group_invites"),
        sa.UniqueConstraint("group_id", "user_id", name="uq_group_invites_group_id"),
    )
    op.create_index("ix_group_invites_user_id", "group_invites", ["user_id"])


def _write_ups() -> None:
    op.create_table(
        "write_ups",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("public_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("format", sa.String(length=24), nullable=False),
        sa.Column("filename", sa.String(length=120), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("trace", sa.String(length=32), nullable=False),
        sa.Column("uploaded_at", _AT, nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("ck_write_ups_number")),
        _to("write_ups", "course_id", "courses"),
        _to("write_ups", "assignment_id", "assignments"),
        _to("write_ups", "user_id", "users"),
        sa.PrimaryKeyConstraint("id", name="pk_write_ups"),
        sa.UniqueConstraint("public_id", name="uq_write_ups_public_id"),
        sa.UniqueConstraint("assignment_id", "user_id", "number", name="uq_write_ups_assignment_id"),
    )
    op.create_index("ix_write_ups_course_id_user_id", "write_ups", ["course_id", "user_id"])
    op.create_index("ix_write_ups_user_id", "write_ups", ["user_id"])


def _to(table: str, column: str, other: str, *, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete=ondelete)


def downgrade() -> None:
    """Undo."""
    for table in ("data_exports", "write_ups", "group_invites", "group_members", "student_groups", "drafts"):
        op.drop_table(table)
