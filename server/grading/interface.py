"""What dispatcher, recorder, fronts and commands call."""

from __future__ import annotations

from autograder.scores import FORMULA_VERSION, NextPoint, next_point
from server.grading.artefacts import artefacts_of, bundle_of, data_of, forget_artefacts, is_live, store_artefact
from server.grading.claim import claim_next, fill_slots
from server.grading.grades import points_of
from server.grading.lease_clock import hear, make_tick
from server.grading.policy import Queue
from server.grading.queue_snapshot import look_at_all
from server.grading.record import Outcome, record
from server.grading.requeue import requeue
from server.grading.results import manifest_of
from server.grading.states import FINAL, LIVE, WAITING
from server.grading.sweep import end_attempt, fence_off, sweep
from server.grading.watch import Watch

__all__ = [
    "FINAL",
    "FORMULA_VERSION",
    "LIVE",
    "WAITING",
    "NextPoint",
    "Outcome",
    "Queue",
    "Watch",
    "artefacts_of",
    "bundle_of",
    "claim_next",
    "data_of",
    "end_attempt",
    "fence_off",
    "fill_slots",
    "forget_artefacts",
    "hear",
    "is_live",
    "look_at_all",
    "make_tick",
    "manifest_of",
    "next_point",
    "points_of",
    "record",
    "requeue",
    "store_artefact",
    "sweep",
]
