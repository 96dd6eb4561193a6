"""What staff decide about courses, assignments and who is in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_AT = sa.DateTime(timezone=True)
_COURSES = (
    "locks_rungs",
    "public_leaderboards",
    "keeps_erased_work",
    "retained_days",
    "revision",
    "archived_at",
    "purged_at",
)
_ASSIGNMENTS = (
    "weight",
    "submissions_per_day",
    "runs_per_hour",
    "lanes",
    "group_size",
    "solutions_released_at",
    "leaderboard_freeze_at",
    "revision",
)


def upgrade() -> None:
    """Apply. In a course that is there already rungs stay open as they were."""
    with op.batch_alter_table("courses") as table:
        table.add_column(sa.Column("locks_rungs", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("public_leaderboards", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("keeps_erased_work", sa.Boolean(), nullable=False, server_default=sa.true()))
        table.add_column(sa.Column("retained_days", sa.Integer(), nullable=True))
        table.add_column(sa.Column("revision", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("archived_at", _AT, nullable=True))
        table.add_column(sa.Column("purged_at", _AT, nullable=True))
    with op.batch_alter_table("enrolments") as table:
        table.add_column(sa.Column("student_number", sa.String(length=60), nullable=False, server_default=""))
    with op.batch_alter_table("assignments") as table:
        table.add_column(sa.Column("weight", sa.Double(), nullable=False, server_default="1"))
        table.add_column(sa.Column("submissions_per_day", sa.Integer(), nullable=True))
        table.add_column(sa.Column("runs_per_hour", sa.Integer(), nullable=True))
        table.add_column(sa.Column("lanes", sa.JSON(none_as_null=True), nullable=True))
        table.add_column(sa.Column("group_size", sa.Integer(), nullable=False, server_default="1"))
        table.add_column(sa.Column("solutions_released_at", _AT, nullable=True))
        table.add_column(sa.Column("leaderboard_freeze_at", _AT, nullable=True))
        table.add_column(sa.Column("revision", sa.Integer(), nullable=False, server_default="0"))
    _ways_in()
    _previews()


def _ways_in() -> None:
    op.create_table(
        "course_invites",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("start", sa.String(length=12), nullable=False),
        sa.Column("role", sa.String(length=24), nullable=False),
        sa.Column("section", sa.String(length=60), nullable=False),
        sa.Column("most_uses", sa.Integer(), nullable=True),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("created_by_id", sa.Integer(), nullable=True),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("expires_at", _AT, nullable=False),
        sa.Column("revoked_at", _AT, nullable=True),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_course_invites_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["created_by_id"], ["users.id"], name="fk_course_invites_created_by_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_course_invites"),
        sa.UniqueConstraint("token_hash", name="uq_course_invites_token_hash"),
    )
    op.create_index("ix_course_invites_course_id", "course_invites", ["course_id"])
    op.create_table(
        "roster_imports",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("public_id", sa.String(length=26), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("uploaded_by_id", sa.Integer(), nullable=True),
        sa.Column("filename", sa.String(length=120), nullable=False),
        sa.Column("people", sa.JSON(), nullable=False),
        sa.Column("troubles", sa.JSON(), nullable=False),
        sa.Column("passed_over", sa.JSON(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("applied_at", _AT, nullable=True),
        sa.Column("outcome", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_roster_imports_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["uploaded_by_id"], ["users.id"], name="fk_roster_imports_uploaded_by_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_roster_imports"),
        sa.UniqueConstraint("public_id", name="uq_roster_imports_public_id"),
    )
    op.create_index("ix_roster_imports_course_id", "roster_imports", ["course_id"])


def _previews() -> None:
    op.create_table(
        "previews",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("login_id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("student_id", sa.Integer(), nullable=False),
        sa.Column("shown_at", _AT, nullable=True),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("expires_at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["login_id"], ["login_sessions.id"], name="fk_previews_login_id_login_sessions", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_previews_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["student_id"], ["users.id"], name="fk_previews_student_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_previews"),
        sa.UniqueConstraint("token_hash", name="uq_previews_token_hash"),
    )
    for column in ("login_id", "course_id", "student_id"):
        op.create_index(f"ix_previews_{column}", "previews", [column])


def downgrade() -> None:
    """Undo."""
    for name in ("previews", "roster_imports", "course_invites"):
        op.drop_table(name)
    for name, columns in (("assignments", _ASSIGNMENTS), ("enrolments", ("student_number",)), ("courses", _COURSES)):
        with op.batch_alter_table(name) as table:
            for column in columns:
                table.drop_column(column)
