"""Quizzes of assignments, and what was answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "quizzes",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=80), nullable=False),
        sa.Column("questions", sa.JSON(), nullable=False),
        sa.Column("keys", sa.JSON(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_quizzes_assignment_id_assignments", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_quizzes"),
        sa.UniqueConstraint("assignment_id", "number", name="uq_quizzes_assignment_id"),
    )
    with op.batch_alter_table("assignments") as table:
        table.add_column(sa.Column("quiz_id", sa.Integer(), nullable=True))
        table.create_foreign_key("fk_assignments_quiz_id_quizzes", "quizzes", ["quiz_id"], ["id"])
    _answers()


def _answers() -> None:
    op.create_table(
        "quiz_answers",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("quiz_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("question", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("response", sa.JSON(), nullable=False),
        sa.Column("right", sa.Boolean(), nullable=False),
        sa.Column("remarked_at", _AT, nullable=True),
        sa.Column("trace", sa.String(length=32), nullable=False),
        sa.Column("uploaded_at", _AT, nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("ck_quiz_answers_number")),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name="fk_quiz_answers_course_id_courses"),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_quiz_answers_assignment_id_assignments"
        ),
        sa.ForeignKeyConstraint(["quiz_id"], ["quizzes.id"], name="fk_quiz_answers_quiz_id_quizzes"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_quiz_answers_user_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_quiz_answers"),
        sa.UniqueConstraint("assignment_id", "user_id", "question", "number", name="uq_quiz_answers_assignment_id"),
    )
    op.create_index("ix_quiz_answers_course_id_user_id", "quiz_answers", ["course_id", "user_id"])
    op.create_index("ix_quiz_answers_quiz_id", "quiz_answers", ["quiz_id"])
    op.create_index("ix_quiz_answers_user_id", "quiz_answers", ["user_id"])


def downgrade() -> None:
    """Undo."""
    op.drop_table("quiz_answers")
    with op.batch_alter_table("assignments") as table:
        table.drop_constraint("fk_assignments_quiz_id_quizzes", type_="foreignkey")
        table.drop_column("quiz_id")
    op.drop_table("quizzes")
