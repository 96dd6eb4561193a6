"""A proposal as a table for a spreadsheet."""

from __future__ import annotations

from sqlalchemy.orm import Session

from server import csv_io
from server.models import Regrade
from server.regrades.views import all_lines

HEADER = (
    "submission", "student", "email", "number", "state", "why", "counts", "verdict_before", "verdict_found",
    "points_before", "points_after", "ratio_before", "ratio_before_low", "ratio_before_high", "ratio_found",
    "ratio_found_low", "ratio_found_high", "grade_overridden", "note",
)  # fmt: skip


def table(session: Session, regrade: Regrade) -> str:
    """Every submission of it, the largest changes first."""
    rows = []
    for line in all_lines(session, regrade):
        item, submission = line.item, line.item.submission
        rows.append((
            submission.public_id, item.user.name, item.user.email, submission.number, item.state, item.why,
            "found" if item.moves else "as before", item.before_verdict, item.new_verdict, item.before_points,
            item.new_points, item.before_ratio, item.before_low, item.before_high, item.new_ratio, item.new_low,
            item.new_high, "yes" if line.overridden else "no", item.note,
        ))  # fmt: skip
    return csv_io.write(HEADER, rows)
