"""Lines of the queue, attempts that check and measure apart, and what operating a course needs to know."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)
_LINES = {0: "submission", 10: "run", 20: "regrade", 30: "superseded"}
"""What each priority of the first revision is now called."""


def upgrade() -> None:
    """Apply."""
    _lines_of_submissions()
    _lines_of_attempts()
    _nodes()
    _what_attempts_leave()
    _what_services_say()
    _what_staff_see()


def _lines_of_submissions() -> None:
    with op.batch_alter_table("submissions") as table:
        table.drop_index("ix_submissions_queue")
        table.add_column(sa.Column("line", sa.String(length=24), nullable=False, server_default="submission"))
        table.add_column(sa.Column("work", sa.String(length=24), nullable=False, server_default="all"))
        table.add_column(sa.Column("suspect", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.create_index("ix_submissions_superseded_by_id", ["superseded_by_id"])
    for priority, line in _LINES.items():
        op.execute(
            sa.text("UPDATE submissions SET line = :line WHERE priority = :priority").bindparams(
                line=line, priority=priority
            )
        )
    with op.batch_alter_table("submissions") as table:
        table.alter_column("line", server_default=None)
        table.alter_column("work", server_default=None)
        table.alter_column("suspect", server_default=None)
        table.drop_column("priority")
        table.create_index("ix_submissions_queue", ["state", "lane", "line", "place_at"])
        table.create_index("ix_submissions_own", ["user_id", "assignment_id", "lane", "state"])
        table.add_column(sa.Column("request_key", sa.String(length=64), nullable=True))
        table.create_unique_constraint("uq_submissions_user_id", ["user_id", "request_key"])


def _lines_of_attempts() -> None:
    with op.batch_alter_table("attempts") as table:
        for name in ("lane", "line", "work"):
            table.add_column(sa.Column(name, sa.String(length=24), nullable=True))
    for name in ("lane", "line", "work"):
        # Both names are from the line above.
        op.execute(
            f"UPDATE attempts SET {name} = "  # noqa: S608
            f"(SELECT {name} FROM submissions WHERE submissions.id = attempts.submission_id)"
        )
    with op.batch_alter_table("attempts") as table:
        for name in ("lane", "line", "work"):
            table.alter_column(name, existing_type=sa.String(length=24), nullable=False)
        table.create_index("ix_attempts_lane_id", ["lane", "id"])


def _nodes() -> None:
    with op.batch_alter_table("nodes") as table:
        table.add_column(sa.Column("works", sa.JSON(), nullable=False, server_default='["all", "check", "measure"]'))
        table.add_column(sa.Column("drained_at", _AT, nullable=True))
        table.add_column(sa.Column("quarantine", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("clock_skew_s", sa.Double(), nullable=True))
    with op.batch_alter_table("nodes") as table:
        table.alter_column("works", server_default=None)
        table.alter_column("quarantine", server_default=None)
    op.create_table(
        "node_invites",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("expires_at", _AT, nullable=False),
        sa.Column("used_at", _AT, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_node_invites"),
        sa.UniqueConstraint("token_hash", name="uq_node_invites_token_hash"),
    )


def _what_attempts_leave() -> None:
    op.create_table(
        "artefacts",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("attempt_id", _BIG, nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_artefacts_attempt_id_attempts", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_artefacts"),
        sa.UniqueConstraint("attempt_id", "name", name="uq_artefacts_attempt_id"),
    )
    op.create_index("ix_artefacts_created_at", "artefacts", ["created_at"])
    op.create_table(
        "forecasts",
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("lane", sa.String(length=24), nullable=False),
        sa.Column("made_at", _AT, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("low_s", sa.Double(), nullable=False),
        sa.Column("likely_s", sa.Double(), nullable=False),
        sa.Column("high_s", sa.Double(), nullable=False),
        sa.Column("scale_low", sa.Double(), nullable=False),
        sa.Column("scale_high", sa.Double(), nullable=False),
        sa.Column("came_s", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_forecasts_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("submission_id", name="pk_forecasts"),
    )
    op.create_index("ix_forecasts_made_at", "forecasts", ["made_at"])


def _what_services_say() -> None:
    op.create_table(
        "ticks",
        sa.Column("nonce", sa.String(length=32), nullable=False),
        sa.Column("made_at", _AT, nullable=False),
        sa.Column("heard_at", _AT, nullable=True),
        sa.PrimaryKeyConstraint("nonce", name="pk_ticks"),
    )
    op.create_index("ix_ticks_made_at", "ticks", ["made_at"])
    op.create_table(
        "services",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("instance", sa.String(length=120), nullable=False),
        sa.Column("started_at", _AT, nullable=False),
        sa.Column("last_seen_at", _AT, nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_services"),
        sa.UniqueConstraint("kind", "instance", name="uq_services_kind"),
    )


def _what_staff_see() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("subject", sa.String(length=120), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_at", _AT, nullable=False),
        sa.Column("last_at", _AT, nullable=False),
        sa.Column("resolved_at", _AT, nullable=True),
        sa.Column("resolved_by_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["resolved_by_id"], ["users.id"], name="fk_alerts_resolved_by_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
    )
    op.create_index("ix_alerts_open", "alerts", ["resolved_at", "kind", "subject"])
    op.create_table(
        "rehearsals",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("machine", sa.String(length=200), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rehearsals"),
    )
    op.create_table(
        "accounts_checks",
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("checked_at", _AT, nullable=False),
        sa.Column("received", sa.Integer(), nullable=False),
        sa.Column("final", sa.Integer(), nullable=False),
        sa.Column("in_flight", sa.Integer(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("took_s", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_accounts_checks_course_id_courses", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("course_id", name="pk_accounts_checks"),
    )


def downgrade() -> None:
    """Undo."""
    for name in (
        "accounts_checks",
        "rehearsals",
        "alerts",
        "services",
        "ticks",
        "forecasts",
        "artefacts",
        "node_invites",
    ):
        op.drop_table(name)
    with op.batch_alter_table("nodes") as table:
        for name in ("clock_skew_s", "quarantine", "drained_at", "works"):
            table.drop_column(name)
    with op.batch_alter_table("attempts") as table:
        table.drop_index("ix_attempts_lane_id")
        for name in ("work", "line", "lane"):
            table.drop_column(name)
    with op.batch_alter_table("submissions") as table:
        table.drop_index("ix_submissions_own")
        table.drop_index("ix_submissions_queue")
        table.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    for priority, line in _LINES.items():
        op.execute(
            sa.text("UPDATE submissions SET priority = :priority WHERE line = :line").bindparams(
                line=line, priority=priority
            )
        )
    with op.batch_alter_table("submissions") as table:
        table.alter_column("priority", server_default=None)
        table.drop_index("ix_submissions_superseded_by_id")
        table.drop_constraint("uq_submissions_user_id", type_="unique")
        for name in ("request_key", "suspect", "work", "line"):
            table.drop_column(name)
        table.create_index("ix_submissions_queue", ["state", "lane", "priority", "place_at"])
