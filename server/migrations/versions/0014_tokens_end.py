"""Every token ends and says what it opens; those of before open what they opened, for 90 days more at most by default.

A token that had an end keeps it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_TOKENS = sa.table("api_tokens", sa.column("scopes", sa.String), sa.column("expires_at", sa.DateTime(timezone=True)))
_DAYS = 90


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("api_tokens") as batch:
        batch.add_column(sa.Column("scopes", sa.String(length=60), nullable=True))
    ends = datetime.now(UTC) + timedelta(days=_DAYS)
    op.execute(_TOKENS.update().values(scopes="read submit staff"))
    op.execute(_TOKENS.update().where(_TOKENS.c.expires_at.is_(None)).values(expires_at=ends))
    with op.batch_alter_table("api_tokens") as batch:
        batch.alter_column("scopes", existing_type=sa.String(length=60), nullable=False)
        batch.alter_column("expires_at", existing_type=sa.DateTime(timezone=True), nullable=False)


def downgrade() -> None:
    """Undo; what had no end before has one now."""
    with op.batch_alter_table("api_tokens") as batch:
        batch.alter_column("expires_at", existing_type=sa.DateTime(timezone=True), nullable=True)
        batch.drop_column("scopes")
