"""Whether a course takes what is handed in to a lane that nothing serves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("courses") as table:
        table.add_column(sa.Column("accepts_unserved_lanes", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Undo."""
    with op.batch_alter_table("courses") as table:
        table.drop_column("accepts_unserved_lanes")
