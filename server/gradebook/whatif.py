"""What a term would come to with submissions that nobody has handed in; nothing is stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from server.db import now
from server.errors import InvalidInputError
from server.gradebook.grade_inputs import HandedIn
from server.gradebook.queries import Standing, facts_for, standing_of
from server.models import Course


@dataclass(frozen=True)
class Upload:
    """A submission as it might be: when it is uploaded, and its points before lateness."""

    at: datetime
    points: float


def what_if(session: Session, course: Course, user_id: int, uploads: Mapping[str, Upload]) -> Standing:
    """The student's grades and late days if these were handed in besides, by the assignment's slug.

    Raises:
        InvalidInputError: no submission there can have so many points; `field` is the assignment's slug.
    """
    facts, at = facts_for(session, course, user_id), now(session)
    submissions = dict(facts.submissions)
    for number, detail in enumerate(facts.details, start=1):
        upload = uploads.get(detail.slug)
        if upload is None or not detail.is_visible(at, staff=False):
            continue
        most = detail.submission_points
        if not 0 <= upload.points <= most:
            raise InvalidInputError(f"A submission for {detail.title} has 0 to {most:g} points.", field=detail.slug)
        place = (user_id, detail.row.id)
        # Ids below 0 are nobody's: no row of the table is shown as the one that counts.
        submissions[place] = [*submissions.get(place, ()), HandedIn(-number, upload.points, upload.at)]
    chosen = {
        place: row for place, row in facts.chosen.items() if submissions.get(place) == facts.submissions.get(place)
    }
    return standing_of(session, dataclasses.replace(facts, submissions=submissions, chosen=chosen), user_id)
