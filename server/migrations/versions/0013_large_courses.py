"""Indexes for what pages ask of a course with a hundred thousand submissions."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_submissions_history": ("user_id", "assignment_id", "id"),
    "ix_submissions_stand": ("course_id", "state"),
    "ix_submissions_counted": ("course_id", "assignment_id", "user_id", "mode", "verdict"),
}


def upgrade() -> None:
    """Apply."""
    for name, columns in _INDEXES.items():
        op.create_index(name, "submissions", list(columns))


def downgrade() -> None:
    """Undo."""
    for name in _INDEXES:
        op.drop_index(name, "submissions")
