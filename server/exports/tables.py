"""Which tables have lines about a person, and which of their columns are for that person to have.

A table is named here with the column that says whose a line is. What others wrote for the staff alone, what would tell
of hidden cases, and every secret is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, select
from sqlalchemy.orm import Session, joinedload

from server.models import (
    ApiToken,
    Appeal,
    Assignment,
    Base,
    Comment,
    Course,
    Enrolment,
    LoginSession,
    RegradeMessage,
    RegradeRequest,
    Submission,
    User,
)


@dataclass(frozen=True)
class About:
    """A table with lines about people.

    Attributes:
        whose: its column that names the person.
        without: its columns that are not for them.
    """

    name: str
    whose: str = "user_id"
    without: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """As the models have it."""
        return Base.metadata.tables[self.name]


ABOUT_PEOPLE = (
    About("quiz_answers"),
    About("extensions", without=("reason", "actor_id", "withdrawn_by_id")),
    About("late_day_grants", without=("reason", "actor_id")),
    About("active_choices"),
    About("group_members"),
    About("group_invites", without=("invited_by_id",)),
    About("notifications"),
    About("notification_settings"),
    About("announcement_reads"),
    About("outside_identities"),
    About("known_places"),
    About("shared_sources"),
    About("regrade_requests", without=("retime", "regrade_id", "answered_by_id")),
)
"""One file for each that has a line about them."""
NOT_THEIRS = {
    "comments": "those that they read are in comments.json",
    "leaderboard_bests": "which of their results are best; the results are beside their submissions",
    "rubric_sheets": "as above; its points are among the grades once they are published",
    "grade_overrides": "among the grades once they are published",
    "regrade_items": "what staff try before they decide",
    "mail_outbox": "what notifications say already",
    "password_links": "secrets",
    "second_factors": "secrets",
    "recovery_codes": "secrets",
    "login_challenges": "secrets of a login that is under way",
    "outside_logins": "secrets of a login that is under way",
    "data_exports": "when this copy was made",
}
"""Tables that name people and are left out, and why."""
MOST_LINES = 20_000


def lines(session: Session, about: About, user_id: int) -> list[dict[str, Any]]:
    """A table's lines about this person, oldest first."""
    table = about.table
    columns = [column for column in table.c if column.name not in about.without]
    query = select(*columns).where(table.c[about.whose] == user_id).order_by(*table.primary_key.columns)
    return [dict(row) for row in session.execute(query.limit(MOST_LINES)).mappings()]


def account(session: Session, user: User) -> dict[str, Any]:
    """The account, where it is logged in and which tokens it has; no secret, and nothing to make one from."""
    logins = session.scalars(select(LoginSession).where(LoginSession.user_id == user.id).order_by(LoginSession.id))
    tokens = session.scalars(select(ApiToken).where(ApiToken.user_id == user.id).order_by(ApiToken.id))
    return {
        "email": user.email,
        "name": user.name,
        "handle": user.handle,
        "created_at": user.created_at,
        "logins": [_some(row, "created_at", "last_seen_at", "agent", "address") for row in logins],
        "tokens": [
            _some(row, "name", "created_at", "last_used_at", "expires_at", "revoked_at", "scopes") for row in tokens
        ],
    }


def enrolments(session: Session, user: User) -> list[dict[str, Any]]:
    """The courses that they are or were in."""
    query = (
        select(Course, Enrolment)
        .join(Enrolment, Enrolment.course_id == Course.id)
        .where(Enrolment.user_id == user.id)
        .order_by(Enrolment.id)
    )
    return [
        {
            "course": course.slug,
            "title": course.title,
            **_some(row, "role", "section", "show_name", "created_at", "dropped_at"),
        }
        for course, row in session.execute(query)
    ]


def comments(session: Session, user: User) -> list[dict[str, Any]]:
    """What staff wrote on their work, as far as they read it."""
    query = (
        select(Comment, Course.slug, Assignment, Submission.public_id)
        .join(Course, Course.id == Comment.course_id)
        .join(Assignment, Assignment.id == Comment.assignment_id)
        .outerjoin(Submission, Submission.id == Comment.submission_id)
        .where(Comment.user_id == user.id)
        .options(joinedload(Comment.author))
        .order_by(Comment.id)
        .limit(MOST_LINES)
    )
    return [
        {
            "course": course,
            "assignment": assignment.slug,
            "submission": submission,
            **_some(row, "writeup_version", "section", "first_line", "last_line", "text", "created_at", "edited_at"),
            "author": row.author.name,
        }
        for row, course, assignment, submission in session.execute(query)
        if row.is_visible(published=assignment.grades_published_at is not None)
    ]


def requests(session: Session, user: User) -> dict[str, list[dict[str, Any]]]:
    """What they said against a decision or asked to be looked at again, and what they were answered."""
    appeals = (
        select(Submission.public_id, Appeal)
        .join(Submission, Submission.id == Appeal.submission_id)
        .where(Submission.user_id == user.id)
        .order_by(Appeal.id)
        .limit(MOST_LINES)
    )
    asked = (
        select(Submission.public_id, RegradeMessage)
        .join(RegradeRequest, RegradeRequest.id == RegradeMessage.request_id)
        .join(Submission, Submission.id == RegradeRequest.submission_id)
        .where(RegradeRequest.user_id == user.id)
        .order_by(RegradeMessage.id)
        .limit(MOST_LINES)
    )
    answered = ("text", "created_at", "decided_at", "decision", "reason")
    return {
        "appeals": [{"submission": name, **_some(row, *answered)} for name, row in session.execute(appeals)],
        "regrade_requests": [
            {"submission": name, **_some(row, "text", "at", "by_staff", "outcome")}
            for name, row in session.execute(asked)
        ],
    }


def _some(row: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
