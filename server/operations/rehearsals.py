"""Keeping what a chaos run found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from server.errors import InvalidInputError
from server.models import Rehearsal

MAX_CHARS = 1_000_000
MAX_MACHINE_CHARS = 200


def record_rehearsal(session: Session, report: object, *, now: datetime) -> Rehearsal:
    """Keep a report: an object with `passed`, and where it says so `at` (ISO, with its zone) and `machine`.

    Raises:
        InvalidInputError: it is none.
    """
    if not isinstance(report, Mapping) or not isinstance(report.get("passed"), bool):
        raise InvalidInputError(
            "A chaos run's report is an object with `passed`, which is true or false.", field="passed"
        )
    if len(json.dumps(report)) > MAX_CHARS:
        raise InvalidInputError(f"This report is longer than {MAX_CHARS:,} characters.")
    machine = str(report.get("machine") or "an unnamed machine")[:MAX_MACHINE_CHARS]
    row = Rehearsal(at=_time(report, now), passed=report["passed"], machine=machine, report=dict(report))
    session.add(row)
    session.flush()
    return row


def _time(report: Mapping[str, Any], now: datetime) -> datetime:
    said = report.get("at")
    if said is None:
        return now
    try:
        at = datetime.fromisoformat(str(said))
    except ValueError:
        raise InvalidInputError(f"`at` is no time: {str(said)[:60]!r}.", field="at") from None
    if at.tzinfo is None:
        raise InvalidInputError("`at` has no time zone, such as +00:00.", field="at")
    return min(at, now).astimezone(UTC)
