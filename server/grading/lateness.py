"""How late an upload is: pure. `uploaded_at` decides it, never queue time."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

DAY = timedelta(days=1)


def days_late(uploaded_at: datetime, due_at: datetime | None) -> int:
    """The late days that a submission uploaded then would use; one that has begun counts as a whole one."""
    if due_at is None or uploaded_at <= due_at:
        return 0
    return math.ceil((uploaded_at - due_at) / DAY)
