"""What dispatcher, recorder, fronts and commands call."""

from __future__ import annotations

from server.grading.claim import claim_next
from server.grading.record import Outcome, record
from server.grading.results import manifest_of, points_of, rescore
from server.grading.scores import FORMULA_VERSION, NextPoint, next_point
from server.grading.states import FINAL, LIVE, WAITING
from server.grading.sweep import sweep

__all__ = [
    "FINAL",
    "FORMULA_VERSION",
    "LIVE",
    "WAITING",
    "NextPoint",
    "Outcome",
    "claim_next",
    "manifest_of",
    "next_point",
    "points_of",
    "record",
    "rescore",
    "sweep",
]
