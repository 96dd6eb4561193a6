"""The machine code and PTX of a submission's kernels: files that its attempts left, kept for a while."""

from __future__ import annotations

import logging

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from autograder.errors import ContractError
from autograder.listings import PREFIX, Listings, unpack
from server.models import Artefact, Attempt, Submission

logger = logging.getLogger(__name__)

MOST_TARGETS = 4


def targets_of(session: Session, submission: Submission) -> tuple[str, ...]:
    """The targets for which there is code to show, by name."""
    names = (
        select(Artefact.name)
        .join(Attempt, Attempt.id == Artefact.attempt_id)
        .where(Attempt.submission_id == submission.id, Artefact.name.startswith(PREFIX, autoescape=True))
        .distinct()
        .order_by(Artefact.name)
        .limit(MOST_TARGETS)
    )
    return tuple(name.removeprefix(PREFIX) for name in session.scalars(names))


def listings_of(session: Session, submission: Submission, target: str) -> Listings | None:
    """What the newest attempt that left any says of a target; `None` where there is none, or none any more.

    The caller has seen to it that the viewer may see the submission: it is of public cases only.
    """
    newest = (
        select(Artefact)
        .join(Attempt, Attempt.id == Artefact.attempt_id)
        .where(Attempt.submission_id == submission.id, Artefact.name == PREFIX + target)
        .order_by(Attempt.fence.desc())
        .limit(1)
        .options(undefer(Artefact.data))
    )
    found = session.scalar(newest)
    if found is None:
        return None
    try:
        return unpack(found.data)
    except ContractError as error:
        # A node's file is data to check, like all that a node says.
        logger.warning("the file %s of attempt %d is no listing: %s", found.name, found.attempt_id, error)
        return None
