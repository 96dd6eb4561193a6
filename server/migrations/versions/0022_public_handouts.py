"""Whether a course's handouts can be read without an account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("courses") as table:
        table.add_column(sa.Column("public_handouts", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Undo."""
    with op.batch_alter_table("courses") as table:
        table.drop_column("public_handouts")
