"""Alerts about submissions that are not accounted for are called `reconciliation_failed`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_ALERTS = sa.table("alerts", sa.column("kind", sa.String))


def upgrade() -> None:
    """Apply."""
    op.execute(_ALERTS.update().where(_ALERTS.c.kind == "accounts_wrong").values(kind="reconciliation_failed"))


def downgrade() -> None:
    """Undo."""
    op.execute(_ALERTS.update().where(_ALERTS.c.kind == "reconciliation_failed").values(kind="accounts_wrong"))
