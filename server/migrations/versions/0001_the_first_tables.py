"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_CIRCLES = (
    ("fk_assignments_version_id_assignment_versions", "assignments", "version_id", "assignment_versions"),
    ("fk_submissions_result_id_results", "submissions", "result_id", "results"),
)
"""Tables that refer to each other: SQLite takes the reference with the table, PostgreSQL once both are there."""


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "bundles",
        sa.Column("hash", sa.String(length=80), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_bundles"),
    )
    op.create_table(
        "courses",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.String(length=60), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("timezone", sa.String(length=60), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_courses"),
        sa.UniqueConstraint("slug", name="uq_courses_slug"),
    )
    op.create_table(
        "login_attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_login_attempts"),
    )
    op.create_index("ix_login_attempts_address", "login_attempts", ["address"])
    op.create_index("ix_login_attempts_email", "login_attempts", ["email"])
    op.create_table(
        "nodes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("lanes", sa.JSON(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
        sa.UniqueConstraint("name", name="uq_nodes_name"),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("handle", sa.String(length=40), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email", name="uq_users_email"),
        sa.UniqueConstraint("handle", name="uq_users_handle"),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("start", sa.String(length=12), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_api_tokens_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_api_tokens_token_hash"),
    )
    op.create_index("ix_api_tokens_user_id", "api_tokens", ["user_id"])
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("slug", sa.String(length=60), nullable=False),
        sa.Column("rung", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("open_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("late_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_assignments_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["version_id"],
            ["assignment_versions.id"],
            name="fk_assignments_version_id_assignment_versions",
            use_alter=True,
        ),
        sa.PrimaryKeyConstraint("id", name="pk_assignments"),
        sa.UniqueConstraint("course_id", "slug", name="uq_assignments_course_id"),
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor_id", sa.Integer(), nullable=True),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("subject", sa.String(length=120), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["actor_id"], ["users.id"], name="fk_audit_entries_actor_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_audit_entries"),
    )
    op.create_index("ix_audit_entries_actor_id", "audit_entries", ["actor_id"])
    op.create_index("ix_audit_entries_at", "audit_entries", ["at"])
    op.create_index("ix_audit_entries_subject", "audit_entries", ["subject"])
    op.create_table(
        "enrolments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=24), nullable=False),
        sa.Column("section", sa.String(length=60), nullable=False),
        sa.Column("show_name", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("dropped_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_enrolments_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_enrolments_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_enrolments"),
        sa.UniqueConstraint("course_id", "user_id", name="uq_enrolments_course_id"),
    )
    op.create_index("ix_enrolments_user_id", "enrolments", ["user_id"])
    op.create_table(
        "login_sessions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("csrf_token", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("agent", sa.String(length=200), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_login_sessions_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_login_sessions"),
        sa.UniqueConstraint("token_hash", name="uq_login_sessions_token_hash"),
    )
    op.create_index("ix_login_sessions_user_id", "login_sessions", ["user_id"])
    op.create_table(
        "assignment_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("bundle_hash", sa.String(length=80), nullable=False),
        sa.Column("grading_hash", sa.String(length=80), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("handout", sa.Text(), nullable=False),
        sa.Column("starters", sa.JSON(), nullable=False),
        sa.Column("milestones", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["assignment_id"],
            ["assignments.id"],
            name="fk_assignment_versions_assignment_id_assignments",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["bundle_hash"], ["bundles.hash"], name="fk_assignment_versions_bundle_hash_bundles"),
        sa.PrimaryKeyConstraint("id", name="pk_assignment_versions"),
        sa.UniqueConstraint("assignment_id", "number", name="uq_assignment_versions_assignment_id"),
    )
    op.create_table(
        "submissions",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("public_id", sa.String(length=26), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("version_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("mode", sa.String(length=24), nullable=False),
        sa.Column("lane", sa.String(length=24), nullable=False),
        sa.Column("language", sa.String(length=24), nullable=False),
        sa.Column("filename", sa.String(length=120), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("source_hash", sa.String(length=80), nullable=False),
        sa.Column("trace", sa.String(length=32), nullable=False),
        sa.Column("uploaded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("phase", sa.String(length=24), nullable=True),
        sa.Column("verdict", sa.String(length=24), nullable=True),
        sa.Column("review", sa.String(length=24), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("place_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("superseded_by_id", _BIG, nullable=True),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.Column("result_id", _BIG, nullable=True),
        sa.Column("points", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.CheckConstraint("number > 0", name=op.f("ck_submissions_number")),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name="fk_submissions_assignment_id_assignments"),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name="fk_submissions_course_id_courses"),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], name="fk_submissions_result_id_results", use_alter=True),
        sa.ForeignKeyConstraint(
            ["superseded_by_id"], ["submissions.id"], name="fk_submissions_superseded_by_id_submissions"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_submissions_user_id_users"),
        sa.ForeignKeyConstraint(
            ["version_id"], ["assignment_versions.id"], name="fk_submissions_version_id_assignment_versions"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_submissions"),
        sa.UniqueConstraint("assignment_id", "user_id", "mode", "number", name="uq_submissions_assignment_id"),
        sa.UniqueConstraint("public_id", name="uq_submissions_public_id"),
    )
    op.create_index("ix_submissions_assignment_id_lane", "submissions", ["assignment_id", "lane", "mode"])
    op.create_index("ix_submissions_course_id", "submissions", ["course_id"])
    op.create_index("ix_submissions_queue", "submissions", ["state", "lane", "priority", "place_at"])
    op.create_index("ix_submissions_source_hash", "submissions", ["source_hash"])
    op.create_index("ix_submissions_user_id", "submissions", ["user_id"])
    op.create_table(
        "attempts",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("public_id", sa.String(length=26), nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("node_id", sa.Integer(), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("dispatched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("phases", sa.JSON(), nullable=False),
        sa.Column("live_cases", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_attempts_node_id_nodes"),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_attempts_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sa.UniqueConstraint("public_id", name="uq_attempts_public_id"),
        sa.UniqueConstraint("submission_id", "fence", name="uq_attempts_submission_id"),
    )
    op.create_index("ix_attempts_node_id", "attempts", ["node_id"])
    op.create_index("ix_attempts_state_lease", "attempts", ["state", "lease_expires_at"])
    op.create_index("ix_attempts_submission_id", "attempts", ["submission_id"])
    op.create_table(
        "results",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("attempt_id", _BIG, nullable=False),
        sa.Column("submission_id", _BIG, nullable=False),
        sa.Column("verdict", sa.String(length=24), nullable=False),
        sa.Column("explanation", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("ratio_low", sa.Double(), nullable=True),
        sa.Column("ratio_high", sa.Double(), nullable=True),
        sa.Column("time_us", sa.Double(), nullable=True),
        sa.Column("correctness_points", sa.Double(), nullable=False),
        sa.Column("speed_points", sa.Double(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_results_attempt_id_attempts", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name="fk_results_submission_id_submissions", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_results"),
        sa.UniqueConstraint("attempt_id", name="uq_results_attempt_id"),
    )
    op.create_index("ix_results_submission_id", "results", ["submission_id"])
    op.create_table(
        "case_results",
        sa.Column("id", _BIG, nullable=False),
        sa.Column("result_id", _BIG, nullable=False),
        sa.Column("index", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("category", sa.String(length=120), nullable=False),
        sa.Column("group", sa.String(length=60), nullable=False),
        sa.Column("visibility", sa.String(length=24), nullable=False),
        sa.Column("verdict", sa.String(length=24), nullable=True),
        sa.Column("pattern", sa.String(length=24), nullable=True),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("time_us", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["result_id"], ["results.id"], name="fk_case_results_result_id_results", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_case_results"),
        sa.UniqueConstraint("result_id", "index", name="uq_case_results_result_id"),
    )
    op.create_index("ix_case_results_result_id", "case_results", ["result_id"])
    if op.get_context().dialect.name == "postgresql":
        for name, source, column, target in _CIRCLES:
            op.create_foreign_key(name, source, target, [column], ["id"])


def downgrade() -> None:
    """Undo."""
    if op.get_context().dialect.name == "postgresql":
        for name, source, _column, _target in _CIRCLES:
            op.drop_constraint(name, source, type_="foreignkey")
    op.drop_table("case_results")
    op.drop_table("results")
    op.drop_table("attempts")
    op.drop_table("submissions")
    op.drop_table("assignment_versions")
    op.drop_table("login_sessions")
    op.drop_table("enrolments")
    op.drop_table("audit_entries")
    op.drop_table("assignments")
    op.drop_table("api_tokens")
    op.drop_table("users")
    op.drop_table("nodes")
    op.drop_table("login_attempts")
    op.drop_table("courses")
    op.drop_table("bundles")
