"""One call looked at with a tool, on request: who may ask for a profile or a sanitizer run, and of what.

It is handed in like a submission and waits in a line of its own, after gradings. Nothing of it counts. Only a public
case is looked at: a tool would tell the sizes of hidden ones.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import and_, func, not_, select
from sqlalchemy.orm import Session

from autograder.assignment import Assignment as Manifest
from server import db
from server.config import Config
from server.courses.courses import Membership
from server.errors import InvalidInputError, TooManyError
from server.models import Lane, Line, Mode, State, Submission
from server.nodes import nodes

_DAY = timedelta(days=1)
_NO_GPU = "The CPU lane has no GPU, so there is nothing to {}. Choose a GPU lane."
_FACTS = {Mode.profile: "profiles", Mode.sanitize: "sanitizer"}
"""Where a node says whether it can, or why not."""
ASKED_FOR = not_(and_(Submission.mode == Mode.sanitize, Submission.line == Line.confirm))
"""Whether a person handed it in; what is made for a leaderboard uses up no quota."""
_DOES = {Mode.profile: "makes profiles", Mode.sanitize: "runs the sanitizer"}


def cases_of(manifest: Manifest, lane: Lane) -> list[str]:
    """Names of the cases that can be looked at on a lane, ranked ones first."""
    return [case.name for case in sorted(manifest.cases_for(lane), key=lambda case: not case.ranked)]


def check_case(manifest: Manifest, lane: Lane, mode: Mode, case: str) -> None:
    """Refuse a case that is not a public one of the lane; `""` leaves the choice to the judge.

    Raises:
        InvalidInputError: it is none, or the lane has no GPU.
    """
    if lane is Lane.cpu:
        raise InvalidInputError(_NO_GPU.format(mode), field="lane")
    offered = cases_of(manifest, lane)
    if case and case not in offered:
        raise InvalidInputError(
            f"{case!r} is no public case on the lane {lane}. Public cases: {', '.join(offered)}.", field="case"
        )


def why_not(session: Session, lane: Lane, mode: Mode, *, course_id: int, now: datetime) -> str:
    """Why nobody gets one on this lane now, in a sentence; `""` where a node in service makes them."""
    if lane is Lane.cpu:
        return _NO_GPU.format(mode)
    serving = [
        node
        for node in nodes.working_nodes(session, now=now)
        if lane.value in node.lanes and nodes.serves(node, course_id) and not nodes.in_quarantine(node)
    ]
    if any(mode.value in node.works for node in serving):
        return ""
    said = next((fact for node in serving if (fact := node.facts.get(_FACTS[mode], "")) not in {"", "yes"}), "")
    if serving:
        return f"No node of the lane {lane} {_DOES[mode]}. {said}".rstrip()
    return f"No node that serves the lane {lane} is in service now, so this would wait forever."


def check(session: Session, membership: Membership, lane: Lane, mode: Mode, *, config: Config, now: datetime) -> None:
    """Refuse one that no node would make, or one too many; the person's row is locked.

    Raises:
        InvalidInputError: no node makes them; it says why.
        TooManyError: the day's are used up.
    """
    if refused := why_not(session, lane, mode, course_id=membership.course.id, now=db.now(session)):
        raise InvalidInputError(refused, field="lane")
    if membership.is_staff:
        return
    query = select(func.count(), func.min(Submission.uploaded_at)).where(
        Submission.user_id == membership.user.id,
        Submission.course_id == membership.course.id,
        Submission.mode.in_(_FACTS),
        ASKED_FOR,
        Submission.uploaded_at > now - _DAY,
        Submission.state.not_in((State.failed, State.cancelled)),
    )
    used, first = session.execute(query).one()
    if used >= config.profiles_per_day:
        wait_s = max(1.0, (first + _DAY - now).total_seconds())
        raise TooManyError(
            f"You have used all {config.profiles_per_day} profiles and sanitizer runs of 24 hours. "
            f"The next is possible in {wait_s / 3600:.1f} h.",
            retry_after_s=wait_s,
        )
