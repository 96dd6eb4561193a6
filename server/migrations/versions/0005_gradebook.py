"""Grades, extensions, late days, overrides."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply. A course that is there already goes on as it was: nothing that is late costs points."""
    with op.batch_alter_table("courses") as table:
        table.add_column(sa.Column("late_days", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("late_days_per_assignment", sa.Integer(), nullable=True))
        table.add_column(sa.Column("late_penalty", sa.Double(), nullable=False, server_default="0"))
        table.add_column(sa.Column("slack_s", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("assignments") as table:
        table.add_column(sa.Column("grades_published_at", _AT, nullable=True))
    _audit()
    _extensions()
    _late_day_grants()
    _overrides()
    _choices()
    _grades()


def _whose(table: str) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        _reference(table, "course_id", "courses", ondelete="CASCADE"),
        _reference(table, "user_id", "users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
    ]


def _where(table: str) -> list[sa.schema.SchemaItem]:
    return [
        *_whose(table),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        _reference(table, "assignment_id", "assignments", ondelete="CASCADE"),
    ]


def _reference(table: str, column: str, other: str, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete=ondelete)


def _index(table: str, *columns: str) -> None:
    op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def _one_holds(table: str, ended: str) -> None:
    where = sa.text(f"{ended} IS NULL")
    op.create_index(
        f"uq_{table}_holds",
        table,
        ["assignment_id", "user_id"],
        unique=True,
        sqlite_where=where,
        postgresql_where=where,
    )


def _audit() -> None:
    """Say of every entry what it belongs to, as far as its subject says it."""
    with op.batch_alter_table("audit_entries") as table:
        for column in ("course_id", "assignment_id", "about_id"):
            table.add_column(sa.Column(column, sa.Integer(), nullable=True))
    _index("audit_entries", "course_id", "id")
    _index("audit_entries", "assignment_id")
    _index("audit_entries", "about_id")
    course_of_assignment = "SELECT course_id FROM assignments WHERE assignments.id = audit_entries.assignment_id"
    for column, found, subjects in (
        ("course_id", "SELECT id FROM courses WHERE 'course:' || slug = subject", "course"),
        (
            "assignment_id",
            "SELECT id FROM assignments WHERE 'assignment:' || CAST(id AS VARCHAR) = subject",
            "assignment",
        ),
        ("course_id", course_of_assignment, "assignment"),
        (
            "assignment_id",
            "SELECT assignment_id FROM submissions WHERE 'submission:' || public_id = subject",
            "submission",
        ),
        ("course_id", course_of_assignment, "submission"),
        ("about_id", "SELECT user_id FROM submissions WHERE 'submission:' || public_id = subject", "submission"),
        ("about_id", "SELECT id FROM users WHERE 'user:' || CAST(id AS VARCHAR) = subject", "user"),
    ):
        op.execute(f"UPDATE audit_entries SET {column} = ({found}) WHERE subject LIKE '{subjects}:%'")  # noqa: S608


def _extensions() -> None:
    op.create_table(
        "extensions",
        sa.Column("id", sa.Integer(), primary_key=True),
        *_where("extensions"),
        sa.Column("due_at", _AT, nullable=False),
        sa.Column("late_until", _AT, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("at", _AT, nullable=False),
        sa.Column("withdrawn_at", _AT, nullable=True),
        sa.Column("withdrawn_by_id", sa.Integer(), nullable=True),
        _reference("extensions", "actor_id", "users"),
        _reference("extensions", "withdrawn_by_id", "users"),
    )
    _one_holds("extensions", "withdrawn_at")
    _index("extensions", "course_id", "user_id")
    _index("extensions", "assignment_id")


def _late_day_grants() -> None:
    op.create_table(
        "late_day_grants",
        sa.Column("id", sa.Integer(), primary_key=True),
        *_whose("late_day_grants"),
        sa.Column("days", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("at", _AT, nullable=False),
        _reference("late_day_grants", "actor_id", "users"),
        sa.CheckConstraint("days <> 0", name=op.f("ck_late_day_grants_days")),
    )
    _index("late_day_grants", "course_id", "user_id")


def _overrides() -> None:
    op.create_table(
        "grade_overrides",
        sa.Column("id", sa.Integer(), primary_key=True),
        *_where("grade_overrides"),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("at", _AT, nullable=False),
        sa.Column("undone_at", _AT, nullable=True),
        sa.Column("undone_by_id", sa.Integer(), nullable=True),
        _reference("grade_overrides", "actor_id", "users"),
        _reference("grade_overrides", "undone_by_id", "users"),
        sa.CheckConstraint("points >= 0", name=op.f("ck_grade_overrides_points")),
    )
    _one_holds("grade_overrides", "undone_at")
    _index("grade_overrides", "course_id", "user_id")
    _index("grade_overrides", "assignment_id")


def _choices() -> None:
    op.create_table(
        "active_choices",
        sa.Column("id", sa.Integer(), primary_key=True),
        *_where("active_choices"),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.Column("withdrawn_at", _AT, nullable=True),
        _reference("active_choices", "submission_id", "submissions", ondelete="CASCADE"),
    )
    _one_holds("active_choices", "withdrawn_at")
    _index("active_choices", "course_id", "user_id")
    _index("active_choices", "assignment_id")
    _index("active_choices", "submission_id")


def _grades() -> None:
    op.create_table(
        "grades",
        sa.Column("id", _BIG, primary_key=True),
        *_where("grades"),
        sa.Column("submission_id", _BIG, nullable=True),
        sa.Column("chosen", sa.Boolean(), nullable=False),
        sa.Column("submission_points", sa.Double(), nullable=False),
        sa.Column("quiz_points", sa.Double(), nullable=False),
        sa.Column("rubric_points", sa.Double(), nullable=False),
        sa.Column("days_late", sa.Integer(), nullable=False),
        sa.Column("late_days", sa.Integer(), nullable=False),
        sa.Column("late_penalty", sa.Double(), nullable=False),
        sa.Column("override_points", sa.Double(), nullable=True),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("possible", sa.Double(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("updated_at", _AT, nullable=False),
        _reference("grades", "submission_id", "submissions", ondelete="SET NULL"),
        sa.UniqueConstraint("user_id", "assignment_id", name="uq_grades_user_id"),
    )
    _index("grades", "course_id", "assignment_id")
    _index("grades", "assignment_id")
    _index("grades", "submission_id")


def downgrade() -> None:
    """Undo."""
    for table in ("grades", "active_choices", "grade_overrides", "late_day_grants", "extensions"):
        op.drop_table(table)
    for name in ("course_id_id", "assignment_id", "about_id"):
        op.drop_index(f"ix_audit_entries_{name}", "audit_entries")
    with op.batch_alter_table("audit_entries") as batch:
        for column in ("about_id", "assignment_id", "course_id"):
            batch.drop_column(column)
    with op.batch_alter_table("assignments") as batch:
        batch.drop_column("grades_published_at")
    with op.batch_alter_table("courses") as batch:
        for column in ("slack_s", "late_penalty", "late_days_per_assignment", "late_days"):
            batch.drop_column(column)
