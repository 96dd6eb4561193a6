"""What staff do to a proposal, by name: pages and the API offer the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum

from sqlalchemy.orm import Session

from server.courses.courses import Membership
from server.models import Regrade
from server.regrades import lifecycle


class Step(StrEnum):
    """What staff do to a proposal."""

    start = "start"
    """Begin, or go on after a pause."""
    pause = "pause"
    withdraw = "withdraw"
    """Grade no more; what is known by now is what it is about."""
    retry = "retry"
    """Grade again what our side failed at."""
    recheck = "recheck"
    """Compare with what counts now whatever changed since."""
    apply = "apply"
    discard = "discard"
    """What is applied already stays applied."""
    roll_back = "roll-back"
    roll_back_again = "roll-back-again"
    """For what a roll-back passed over."""


_STEPS: Mapping[Step, Callable[..., Regrade]] = {
    Step.start: lifecycle.start,
    Step.pause: lifecycle.pause,
    Step.withdraw: lifecycle.withdraw_rest,
    Step.retry: lifecycle.retry_failed,
    Step.recheck: lifecycle.recheck,
    Step.apply: lifecycle.apply,
    Step.discard: lifecycle.discard,
    Step.roll_back: lifecycle.roll_back,
    Step.roll_back_again: lifecycle.roll_back_again,
}


def take(
    session: Session,
    member: Membership,
    regrade_id: int,
    step: Step,
    *,
    revision: int,
    now: datetime,
    reason: str = "",
) -> Regrade:
    """Do it; only a roll-back has a reason of its own, and the same again has that one.

    Raises:
        ConflictError: the proposal is not any more as the person saw it.
        InvalidInputError: a roll-back without a reason.
    """
    more = {"reason": reason} if step is Step.roll_back else {}
    return _STEPS[step](session, member, regrade_id, revision=revision, now=now, **more)
