"""Which changes of state are legal; pure, so that every interleaving can be tried without a database.

received ──> queued ──> running ──> done        running ──> queued, superseded   an attempt was lost, or its check
              │  ▲         ▲                                                     passed and its times are to come
              ▼  │         │                    running ──> failed               ours, after the last attempt
            superseded ────┘                    done, failed ──> queued          staff grade it again
                                                received, queued, superseded ──> cancelled
                                                queued ──> done, failed          staff withdrew a proposal

queued ──> superseded: a newer one took its place. superseded ──> queued: that one was cancelled, has failed, or does
not compile. A verdict may come before `done`: what was checked and is to be measured has one, and it counts. What
could not be measured has `failed` with its verdict kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from server.errors import LadderError
from server.models import AttemptState, State

WAITING = (State.queued, State.superseded)
"""What a free slot may take; `server.grading.policy` says in which order."""
FINAL = (State.done, State.failed, State.cancelled)
LIVE = (AttemptState.dispatched, AttemptState.running)
"""An attempt that may still end in a result."""

_SUBMISSION: Mapping[State, tuple[State, ...]] = {
    State.received: (State.queued, State.cancelled),
    State.queued: (State.running, State.superseded, State.cancelled, State.done, State.failed),
    State.superseded: (State.running, State.queued, State.cancelled),
    State.running: (State.done, State.queued, State.superseded, State.failed),
    State.done: (State.queued,),
    State.failed: (State.queued,),
    State.cancelled: (),
}
_ATTEMPT: Mapping[AttemptState, tuple[AttemptState, ...]] = {
    AttemptState.dispatched: (
        AttemptState.running,
        AttemptState.finished,
        AttemptState.lost,
        AttemptState.failed,
    ),
    AttemptState.running: (AttemptState.finished, AttemptState.lost, AttemptState.failed),
    AttemptState.finished: (),
    AttemptState.lost: (),
    AttemptState.failed: (),
}


class IllegalTransitionError(LadderError):
    """A change of state that does not exist: a mistake of ours, never a message's."""


def submission_moves(before: State, after: State) -> State:
    """`after`, if a submission may go there from `before`."""
    if after not in _SUBMISSION[before]:
        raise IllegalTransitionError(f"a submission that is {before} cannot become {after}")
    return after


def attempt_moves(before: AttemptState, after: AttemptState) -> AttemptState:
    """`after`, if an attempt may go there from `before`."""
    if after not in _ATTEMPT[before]:
        raise IllegalTransitionError(f"an attempt that is {before} cannot become {after}")
    return after


def after_an_end_without_result(
    attempts_made: int, max_attempts: int, *, superseded: bool, graded_before: bool
) -> State:
    """Where a submission goes when its attempt was lost or failed; nothing of it is the student's fault.

    A submission that staff grade again keeps the result it had (`graded_before`); half a result, a check without the
    times that it is still to have, is none.
    """
    if attempts_made < max_attempts:
        return State.superseded if superseded else State.queued
    return State.done if graded_before else State.failed
