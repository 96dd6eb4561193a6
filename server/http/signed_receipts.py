"""A receipt for whoever asks, signed as it leaves."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from autograder.receipts import Copy, issue
from server.db import now
from server.errors import ForbiddenError
from server.grading import receipt_keys
from server.grading.receipts import receipt_of
from server.http.work import config_of, database_of
from server.models import User
from server.submissions import submissions


def receipt_for(request: Request, user: User, public_id: str, copy: Copy | None) -> dict[str, Any]:
    """The copy that this person may have, as a signed document.

    Raises:
        NotFoundError: there is no such submission, or they may not know of it.
        ForbiddenError: a student asks for the staff's copy.
        ConflictError: it has no grade.
    """
    database, key = database_of(request), receipt_keys.key_of(config_of(request))
    with database.reading() as session:
        submission = submissions.find(session, user, public_id)
        staff = submissions.is_staff_of(session, user, submission)
        if copy is Copy.staff and not staff:
            raise ForbiddenError("The staff's copy shows hidden cases.")
        whole = receipt_of(session, submission, now=now(session))
        known = receipt_keys.is_known(session, key)
    if not known:
        # Before anything is signed with it: a receipt that nobody could check is none.
        with database.transaction() as session:
            receipt_keys.keep(session, key, now=now(session))
    return issue(whole if staff and copy is not Copy.student else whole.for_student(), key)
