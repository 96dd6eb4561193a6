"""Comments, rubrics, what staff look at and appeals, similarity; what the list of submissions is sorted by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)
_LISTS = {
    "ix_submissions_list": ["course_id", "id"],
    "ix_submissions_list_assignment": ["assignment_id", "id"],
    "ix_submissions_list_verdict": ["course_id", "verdict", "id"],
    "ix_submissions_list_review": ["course_id", "review", "id"],
}


def upgrade() -> None:
    """Apply."""
    for name, columns in _LISTS.items():
        op.create_index(name, "submissions", columns)
    _comments()
    _rubrics()
    _review()
    _similarity()
    _note_findings()


def _comments() -> None:
    op.create_table(
        "comments",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=True),
        sa.Column("writeup_version", sa.Integer(), nullable=True),
        sa.Column("section", sa.String(length=200), nullable=False),
        sa.Column("first_line", sa.Integer(), nullable=True),
        sa.Column("last_line", sa.Integer(), nullable=True),
        sa.Column("author_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("showing", sa.String(length=24), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("edited_at", _AT, nullable=True),
        sa.Column("withdrawn_at", _AT, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.CheckConstraint("first_line > 0 AND last_line >= first_line", name=op.f("ck_comments_lines")),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name="fk_comments_assignment_id_assignments"),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name="fk_comments_author_id_users"),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name="fk_comments_course_id_courses"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_comments_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_comments_user_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_comments"),
    )
    op.create_index("ix_comments_assignment_id_user_id", "comments", ["assignment_id", "user_id"])
    op.create_index("ix_comments_submission_id", "comments", ["submission_id"])
    op.create_index("ix_comments_user_id", "comments", ["user_id"])
    op.create_table(
        "comment_texts",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("comment_id", _BIG, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.ForeignKeyConstraint(["actor_id"], ["users.id"], name="fk_comment_texts_actor_id_users"),
        sa.ForeignKeyConstraint(
            ["comment_id"], ["comments.id"], name="fk_comment_texts_comment_id_comments", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_comment_texts"),
        sa.UniqueConstraint("comment_id", "number", name="uq_comment_texts_comment_id"),
    )
    op.create_table(
        "saved_comments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_saved_comments_course_id_courses", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_saved_comments"),
        sa.UniqueConstraint("course_id", "digest", name="uq_saved_comments_course_id"),
    )


def _rubrics() -> None:
    op.create_table(
        "rubric_items",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("group", sa.String(length=80), nullable=False),
        sa.Column("text", sa.String(length=500), nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("retired_at", _AT, nullable=True),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_rubric_items_assignment_id_assignments", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_rubric_items"),
    )
    op.create_index("ix_rubric_items_assignment_id", "rubric_items", ["assignment_id", "position"])
    op.create_table(
        "rubric_sheets",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=True),
        sa.Column("graded_by_id", sa.Integer(), nullable=False),
        sa.Column("graded_at", _AT, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_rubric_sheets_assignment_id_assignments", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["graded_by_id"], ["users.id"], name="fk_rubric_sheets_graded_by_id_users"),
        sa.ForeignKeyConstraint(
            ["submission_id"],
            ["submissions.id"],
            name="fk_rubric_sheets_submission_id_submissions",
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_rubric_sheets_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_rubric_sheets"),
        sa.UniqueConstraint("assignment_id", "user_id", name="uq_rubric_sheets_assignment_id"),
    )
    op.create_index("ix_rubric_sheets_submission_id", "rubric_sheets", ["submission_id"])
    op.create_index("ix_rubric_sheets_user_id", "rubric_sheets", ["user_id"])
    op.create_table(
        "rubric_marks",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("sheet_id", _BIG, nullable=False),
        sa.Column("item_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["rubric_items.id"], name="fk_rubric_marks_item_id_rubric_items"),
        sa.ForeignKeyConstraint(
            ["sheet_id"], ["rubric_sheets.id"], name="fk_rubric_marks_sheet_id_rubric_sheets", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_rubric_marks"),
        sa.UniqueConstraint("sheet_id", "item_id", name="uq_rubric_marks_sheet_id"),
    )
    op.create_index("ix_rubric_marks_item_id", "rubric_marks", ["item_id"])


def _review() -> None:
    op.create_table(
        "finding_looks",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("result_id", _BIG, nullable=False),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("looked_at", _AT, nullable=True),
        sa.Column("looked_by_id", sa.Integer(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name="fk_finding_looks_course_id_courses"),
        sa.ForeignKeyConstraint(["looked_by_id"], ["users.id"], name="fk_finding_looks_looked_by_id_users"),
        sa.ForeignKeyConstraint(
            ["result_id"], ["results.id"], name="fk_finding_looks_result_id_results", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_finding_looks_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_finding_looks"),
        sa.UniqueConstraint("result_id", name="uq_finding_looks_result_id"),
    )
    op.create_index("ix_finding_looks_open", "finding_looks", ["course_id", "looked_at", "id"])
    op.create_index("ix_finding_looks_submission_id", "finding_looks", ["submission_id"])
    op.create_table(
        "appeals",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("decided_at", _AT, nullable=True),
        sa.Column("decided_by_id", sa.Integer(), nullable=True),
        sa.Column("decision", sa.String(length=24), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name="fk_appeals_course_id_courses"),
        sa.ForeignKeyConstraint(["decided_by_id"], ["users.id"], name="fk_appeals_decided_by_id_users"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_appeals_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_appeals"),
        sa.UniqueConstraint("submission_id", name="uq_appeals_submission_id"),
    )
    op.create_index("ix_appeals_open", "appeals", ["course_id", "decided_at", "id"])


def _similarity() -> None:
    op.create_table(
        "comparisons",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("scope", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("step", sa.String(length=120), nullable=False),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("sources", sa.Integer(), nullable=False),
        sa.Column("left_out", sa.JSON(), nullable=False),
        sa.Column("created_by_id", sa.Integer(), nullable=True),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("started_at", _AT, nullable=True),
        sa.Column("heartbeat_at", _AT, nullable=True),
        sa.Column("finished_at", _AT, nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"], ["assignments.id"], name="fk_comparisons_assignment_id_assignments", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_comparisons_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["created_by_id"], ["users.id"], name="fk_comparisons_created_by_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_comparisons"),
    )
    op.create_index("ix_comparisons_assignment_id", "comparisons", ["assignment_id"])
    op.create_index("ix_comparisons_state", "comparisons", ["state", "id"])
    op.create_table(
        "compared_texts",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("comparison_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("language", sa.String(length=24), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["comparison_id"],
            ["comparisons.id"],
            name="fk_compared_texts_comparison_id_comparisons",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_compared_texts"),
    )
    op.create_index("ix_compared_texts_comparison_id", "compared_texts", ["comparison_id"])
    op.create_table(
        "similar_pairs",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("comparison_id", sa.Integer(), nullable=False),
        sa.Column("left_id", _BIG, nullable=False),
        sa.Column("right_id", _BIG, nullable=True),
        sa.Column("text_id", _BIG, nullable=True),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("left_share", sa.Double(), nullable=False),
        sa.Column("right_share", sa.Double(), nullable=False),
        sa.Column("common", sa.Integer(), nullable=False),
        sa.Column("matches", sa.JSON(), nullable=False),
        sa.Column("mark", sa.String(length=24), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("marked_by_id", sa.Integer(), nullable=True),
        sa.Column("marked_at", _AT, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["comparison_id"], ["comparisons.id"], name="fk_similar_pairs_comparison_id_comparisons", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["left_id"], ["submissions.id"], name="fk_similar_pairs_left_id_submissions", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["marked_by_id"], ["users.id"], name="fk_similar_pairs_marked_by_id_users"),
        sa.ForeignKeyConstraint(
            ["right_id"], ["submissions.id"], name="fk_similar_pairs_right_id_submissions", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["text_id"], ["compared_texts.id"], name="fk_similar_pairs_text_id_compared_texts", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_similar_pairs"),
    )
    op.create_index("ix_similar_pairs_comparison_id", "similar_pairs", ["comparison_id", "share"])
    op.create_index("ix_similar_pairs_right_id", "similar_pairs", ["right_id"])
    op.create_index("ix_similar_pairs_sides", "similar_pairs", ["left_id", "right_id"])
    op.create_index("ix_similar_pairs_text_id", "similar_pairs", ["text_id"])


def _note_findings() -> None:
    """Results that came before, with findings: a decision about them counts as a look."""
    op.execute(
        """
        INSERT INTO finding_looks (course_id, submission_id, result_id, kinds, created_at, looked_at, reason)
        SELECT s.course_id, s.id, r.id, '[]', r.created_at,
               CASE WHEN s.review IN ('cleared', 'rejected') THEN r.created_at END, ''
        FROM submissions s JOIN results r ON r.id = s.result_id
        WHERE CAST(r.payload AS TEXT) LIKE '%"findings": [{%'
        """
    )


def downgrade() -> None:
    """Undo."""
    for name in (
        "similar_pairs", "compared_texts", "comparisons", "appeals", "finding_looks", "rubric_marks", "rubric_sheets",
        "rubric_items", "saved_comments", "comment_texts", "comments",
    ):  # fmt: skip
        op.drop_table(name)
    for name in _LISTS:
        op.drop_index(name, "submissions")
