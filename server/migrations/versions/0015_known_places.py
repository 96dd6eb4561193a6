"""Where each account has logged in before; today's log-ins are known from the start."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TABLE = "known_places"
_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_FILL = """
INSERT INTO known_places (user_id, mark, seen_at)
SELECT user_id, address, max(last_seen_at) FROM login_sessions
WHERE address LIKE '%.%.%.%' AND address NOT LIKE '%:%' GROUP BY user_id, address
"""
"""IPv4 alone: of IPv6 a /64 is kept, which SQL cannot work out."""


def upgrade() -> None:
    """Apply."""
    op.create_table(
        _TABLE,
        sa.Column("id", _BIG, nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("mark", sa.String(length=64), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_known_places_user_id_users", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_known_places"),
        sa.UniqueConstraint("user_id", "mark", name="uq_known_places_user_id"),
    )
    op.execute(_FILL)


def downgrade() -> None:
    """Undo."""
    op.drop_table(_TABLE)
