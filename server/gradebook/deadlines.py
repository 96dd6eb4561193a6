"""When an assignment is due and closes for one student; whoever shows or checks a date asks here."""

from __future__ import annotations

from server.courses.deadlines import DAY, Deadlines, days_late, deadlines_in, deadlines_of, own_dates

__all__ = ["DAY", "Deadlines", "days_late", "deadlines_in", "deadlines_of", "own_dates"]
