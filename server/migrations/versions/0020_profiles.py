"""Which case a profile looks at."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("submissions") as table:
        table.add_column(sa.Column("case", sa.String(120), nullable=False, server_default=""))


def downgrade() -> None:
    """Undo."""
    with op.batch_alter_table("submissions") as table:
        table.drop_column("case")
