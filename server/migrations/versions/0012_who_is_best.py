"""Who is best on each leaderboard, kept beside the results that it follows from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TABLE = "leaderboard_bests"
_FILL = """
INSERT INTO leaderboard_bests (assignment_id, lane, grading_hash, user_id, language, leads, submission_id,
                               uploaded_at, ratio, ratio_low, ratio_high, time_us)
SELECT assignment_id, lane, grading_hash, user_id, language, overall = 1, id,
       uploaded_at, ratio, ratio_low, ratio_high, time_us
FROM (
    SELECT s.assignment_id, s.lane, v.grading_hash, s.user_id, s.language, s.id, s.uploaded_at,
           r.ratio, r.ratio_low, r.ratio_high, r.time_us,
           row_number() OVER (
               PARTITION BY s.assignment_id, s.lane, v.grading_hash, s.user_id, s.language
               ORDER BY r.ratio, s.uploaded_at, s.id
           ) AS place,
           row_number() OVER (
               PARTITION BY s.assignment_id, s.lane, v.grading_hash, s.user_id
               ORDER BY r.ratio, s.uploaded_at, s.id
           ) AS overall
    FROM submissions AS s
    JOIN results AS r ON r.id = s.result_id
    JOIN assignment_versions AS v ON v.id = s.version_id
    WHERE s.mode = 'submission'
      AND (s.review = 'cleared' OR (s.review = 'none' AND r.settled))
      AND r.verdict = 'passed' AND r.ratio IS NOT NULL
) AS ranked
WHERE place = 1
"""
"""As `server.grading.leaderboard_entries` says it, at the time of this revision."""


def upgrade() -> None:
    """Apply; boards that are there go on with what they show."""
    op.create_table(
        _TABLE,
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("lane", sa.String(length=24), nullable=False),
        sa.Column("grading_hash", sa.String(length=80), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("language", sa.String(length=24), nullable=False),
        sa.Column("leads", sa.Boolean(), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("uploaded_at", sa.DateTime(timezone=True), nullable=False),
        *(sa.Column(name, sa.Double(), nullable=False) for name in ("ratio", "ratio_low", "ratio_high", "time_us")),
        _to("assignment_id", "assignments"),
        _to("user_id", "users"),
        _to("submission_id", "submissions"),
        sa.PrimaryKeyConstraint(
            "assignment_id", "lane", "grading_hash", "user_id", "language", name="pk_leaderboard_bests"
        ),
    )
    for column in ("user_id", "submission_id"):
        op.create_index(f"ix_{_TABLE}_{column}", _TABLE, [column])
    op.execute(sa.text(_FILL))


def _to(column: str, table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{table}.id"], name=f"fk_{_TABLE}_{column}_{table}", ondelete="CASCADE")


def downgrade() -> None:
    """Undo."""
    op.drop_table(_TABLE)
