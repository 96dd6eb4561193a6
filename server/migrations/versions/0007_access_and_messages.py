"""Ways to log in, announcements, notifications, mail."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_AT = sa.DateTime(timezone=True)
_WORD = sa.String(length=24)


def upgrade() -> None:
    """Apply."""
    _password_links()
    _outside()
    _notifications()
    _mail()
    _announcements()


def _user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f"fk_{table}_user_id_users", ondelete="CASCADE")


def _password_links() -> None:
    op.create_table(
        "password_links",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("purpose", _WORD, nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("expires_at", _AT, nullable=False),
        _user("password_links"),
        sa.PrimaryKeyConstraint("id", name="pk_password_links"),
        sa.UniqueConstraint("token_hash", name="uq_password_links_token_hash"),
    )
    op.create_index("ix_password_links_user_id", "password_links", ["user_id"])
    op.create_table(
        "link_requests",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_link_requests"),
    )
    op.create_index("ix_link_requests_at", "link_requests", ["at"])
    op.create_index("ix_link_requests_email_at", "link_requests", ["email", "at"])
    op.create_index("ix_link_requests_address_at", "link_requests", ["address", "at"])


def _outside() -> None:
    op.create_table(
        "outside_identities",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("issuer", sa.String(length=300), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("last_used_at", _AT, nullable=True),
        _user("outside_identities"),
        sa.PrimaryKeyConstraint("id", name="pk_outside_identities"),
        sa.UniqueConstraint("issuer", "subject", name="uq_outside_identities_issuer"),
    )
    op.create_index("ix_outside_identities_user_id", "outside_identities", ["user_id"])
    op.create_table(
        "outside_logins",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("browser_hash", sa.String(length=64), nullable=False),
        sa.Column("provider", sa.String(length=40), nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("verifier", sa.String(length=128), nullable=False),
        sa.Column("target", sa.String(length=500), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("expires_at", _AT, nullable=False),
        _user("outside_logins"),
        sa.PrimaryKeyConstraint("id", name="pk_outside_logins"),
        sa.UniqueConstraint("state_hash", name="uq_outside_logins_state_hash"),
    )
    op.create_index("ix_outside_logins_user_id", "outside_logins", ["user_id"])
    op.create_index("ix_outside_logins_address", "outside_logins", ["address"])
    op.create_index("ix_outside_logins_expires_at", "outside_logins", ["expires_at"])


def _notifications() -> None:
    op.create_table(
        "notifications",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("course_id", sa.Integer(), nullable=True),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("url", sa.String(length=500), nullable=False),
        sa.Column("key", sa.String(length=120), nullable=False),
        sa.Column("shown", sa.Boolean(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("read_at", _AT, nullable=True),
        _user("notifications"),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_notifications_course_id_courses", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_notifications"),
        sa.UniqueConstraint("user_id", "key", name="uq_notifications_user_id"),
    )
    op.create_index("ix_notifications_course_id", "notifications", ["course_id"])
    op.create_index("ix_notifications_user_id_id", "notifications", ["user_id", "id"])
    op.create_index("ix_notifications_user_id_read_at", "notifications", ["user_id", "read_at"])
    op.create_table(
        "notification_settings",
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("kind", _WORD, nullable=False),
        sa.Column("in_app", sa.Boolean(), nullable=False),
        sa.Column("by_mail", sa.Boolean(), nullable=False),
        _user("notification_settings"),
        sa.PrimaryKeyConstraint("user_id", "kind", name="pk_notification_settings"),
    )


def _mail() -> None:
    op.create_table(
        "mail_outbox",
        sa.Column("id", _BIG, primary_key=True),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("to", sa.String(length=254), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("url", sa.String(length=500), nullable=False),
        sa.Column("kind", _WORD, nullable=True),
        sa.Column("message_id", sa.String(length=200), nullable=False),
        sa.Column("state", _WORD, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", _AT, nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("sent_at", _AT, nullable=True),
        sa.Column("error", sa.String(length=300), nullable=False),
        _user("mail_outbox"),
        sa.PrimaryKeyConstraint("id", name="pk_mail_outbox"),
        sa.UniqueConstraint("message_id", name="uq_mail_outbox_message_id"),
    )
    op.create_index("ix_mail_outbox_user_id", "mail_outbox", ["user_id"])
    op.create_index("ix_mail_outbox_state_next_at", "mail_outbox", ["state", "next_at"])


def _announcements() -> None:
    op.create_table(
        "announcements",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("course_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("tell", sa.Boolean(), nullable=False),
        sa.Column("publish_at", _AT, nullable=False),
        sa.Column("told_at", _AT, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", _AT, nullable=False),
        sa.Column("edited_at", _AT, nullable=True),
        sa.Column("withdrawn_at", _AT, nullable=True),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_announcements_course_id_courses", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name="fk_announcements_author_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_announcements"),
    )
    op.create_index("ix_announcements_author_id", "announcements", ["author_id"])
    op.create_index("ix_announcements_course_id_publish_at", "announcements", ["course_id", "publish_at"])
    op.create_index("ix_announcements_told_at_publish_at", "announcements", ["told_at", "publish_at"])
    _of_announcements()


def _of_announcements() -> None:
    op.create_table(
        "announcement_edits",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("announcement_id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("editor_id", sa.Integer(), nullable=False),
        sa.Column("at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["announcement_id"],
            ["announcements.id"],
            name="fk_announcement_edits_announcement_id_announcements",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["editor_id"], ["users.id"], name="fk_announcement_edits_editor_id_users"),
        sa.PrimaryKeyConstraint("id", name="pk_announcement_edits"),
        sa.UniqueConstraint("announcement_id", "revision", name="uq_announcement_edits_announcement_id"),
    )
    op.create_index("ix_announcement_edits_editor_id", "announcement_edits", ["editor_id"])
    op.create_table(
        "announcement_reads",
        sa.Column("announcement_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("read_at", _AT, nullable=False),
        sa.ForeignKeyConstraint(
            ["announcement_id"],
            ["announcements.id"],
            name="fk_announcement_reads_announcement_id_announcements",
            ondelete="CASCADE",
        ),
        _user("announcement_reads"),
        sa.PrimaryKeyConstraint("announcement_id", "user_id", name="pk_announcement_reads"),
    )
    op.create_index("ix_announcement_reads_user_id", "announcement_reads", ["user_id"])


def downgrade() -> None:
    """Undo."""
    op.execute("DELETE FROM alerts WHERE kind = 'mail_failed'")
    for table in (
        "announcement_reads", "announcement_edits", "announcements", "mail_outbox", "notification_settings",
        "notifications", "outside_logins", "outside_identities", "link_requests", "password_links",
    ):  # fmt: skip
        op.drop_table(table)
