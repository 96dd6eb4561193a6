"""The text that the editor begins with: what was asked for, a draft, what was last handed in, or the starter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from autograder.contract import Lane, Language
from server import db
from server.courses.courses import AssignmentDetail, Membership
from server.models import Draft, Submission
from server.nodes import nodes
from server.submissions import submissions


@dataclass(frozen=True)
class Begun:
    """A text that the editor can begin with.

    Attributes:
        at: when it was handed in or saved, in seconds; 0 for a starter.
        kept: it was sent and refused, or asked for by name: no draft may replace it.
    """

    language: Language
    lane: Lane
    source: str
    origin: str
    at: float = 0.0
    kept: bool = False


def first(
    session: Session, member: Membership, detail: AssignmentDetail, version: str | None, last: Submission | None
) -> Begun:
    """What to begin with: the version that was asked for, else what was last handed in, else the starter."""
    if version is not None:
        return _begun_from(session, submissions.find(session, member.user, version), kept=True)
    if last is not None:
        return _begun_from(session, last, kept=False)
    return _starter(detail, detail.spec.languages[0], _first_lane(session, detail))


def _starter(detail: AssignmentDetail, language: Language, lane: Lane) -> Begun:
    return Begun(language, lane, detail.starters.get(language.value, ""), "the starter")


def _begun_from(session: Session, submission: Submission, *, kept: bool) -> Begun:
    source = submissions.source_of(session, submission).decode("utf-8", "replace")
    return Begun(
        submission.language,
        submission.lane,
        source,
        f"{submission.mode} {submission.number}",
        at=submission.uploaded_at.timestamp(),
        kept=kept,
    )


def newest(begun: Begun, stored: Mapping[Language, Draft]) -> Begun:
    """What stands in the form: the newest draft, where one is newer than what there is otherwise."""
    draft = max(stored.values(), key=lambda draft: draft.saved_at, default=None)
    if begun.kept or draft is None or draft.saved_at.timestamp() <= begun.at:
        return begun
    return Begun(draft.language, begun.lane, draft.text, "your draft", at=draft.saved_at.timestamp())


def texts(detail: AssignmentDetail, begun: Begun, stored: Mapping[Language, Draft]) -> dict[str, object]:
    """What the editor's script works with; times in milliseconds, as it counts them."""
    shown = newest(begun, stored)
    base = begun if shown.language is begun.language else _starter(detail, shown.language, shown.lane)
    return {
        "starters": detail.starters,
        "begun": {"text": base.source, "at": base.at * 1000},
        "stored": {
            language.value: {
                "text": draft.text, "revision": draft.revision, "at": draft.saved_at.timestamp() * 1000
            }
            for language, draft in stored.items()
        },
    }  # fmt: skip


def _first_lane(session: Session, detail: AssignmentDetail) -> Lane:
    """The first lane on which something could be graded now, else the first that there is."""
    in_service = nodes.lanes_in_service(session, now=db.now(session), course_id=detail.row.course_id)
    available = [lane for lane in detail.lanes if lane in in_service]
    return next(iter([*available, *detail.lanes]), Lane.cpu)


def last_of(session: Session, member: Membership, detail: AssignmentDetail) -> Submission | None:
    """What the member handed in last for this assignment."""
    found = submissions.history(session, member, assignment=detail.slug, user=member.user, asked_for=True, limit=1)
    return found[0] if found else None
