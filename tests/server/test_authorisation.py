"""Who may do what: every route by every role, against one table. A route without a row fails.

To add a route: add a row to `TABLE`, and its body to `BODIES` if it takes one. A row says which status each role gets;
the helpers below name the usual rows.

The course is made and served once; before every route its database is put back to what it was then.
"""

from __future__ import annotations

import dataclasses
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from sqlalchemy import delete, select

from autograder.contract import MAX_LOG_CHARS, MAX_SOURCE_BYTES
from broker.identity import NodeKey
from server import alerts, announcements, ids
from server.accounts import accounts
from server.accounts.places import Place
from server.apart.asking import APART
from server.courses import courses
from server.grading.artefacts import store_artefact
from server.grading.results import write_result
from server.models import (
    AlertKind,
    Attempt,
    AttemptState,
    Comment,
    Comparison,
    ComparisonState,
    Lane,
    Line,
    LinkRequest,
    Notification,
    NotificationKind,
    OutsideIdentity,
    Regrade,
    RegradeKind,
    RegradeRequest,
    RegradeState,
    RequestState,
    Role,
    RubricItem,
    SavedComment,
    Showing,
    SimilarPair,
    Submission,
    Work,
    WriteUp,
    WriteUpFormat,
)
from server.nodes import nodes
from server.roster import imports, invites
from server.writeups import SHOWN_BYTES
from tests.doubles.world import wrong
from tests.suite.plugin import yardstick
from tests.suite.policy import YARDSTICK_S
from worker.server import Signature

if TYPE_CHECKING:
    # The table is imported by browser tests too, which have another conftest.
    from conftest import Stage

ROLES = ("anonymous", "stranger", "dropped", "other", "owner", "ta", "instructor", "admin", "node")
"""stranger: instructor of another course; dropped: was a student of this one; other and owner: students of it, the
submission being the owner's; node: who signs by a node's key."""
PERSONS = {
    "stranger": "stranger", "dropped": "carol", "other": "bob", "owner": "alice", "ta": "tom", "instructor": "ines",
    "admin": "admin",
}  # fmt: skip


def row(default: int, **exceptions: int) -> dict[str, int]:
    """The status of every role."""
    return {role: exceptions.get(role, default) for role in ROLES}


def everyone(status: int) -> dict[str, int]:
    """Log-in is not asked for."""
    return row(status)


def person(status: int, stranger: int = 401) -> dict[str, int]:
    """Anybody with an account; a node is no person. Pages send a stranger who looks to the log-in form: 303."""
    return row(status, anonymous=stranger, node=stranger)


def member(status: int, stranger: int = 401) -> dict[str, int]:
    """Whoever is in the course; for all others it does not exist."""
    return row(status, anonymous=stranger, node=stranger, stranger=404, dropped=404)


def owner_or_staff(status: int, stranger: int = 401) -> dict[str, int]:
    """Whose it is, and the staff of its course; for all others it does not exist."""
    return row(status, anonymous=stranger, node=stranger, stranger=404, dropped=404, other=404)


def owner_only(status: int, stranger: int = 401) -> dict[str, int]:
    """Whose it is; not even an admin."""
    return row(404, anonymous=stranger, node=stranger, owner=status)


def staff_of_any(status: int, stranger: int = 401) -> dict[str, int]:
    """Staff of whichever course, and admins; for all others there is nothing here."""
    return row(status, anonymous=stranger, node=stranger, dropped=404, other=404, owner=404)


def staff_of_course(status: int, stranger: int = 401) -> dict[str, int]:
    """Staff of its course, and admins; for all others, its owner too, it does not exist."""
    return row(404, anonymous=stranger, node=stranger, ta=status, instructor=status, admin=status)


def staff_of(status: int, stranger: int = 401) -> dict[str, int]:
    """Staff of its course, and admins; its students are told that they may not, for all others it does not exist."""
    return {**staff_of_course(status, stranger), "owner": 403, "other": 403}


def node_only(status: int) -> dict[str, int]:
    """A node, by its own key; no person."""
    return row(401, node=status)


FORM = {"anonymous": 403}
"""A form of nobody's is refused as forged before anybody asks who sent it."""
API, COURSE, RUNG = "/api/v1", "/courses/{course}", "/courses/{course}/assignments/{slug}"
TABLE: dict[tuple[str, str], dict[str, int]] = {
    ("GET", "/healthz"): everyone(200),
    ("GET", "/metrics"): everyone(404),
    ("GET", f"{API}/openapi.json"): everyone(200),
    ("POST", f"{API}/tokens"): everyone(201),
    ("DELETE", f"{API}/tokens/current"): person(204),
    ("GET", f"{API}/me"): person(200),
    ("GET", f"{API}/courses"): person(200),
    ("GET", f"{API}{COURSE}/assignments"): member(200),
    ("GET", f"{API}{COURSE}/submissions"): member(200),
    ("GET", f"{API}{RUNG}"): member(200),
    ("GET", f"{API}{RUNG}/archive"): member(200),
    ("GET", f"{API}{RUNG}/leaderboard"): member(200),
    ("GET", f"{API}{RUNG}/leaderboard.csv"): member(200),
    # Nobody shares a source here.
    ("GET", f"{API}{RUNG}/leaderboard/entries/{{entry}}"): member(404),
    ("GET", f"{API}{RUNG}/milestones"): member(200),
    ("GET", f"{API}{COURSE}/standings"): member(200),
    ("GET", f"{API}{COURSE}/standings.csv"): member(200),
    ("POST", f"{API}{RUNG}/submissions"): member(201),
    ("GET", f"{API}{RUNG}/quiz"): member(200),
    ("POST", f"{API}{RUNG}/quiz/{{question}}/answers"): member(201),
    ("GET", f"{API}/submissions/{{public_id}}"): owner_or_staff(200),
    ("GET", f"{API}/submissions/{{public_id}}/source"): owner_or_staff(200),
    ("GET", f"{API}/submissions/{{public_id}}/events"): owner_or_staff(200),
    ("POST", f"{API}/submissions/{{public_id}}/cancel"): {**owner_or_staff(403), "owner": 200},
    # What was handed in a moment ago has no grade yet.
    ("GET", f"{API}/submissions/{{public_id}}/receipt"): owner_or_staff(409),
    ("GET", f"{API}/receipts/keys"): everyone(200),
    # No code, no node; here nobody can join at all.
    ("POST", f"{API}/nodes/join"): everyone(409),
    ("GET", f"{API}/nodes/own"): node_only(200),
    ("GET", f"{API}/nodes"): row(403, anonymous=401, node=401, admin=200),
    ("POST", f"{API}/nodes/invites"): row(403, anonymous=401, node=401, admin=201),
    ("PUT", f"{API}/nodes/{{name}}/grant"): row(403, anonymous=401, node=401, admin=200),
    ("POST", f"{API}/nodes/{{name}}/revoke"): row(403, anonymous=401, node=401, admin=200),
    ("PUT", f"{API}/nodes/own/key"): node_only(401),
    ("GET", f"{API}/attempts/{{attempt}}"): node_only(200),
    ("GET", f"{API}/attempts/{{attempt}}/bundle"): node_only(200),
    ("PUT", f"{API}/attempts/{{attempt}}/artefacts/{{name}}"): node_only(204),
    ("GET", f"{API}/attempts/{{attempt}}/artefacts"): staff_of_course(200),
    ("GET", f"{API}/attempts/{{attempt}}/artefacts/{{name}}"): staff_of_course(200),
    # Pages.
    ("GET", "/login"): row(303, anonymous=200, node=200),
    ("POST", "/login"): row(303, anonymous=403, node=303),
    ("POST", "/logout"): person(303),
    ("GET", "/"): row(303, anonymous=200, node=200, dropped=200, admin=200),
    ("GET", "/components"): everyone(200),
    ("GET", "/help"): everyone(200),
    ("GET", "/account"): person(200, 303),
    ("POST", "/account/password"): {**person(303), **FORM},
    ("POST", "/account/sessions/revoke-others"): person(303),
    # Who was not asked for a code is led back to the log-in, or, logged in, on to where they wanted to go.
    ("GET", "/second-factor"): row(303),
    ("POST", "/second-factor"): everyone(401),
    ("GET", "/account/second-factor"): person(200, 303),
    ("POST", "/account/second-factor/begin"): {
        **person(403),
        "ta": 303,
        "instructor": 303,
        "admin": 303,
        "stranger": 303,
        **FORM,
    },
    ("POST", "/account/second-factor/confirm"): {**person(409), **FORM},
    ("POST", "/account/second-factor/codes"): {**person(422), **FORM},
    ("POST", "/account/second-factor/remove"): {**person(422), **FORM},
    # Nobody can log in elsewhere here.
    ("GET", "/login/{provider}"): everyone(404),
    ("GET", "/login/{provider}/callback"): everyone(404),
    ("POST", "/account/identities/{provider}"): person(404),
    ("POST", "/account/identities/{identity_id}/unlink"): owner_only(303),
    ("GET", "/password"): everyone(404),
    # A node sends no cookie with its form either, and its bearer token is no browser's.
    ("POST", "/password"): row(404, anonymous=403),
    ("GET", "/password/forgotten"): everyone(200),
    ("POST", "/password/forgotten"): row(303, anonymous=403),
    ("GET", "/password/sent"): everyone(200),
    ("GET", "/notifications"): person(200, 303),
    ("GET", "/notifications/settings"): person(200, 303),
    ("POST", "/notifications/settings"): {**person(303), **FORM},
    ("POST", "/notifications/read"): {**person(303), **FORM},
    ("GET", "/notifications/{notification_id}"): {**owner_only(303, 303), "owner": 303},
    ("GET", f"{COURSE}/announcements"): member(200, 303),
    ("POST", f"{COURSE}/announcements"): {**staff_of(303), **FORM},
    ("GET", f"{COURSE}/announcements/new"): staff_of(200, 303),
    ("GET", f"{COURSE}/announcements/{{announcement_id}}"): member(200, 303),
    ("GET", f"{COURSE}/announcements/{{announcement_id}}/edit"): staff_of(200, 303),
    ("POST", f"{COURSE}/announcements/{{announcement_id}}"): {**staff_of(303), **FORM},
    ("POST", f"{COURSE}/announcements/{{announcement_id}}/withdraw"): {**staff_of(303), **FORM},
    ("POST", "/account/tokens"): {**person(201), **FORM},
    ("POST", "/account/tokens/{token_id}/revoke"): owner_only(303),
    ("POST", "/account/sessions/{session_id}/revoke"): owner_only(303),
    ("POST", "/account/courses/{course}/name"): {**member(303), "admin": 404, **FORM},
    ("GET", "/operations"): staff_of_any(200, 303),
    ("POST", "/operations/check"): staff_of_any(303),
    ("POST", "/operations/alerts/{alert_id}/resolve"): {**staff_of_any(303), "stranger": 404},
    ("POST", "/operations/nodes/{name}/{action}"): row(404, anonymous=401, node=401, admin=303),
    ("POST", "/operations/invites"): row(404, anonymous=403, node=401, admin=201),
    ("POST", "/operations/grants/{name}"): row(404, anonymous=403, node=401, admin=303),
    ("GET", COURSE): member(200, 303),
    ("GET", f"{COURSE}/queue"): member(200, 303),
    ("GET", RUNG): member(200, 303),
    # Members have the page itself; this course's handouts are not public.
    ("GET", f"{RUNG}/handout"): member(303, 303),
    ("GET", f"{RUNG}/submissions"): member(200, 303),
    ("POST", f"{RUNG}/submissions"): {**member(303), **FORM},
    ("GET", f"{RUNG}/compare"): member(303, 303),
    ("POST", f"{RUNG}/active"): member(303),
    ("GET", f"{API}{RUNG}/drafts"): member(200),
    ("PUT", f"{API}{RUNG}/drafts/{{language}}"): member(200),
    ("GET", f"{RUNG}/writeup"): member(200, 303),
    # This rung asks for none.
    ("POST", f"{RUNG}/writeup"): {**row(404), "anonymous": 401, "node": 401},
    ("GET", "/writeups/{public_id}"): owner_or_staff(200, 303),
    ("GET", "/writeups/{public_id}/file"): owner_or_staff(200, 303),
    ("POST", "/account/export"): person(200),
    ("GET", f"{RUNG}/group"): member(200, 303),
    # This rung is done alone.
    ("POST", f"{RUNG}/group/start"): member(422),
    ("POST", f"{RUNG}/group/join"): {**member(422), **FORM},
    ("POST", f"{RUNG}/group/invite"): {**member(422), **FORM},
    ("POST", f"{RUNG}/group/take-back"): {**member(303), **FORM},
    ("POST", f"{RUNG}/group/accept"): {**member(404), **FORM},
    ("POST", f"{RUNG}/group/decline"): {**member(303), **FORM},
    ("POST", f"{RUNG}/group/leave"): member(303),
    ("POST", f"{RUNG}/group/change"): {**member(403), "ta": 422, "instructor": 422, "admin": 422, **FORM},
    ("GET", f"{RUNG}/leaderboard"): member(200, 303),
    ("GET", f"{RUNG}/leaderboard/entries/{{entry}}"): member(404, 303),
    ("GET", "/submissions/{public_id}/share"): owner_or_staff(200, 303),
    # It is not on a leaderboard.
    ("POST", "/submissions/{public_id}/share"): {**owner_or_staff(409), **FORM},
    ("GET", f"{COURSE}/standings"): member(200, 303),
    # The boards of this course are not public.
    ("GET", "/badge/{course}/{slug}.svg"): everyone(404),
    ("GET", "/badge/{course}/{slug}/{handle}.svg"): everyone(404),
    ("GET", f"{RUNG}/quiz"): member(200, 303),
    ("POST", f"{RUNG}/quiz/{{question}}"): {**member(303), **FORM},
    ("GET", "/submissions/{public_id}"): owner_or_staff(200, 303),
    ("GET", "/submissions/{public_id}/source"): owner_or_staff(200, 303),
    ("GET", "/submissions/{public_id}/diff"): owner_or_staff(200, 303),
    ("GET", "/submissions/{public_id}/machine-code"): owner_or_staff(200, 303),
    # A submission on the CPU lane has neither, and gets none.
    ("GET", "/submissions/{public_id}/profile"): owner_or_staff(200, 303),
    ("POST", "/submissions/{public_id}/profile"): owner_or_staff(422),
    ("GET", "/submissions/{public_id}/sanitizer"): owner_or_staff(200, 303),
    ("POST", "/submissions/{public_id}/sanitizer"): owner_or_staff(422),
    ("GET", "/submissions/{public_id}/profile/report"): owner_or_staff(404, 303),
    ("GET", "/submissions/{public_id}/profile/trace"): owner_or_staff(404, 303),
    ("GET", f"{API}/submissions/{{public_id}}/profile/report"): owner_or_staff(404),
    ("GET", f"{API}/submissions/{{public_id}}/profile/trace"): owner_or_staff(404),
    ("GET", f"{API}/submissions/{{public_id}}/profile/changes"): owner_or_staff(404),
    ("GET", "/submissions/{public_id}/receipt"): owner_or_staff(409, 303),
    ("GET", "/submissions/{public_id}/live"): owner_or_staff(200, 303),
    ("GET", f"{COURSE}/grades"): member(200, 303),
    ("GET", f"{COURSE}/gradebook"): staff_of(200, 303),
    ("GET", f"{COURSE}/gradebook/publish"): staff_of(200, 303),
    ("GET", f"{COURSE}/gradebook/publish/{{slug}}"): staff_of(200, 303),
    ("POST", f"{COURSE}/gradebook/publish"): {**staff_of(409), **FORM},
    ("GET", f"{COURSE}/gradebook/export"): staff_of(200, 303),
    ("GET", f"{COURSE}/gradebook/import"): staff_of(200, 303),
    ("POST", f"{COURSE}/gradebook/import"): {**staff_of(200), **FORM},
    ("POST", f"{COURSE}/gradebook/import/apply"): {**staff_of(409), **FORM},
    ("GET", f"{COURSE}/gradebook/{{user_id}}/{{slug}}"): staff_of(200, 303),
    ("POST", f"{COURSE}/gradebook/{{user_id}}/{{slug}}/override"): {**staff_of(409), **FORM},
    ("POST", f"{COURSE}/gradebook/{{user_id}}/{{slug}}/undo"): {**staff_of(409), **FORM},
    ("GET", f"{COURSE}/audit"): staff_of(200, 303),
    ("GET", f"{API}{COURSE}/grades"): {**member(200), "ta": 404, "instructor": 404, "admin": 404},
    ("GET", f"{API}{COURSE}/gradebook"): staff_of(200),
    ("GET", f"{API}{COURSE}/gradebook.csv"): staff_of(200),
    ("GET", f"{API}{COURSE}/roster"): staff_of(200),
    ("GET", f"{API}{COURSE}/audit"): staff_of(200),
    ("GET", f"{API}{COURSE}/review"): staff_of(200),
    ("GET", f"{API}{COURSE}/extensions"): staff_of(200),
    ("GET", f"{COURSE}/staff"): staff_of(200, 303),
    ("GET", "/courses"): person(200, 303),
    ("POST", "/courses"): {**person(403), "admin": 422, **FORM},
    ("GET", f"{COURSE}/assignment-files"): {**staff_of(200, 303), "ta": 403},
    ("POST", f"{COURSE}/assignment-files"): {**staff_of(422), "ta": 403, **FORM},
    ("GET", f"{COURSE}/schedule"): staff_of(200, 303),
    ("POST", f"{COURSE}/schedule"): {**staff_of(303), **FORM},
    ("GET", f"{COURSE}/roster"): staff_of(200, 303),
    ("GET", f"{COURSE}/roster.csv"): staff_of(200, 303),
    ("POST", f"{COURSE}/roster/add"): {**staff_of(303), **FORM},
    ("POST", f"{COURSE}/roster/invites"): {**staff_of(201), **FORM},
    ("POST", f"{COURSE}/roster/invites/{{invite_id}}/revoke"): staff_of(303),
    ("GET", f"{COURSE}/roster/people/{{user_id}}"): staff_of(200, 303),
    # Who changes somebody's entry says what they saw; here they say nothing.
    ("POST", f"{COURSE}/roster/people/{{user_id}}"): {**staff_of(409), **FORM},
    ("POST", f"{COURSE}/roster/people/{{user_id}}/drop"): {**staff_of(409), **FORM},
    ("POST", f"{COURSE}/roster/people/{{user_id}}/add"): {**staff_of(409), **FORM},
    ("POST", f"{COURSE}/roster/people/{{user_id}}/erase"): {**staff_of(403), "admin": 422, **FORM},
    ("GET", f"{COURSE}/roster/import"): staff_of(200, 303),
    ("POST", f"{COURSE}/roster/import"): {**staff_of(303), **FORM},
    ("GET", f"{COURSE}/roster/import/{{import_id}}"): staff_of(200, 303),
    ("GET", f"{COURSE}/roster/import/{{import_id}}/left-out.csv"): staff_of(200, 303),
    ("POST", f"{COURSE}/roster/import/{{import_id}}"): {**staff_of(409), **FORM},
    # No such invitation.
    ("GET", "/join"): everyone(404),
    ("POST", "/join"): {**person(404), **FORM},
    ("POST", "/join/account"): row(404, anonymous=403),
    ("GET", f"{COURSE}/extensions"): staff_of(200, 303),
    ("POST", f"{COURSE}/extensions"): {**staff_of(422), **FORM},
    ("POST", f"{COURSE}/extensions/{{extension_id}}/withdraw"): {**staff_of(404), **FORM},
    ("GET", f"{COURSE}/settings"): {**staff_of(200, 303), "ta": 403},
    ("POST", f"{COURSE}/settings"): {**staff_of(422), "ta": 403, **FORM},
    ("POST", f"{COURSE}/settings/archive"): {**staff_of(422), "ta": 403, **FORM},
    ("POST", f"{COURSE}/settings/open"): {**staff_of(409), "ta": 403},
    ("POST", f"{COURSE}/settings/clone"): {**staff_of(422), "ta": 403, **FORM},
    ("POST", f"{COURSE}/settings/purge"): {**staff_of(403), "admin": 422, **FORM},
    ("GET", f"{API}{COURSE}/regrades"): staff_of(200),
    ("POST", f"{API}{RUNG}/regrades"): staff_of(422),
    ("GET", f"{API}{COURSE}/regrades/{{regrade_id}}"): staff_of(200),
    ("GET", f"{API}{COURSE}/regrades/{{regrade_id}}/items"): staff_of(200),
    ("POST", f"{API}{COURSE}/regrades/{{regrade_id}}/{{step}}"): staff_of(409),
    ("GET", f"{API}{COURSE}/regrade-requests"): member(200),
    ("GET", f"{API}{COURSE}/regrade-requests/{{request_id}}"): owner_or_staff(200),
    ("POST", f"{API}{COURSE}/regrade-requests/{{request_id}}/messages"): owner_or_staff(422),
    ("POST", f"{API}{COURSE}/regrade-requests/{{request_id}}/answer"): staff_of(409),
    ("POST", f"{API}{COURSE}/regrade-requests/{{request_id}}/reopen"): {**owner_or_staff(403), "owner": 409},
    ("POST", f"{API}/submissions/{{public_id}}/regrade-request"): owner_or_staff(409),
    ("GET", f"{COURSE}/regrades"): staff_of(200, 303),
    ("GET", f"{COURSE}/regrades/new"): staff_of(200, 303),
    ("POST", f"{COURSE}/regrades"): {**staff_of(422), **FORM},
    ("GET", f"{COURSE}/regrades/{{regrade_id}}"): staff_of(200, 303),
    ("GET", f"{COURSE}/regrades/{{regrade_id}}/table.csv"): staff_of(200, 303),
    ("POST", f"{COURSE}/regrades/{{regrade_id}}/{{step}}"): {**staff_of(409), **FORM},
    ("GET", f"{COURSE}/regrade-requests"): member(200, 303),
    ("POST", f"{COURSE}/regrade-requests/rules"): {**staff_of(422), "ta": 403, **FORM},
    ("GET", f"{COURSE}/regrade-requests/{{request_id}}"): owner_or_staff(200, 303),
    ("POST", f"{COURSE}/regrade-requests/{{request_id}}/messages"): {**owner_or_staff(422), **FORM},
    ("POST", f"{COURSE}/regrade-requests/{{request_id}}/answer"): {**staff_of(409), **FORM},
    ("POST", f"{COURSE}/regrade-requests/{{request_id}}/reopen"): {**owner_or_staff(403), "owner": 409, **FORM},
    # There is a request already.
    ("GET", "/submissions/{public_id}/regrade-request"): owner_or_staff(303, 303),
    ("POST", "/submissions/{public_id}/regrade-request"): {**owner_or_staff(409), **FORM},
    ("GET", f"{COURSE}/preview"): staff_of(200, 303),
    ("POST", f"{COURSE}/preview"): {**staff_of(303), **FORM},
    ("POST", "/preview/end"): person(303),
    ("GET", f"{RUNG}/solutions"): staff_of_course(200, 303),
    ("GET", f"{RUNG}/milestones"): member(200, 303),
    # No node here makes profiles.
    ("POST", f"{RUNG}/milestones/profile"): {**staff_of(422), **FORM},
    # There is nothing to decide about before there is a result.
    ("POST", "/submissions/{public_id}/review"): {**staff_of_course(409), **FORM},
    ("POST", "/submissions/{public_id}/cancel"): {**owner_or_staff(403), "owner": 303},
    # Staff's grading by hand, review, similarity, statistics.
    ("GET", f"{COURSE}/submissions"): staff_of(200, 303),
    ("GET", "/submissions/{public_id}/comments"): owner_or_staff(200, 303),
    ("POST", "/submissions/{public_id}/comments"): {**staff_of_course(303), "owner": 403, **FORM},
    ("GET", "/writeups/{public_id}/comments"): owner_or_staff(200, 303),
    ("POST", "/writeups/{public_id}/comments"): {**staff_of_course(303), "owner": 403, **FORM},
    ("POST", f"{COURSE}/comments/{{comment_id}}"): {**staff_of(303), **FORM},
    ("POST", f"{COURSE}/saved-comments/{{saved_id}}/forget"): staff_of(303),
    ("GET", f"{RUNG}/rubric"): staff_of(200, 303),
    ("POST", f"{RUNG}/rubric"): {**staff_of(303), **FORM},
    ("POST", f"{RUNG}/rubric/items/{{item_id}}"): {**staff_of(303), **FORM},
    ("POST", f"{RUNG}/rubric/students/{{user_id}}"): {**staff_of(409), **FORM},
    ("GET", f"{COURSE}/review"): staff_of(200, 303),
    ("GET", "/submissions/{public_id}/evidence"): staff_of_course(200, 303),
    ("POST", "/submissions/{public_id}/evidence"): {**staff_of_course(409), **FORM},
    ("GET", "/submissions/{public_id}/appeal"): owner_or_staff(200, 303),
    ("POST", "/submissions/{public_id}/appeal"): {**owner_or_staff(403), "owner": 409, **FORM},
    ("GET", f"{COURSE}/similarity"): staff_of(200, 303),
    ("POST", f"{COURSE}/similarity"): {**staff_of(422), **FORM},
    ("GET", f"{COURSE}/similarity/{{comparison_id}}"): staff_of(200, 303),
    ("GET", f"{COURSE}/similarity/pairs/{{pair_id}}"): staff_of(200, 303),
    ("POST", f"{COURSE}/similarity/pairs/{{pair_id}}"): {**staff_of(303), **FORM},
    ("GET", f"{COURSE}/statistics"): staff_of(200, 303),
    ("GET", f"{COURSE}/statistics/{{slug}}"): staff_of(200, 303),
    ("GET", f"{COURSE}/statistics/{{slug}}/students.csv"): staff_of(200, 303),
    ("GET", f"{COURSE}/statistics/{{slug}}/failures"): staff_of(200, 303),
}
_SOURCE = "def add_one(x, out, n): ...\n"
_IDENTITY = dataclasses.asdict(NodeKey.generate().identity)
_LOGIN = {"email": "alice@example.org", "password": "a long enough password"}
_ANNOUNCEMENT = {"title": "Hello", "text": "…", "revision": "1"}
BODIES: dict[tuple[str, str], dict[str, object]] = {
    ("POST", f"{API}/tokens"): {"json": _LOGIN},
    ("POST", f"{API}{RUNG}/submissions"): {"json": {"mode": "run", "source": _SOURCE}},
    ("POST", f"{API}{RUNG}/quiz/{{question}}/answers"): {"json": {"value": 3}},
    ("POST", f"{RUNG}/quiz/{{question}}"): {"data": {"value": "3"}},
    ("POST", f"{RUNG}/milestones/profile"): {"data": {"file": "solutions/triton.py", "lane": "h200"}},
    ("POST", f"{API}/nodes/join"): {"json": {"name": "none", "code": "none", **_IDENTITY}},
    ("POST", f"{API}/nodes/invites"): {"json": {"name": "gpu-1", "lanes": ["h100"]}},
    ("PUT", f"{API}/nodes/{{name}}/grant"): {"json": {"lanes": ["cpu"]}},
    ("POST", f"{API}/nodes/{{name}}/revoke"): {"json": {}},
    # The new key did not sign the request.
    ("PUT", f"{API}/nodes/own/key"): {"json": {"consent": "", **_IDENTITY}},
    ("GET", f"{API}/attempts/{{attempt}}"): {"params": {"fence": 1}},
    ("GET", f"{API}/attempts/{{attempt}}/bundle"): {"params": {"fence": 1}},
    ("PUT", f"{API}/attempts/{{attempt}}/artefacts/{{name}}"): {
        "params": {"fence": 1},
        "content": b"x",
        "headers": {"content-type": "application/octet-stream"},
    },
    ("POST", "/operations/invites"): {"data": {"name": "gpu-1", "lanes": "h100"}},
    ("POST", "/operations/grants/{name}"): {"data": {"lanes": "cpu"}},
    ("POST", f"{COURSE}/gradebook/publish"): {"data": {"slug": "add_one", "action": "withdraw"}},
    ("POST", f"{COURSE}/gradebook/import"): {"data": {"pasted": "email,assignment,points"}},
    ("POST", f"{COURSE}/gradebook/import/apply"): {"data": {"rows": "[]", "digest": "other"}},
    ("POST", f"{COURSE}/gradebook/{{user_id}}/{{slug}}/override"): {
        "data": {"points": "5", "reason": "x", "revision": "999"}
    },
    ("POST", f"{COURSE}/gradebook/{{user_id}}/{{slug}}/undo"): {"data": {"reason": "x", "revision": "999"}},
    ("POST", "/login"): {"data": _LOGIN},
    ("POST", f"{COURSE}/schedule"): {"data": {"reason": "none"}},
    ("POST", f"{COURSE}/roster/add"): {"data": {"email": "dora@example.org", "name": "Dora"}},
    ("POST", f"{COURSE}/roster/invites"): {"data": {"days": "7"}},
    ("POST", f"{COURSE}/roster/people/{{user_id}}"): {"data": {"section": "A"}},
    ("POST", f"{COURSE}/roster/people/{{user_id}}/drop"): {"data": {"reason": "left"}},
    ("POST", f"{COURSE}/roster/people/{{user_id}}/add"): {"data": {"seen": "nothing"}},
    ("POST", f"{COURSE}/roster/people/{{user_id}}/erase"): {"data": {"typed": "nothing"}},
    ("POST", f"{COURSE}/roster/import"): {"data": {"pasted": "email\nalice@example.org"}},
    ("POST", f"{COURSE}/roster/import/{{import_id}}"): {"data": {"digest": "none"}},
    ("POST", "/join"): {"data": {"token": "none"}},
    ("POST", "/join/account"): {"data": {"token": "none"}},
    ("POST", f"{COURSE}/extensions"): {"data": {"reason": "none"}},
    ("POST", f"{COURSE}/extensions/{{extension_id}}/withdraw"): {"data": {"reason": "none"}},
    ("POST", "/courses"): {"data": {"title": "none"}},
    ("POST", f"{COURSE}/assignment-files"): {"data": {"none": "none"}},
    ("POST", f"{COURSE}/settings"): {"data": {"title": "none"}},
    ("POST", f"{COURSE}/settings/archive"): {"data": {"typed": "none"}},
    ("POST", f"{COURSE}/settings/clone"): {"data": {"slug": "new"}},
    ("POST", f"{COURSE}/settings/purge"): {"data": {"typed": "none"}},
    ("POST", f"{API}{RUNG}/regrades"): {"json": {"reason": " "}},
    ("POST", f"{API}{COURSE}/regrades/{{regrade_id}}/{{step}}"): {"json": {"revision": 99}},
    ("POST", f"{API}{COURSE}/regrade-requests/{{request_id}}/messages"): {"json": {"text": " "}},
    ("POST", f"{API}{COURSE}/regrade-requests/{{request_id}}/answer"): {
        "json": {"text": "x", "outcome": "declined", "revision": 99}
    },
    ("POST", f"{API}{COURSE}/regrade-requests/{{request_id}}/reopen"): {"json": {"text": "x"}},
    ("POST", f"{API}/submissions/{{public_id}}/regrade-request"): {"json": {"text": "x"}},
    ("POST", f"{COURSE}/regrades"): {"data": {"reason": "none"}},
    ("POST", f"{COURSE}/regrades/{{regrade_id}}/{{step}}"): {"data": {"revision": "99"}},
    ("POST", f"{COURSE}/regrade-requests/rules"): {"data": {"per_course": "none"}},
    ("POST", f"{COURSE}/regrade-requests/{{request_id}}/messages"): {"data": {"text": ""}},
    ("POST", f"{COURSE}/regrade-requests/{{request_id}}/answer"): {"data": {"text": "x", "outcome": "declined"}},
    ("POST", f"{COURSE}/regrade-requests/{{request_id}}/reopen"): {"data": {"text": "x"}},
    ("POST", "/submissions/{public_id}/regrade-request"): {"data": {"text": "x"}},
    ("POST", f"{COURSE}/preview"): {"data": {"student": "alice@example.org"}},
    ("POST", "/account/tokens"): {"data": {"name": "new"}},
    ("POST", "/account/password"): {
        "data": {"current": _LOGIN["password"], "password": "another long password", "again": "another long password"}
    },
    ("POST", "/account/second-factor/begin"): {"data": {"password": _LOGIN["password"]}},
    **{("POST", f"/account/second-factor/{step}"): {"data": {"code": "0"}} for step in ("confirm", "codes", "remove")},
    ("POST", "/password"): {"data": {"token": "none"}},
    ("POST", "/password/forgotten"): {"data": {"email": "alice@example.org"}},
    ("POST", "/notifications/settings"): {"data": {"kind": "comment", "comment.app": "1"}},
    ("POST", "/notifications/read"): {"data": {"newest": "1"}},
    ("POST", f"{COURSE}/announcements"): {"data": _ANNOUNCEMENT},
    ("POST", f"{COURSE}/announcements/{{announcement_id}}"): {"data": _ANNOUNCEMENT},
    ("POST", f"{COURSE}/announcements/{{announcement_id}}/withdraw"): {"data": {"revision": "1"}},
    ("POST", "/submissions/{public_id}/review"): {
        "data": {"decision": "cleared", "seen": "none", "reason": "Looked at."}
    },
    ("POST", "/account/courses/{course}/name"): {"data": {"shown": "name"}},
    ("PUT", f"{API}{RUNG}/drafts/{{language}}"): {"json": {"text": _SOURCE}},
    ("POST", f"{RUNG}/group/join"): {"data": {"code": "none"}},
    ("POST", f"{RUNG}/group/invite"): {"data": {"person": "nobody@example.org"}},
    ("POST", f"{RUNG}/group/take-back"): {"data": {"user_id": "1"}},
    ("POST", f"{RUNG}/group/accept"): {"data": {"group_id": "1"}},
    ("POST", f"{RUNG}/group/decline"): {"data": {"group_id": "1"}},
    ("POST", f"{RUNG}/group/change"): {"data": {"people": "", "reason": "none"}},
    ("POST", f"{RUNG}/submissions"): {"data": {"mode": "run", "language": "triton", "lane": "cpu", "source": _SOURCE}},
    ("POST", "/submissions/{public_id}/comments"): {"data": {"text": "Use a mask."}},
    ("POST", "/writeups/{public_id}/comments"): {"data": {"text": "Say how you measured."}},
    ("POST", f"{COURSE}/comments/{{comment_id}}"): {"data": {"action": "withdraw", "revision": "1"}},
    ("POST", f"{RUNG}/rubric"): {"data": {"text": "Clear", "points": "0"}},
    ("POST", f"{RUNG}/rubric/items/{{item_id}}"): {"data": {"action": "retire", "revision": "1"}},
    ("POST", f"{RUNG}/rubric/students/{{user_id}}"): {"data": {"revision": "999"}},
    ("POST", "/submissions/{public_id}/evidence"): {"data": {"action": "cleared", "seen": "none", "reason": "x"}},
    ("POST", "/submissions/{public_id}/share"): {"data": {"open": "true", "note": "Wide loads."}},
    ("POST", "/submissions/{public_id}/appeal"): {"data": {"text": "It is real."}},
    ("POST", f"{COURSE}/similarity"): {"data": {"assignment": "add_one", "courses": "999"}},
    ("POST", f"{COURSE}/similarity/pairs/{{pair_id}}"): {"data": {"mark": "looked_at", "revision": "0"}},
}


@pytest.fixture
def stage(served_stage: Stage) -> Stage:
    """Who may do what does not depend on the kind of database; once, on SQLite, is enough."""
    served_stage.put_back()
    return served_stage


@contextmanager
def answer(client: httpx.Client, route: tuple[str, str], path: str) -> Iterator[httpx.Response]:
    """The response's head: streams are not read to their end."""
    with client.stream(route[0], path, **BODIES.get(route, {})) as response:
        yield response


ATTEMPT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


def _leave_a_file(session, submission_id) -> None:
    """The node works on this submission, and has left a file."""
    if session.scalar(select(Attempt.id)) is not None:
        return
    node, at = nodes.find_node(session, name="node-1"), datetime.now(UTC)
    attempt = Attempt(
        public_id=ATTEMPT, submission_id=submission_id, node_id=node.id, fence=1, lane=Lane.cpu, line=Line.submission,
        work=Work.all, state=AttemptState.running, dispatched_at=at, lease_expires_at=at,
    )  # fmt: skip
    session.add(attempt)
    session.flush()
    store_artefact(session, node, attempt=ATTEMPT, fence=1, name="node-1", data=b"x", now=at)


def _messages(session, people) -> dict[str, int]:
    """An announcement, and of Alice's a notification and an identity; nobody has asked for a new password yet."""
    member = courses.membership(session, people.tom, "gpu")
    announcement = announcements.write(session, member, announcements.Draft("Hello", "…", tell=False))
    notification = Notification(
        user_id=people.alice.id, kind=NotificationKind.comment, title="…", url="/account",
        key=f"{announcement.id}", created_at=people.alice.created_at,
    )  # fmt: skip
    identity = OutsideIdentity(
        user_id=people.alice.id, issuer="none", subject=f"{announcement.id}", created_at=people.alice.created_at
    )
    session.add_all([notification, identity])
    session.execute(delete(LinkRequest))
    session.flush()
    return {
        "announcement_id": announcement.id,
        "notification_id": notification.id,
        "identity_id": identity.id,
    }


def _ways_in(session, people) -> dict[str, object]:
    """An invitation, and a table of people that nobody agreed to; nobody of them was given an extension."""
    member, at = courses.membership(session, people.tom, "gpu"), people.alice.created_at
    made = invites.create(session, member, role=Role.student, section="", days=1, most_uses=1, now=at)
    table = imports.store(session, member, b"email\nalice@example.org", filename="", now=at)
    return {"invite_id": made.row.id, "import_id": table.public_id, "extension_id": 1, "user_id": people.alice.id}


def _graded_by_hand(session, made) -> dict[str, int]:
    """A comment on Alice's submission, an item of the rubric, a kept comment, and a pair that a comparison found."""
    at = made.uploaded_at
    comment = Comment(
        course_id=made.course_id, assignment_id=made.assignment_id, user_id=made.user_id, submission_id=made.id,
        author_id=made.user_id, text="x", showing=Showing.at_once, created_at=at, revision=1,
    )  # fmt: skip
    item = RubricItem(assignment_id=made.assignment_id, text="Clear", points=1.0, position=1, revision=1)
    kept = SavedComment(course_id=made.course_id, text="x", digest=ids.public_id(), created_at=at)
    comparison = Comparison(
        course_id=made.course_id, assignment_id=made.assignment_id, state=ComparisonState.done, created_at=at,
        scope={"which": "latest", "courses": [], "public": True, "staff": True},
    )  # fmt: skip
    session.add_all([comment, item, kept, comparison])
    session.flush()
    pair = SimilarPair(
        comparison_id=comparison.id, left_id=made.id, right_id=made.id, share=1.0, left_share=1.0, right_share=1.0,
        common=100, matches={"left": [], "right": [], "left_handed_out": [], "right_handed_out": []}, revision=0,
    )  # fmt: skip
    session.add(pair)
    session.flush()
    return {
        "entry": ids.public_id(), "comment_id": comment.id, "item_id": item.id, "saved_id": kept.id,
        "comparison_id": comparison.id, "pair_id": pair.id,
    }  # fmt: skip


def _write_up(session, made) -> str:
    """One of Alice's, for the same assignment."""
    found = session.scalar(select(WriteUp.public_id))
    if found is None:
        found = ids.public_id()
        row = WriteUp(
            public_id=found, number=1, course_id=made.course_id, assignment_id=made.assignment_id,
            user_id=made.user_id, format=WriteUpFormat.text, filename="w.txt", data=b"x", size=1, sha256="0" * 64,
            trace="0" * 32, uploaded_at=made.uploaded_at,
        )  # fmt: skip
        session.add(row)
        session.flush()
    return found


def _regrades(session, made) -> dict[str, object]:
    """A proposal about Alice's submission, and a request of hers."""
    request = session.scalar(select(RegradeRequest))
    regrade = session.scalar(select(Regrade))
    if request is None:
        same = {"course_id": made.course_id, "assignment_id": made.assignment_id, "created_at": made.uploaded_at}
        request = RegradeRequest(submission_id=made.id, user_id=made.user_id, state=RequestState.open, **same)
        regrade = Regrade(
            version_id=made.version_id, kind=RegradeKind.rerun, selection={"which": "all"}, reason="x",
            state=RegradeState.drafted, **same,
        )  # fmt: skip
        session.add_all([request, regrade])
        session.flush()
    return {"regrade_id": regrade.id, "request_id": request.id, "step": "start"}


@pytest.fixture
def fill(stage: Stage) -> Callable[[str], str]:
    """Put ids that belong to Alice into a path; what a request uses up is made anew for each."""
    database, people, config, made = stage.database, stage.people, stage.config, stage.made
    with database.reading() as session:
        bundle = session.get(Submission, made.id, options=[]).version_id
    assert bundle

    def call(path: str) -> str:
        with database.transaction() as session:
            token, _text = accounts.create_token(session, people.alice, name="to revoke")
            login_id = 0
            if "session_id" in path:
                alice = accounts.user_by_email(session, "alice@example.org")
                login, _text = accounts.start_login(session, alice, place=Place(""), agent="", config=config)
                login_id = login.id
            made_anew = {**_graded_by_hand(session, made), **_messages(session, people), **_ways_in(session, people)}
            made_anew |= _regrades(session, made)
            write_up = _write_up(session, made)
            if "{attempt}" in path:
                _leave_a_file(session, made.id)
            subject = f"course:{people.course.slug}"
            alerts.raise_alert(session, AlertKind.reconciliation_failed, subject, "…", people.alice.created_at)
            alert_id = alerts.open_alerts(session)[0].id
        return path.format(
            course="gpu",
            slug="add_one",
            question="waves",
            public_id=write_up if path.startswith("/writeups/") else made.public_id,
            language="triton",
            token_id=token.id,
            session_id=login_id,
            alert_id=alert_id,
            attempt=ATTEMPT,
            name="node-1",
            action="drain",
            **made_anew,
            provider="nobody",
            handle="quiet-otter-alice",
        )

    return call


@pytest.fixture
def client_of(stage: Stage) -> Iterator[Callable[[str, str], httpx.Client]]:
    """A new client of this role: with a token for the API, with a login for pages."""
    with ExitStack() as stack:
        site = stage.site(stack)

        def call(role: str, path: str) -> httpx.Client:
            if role == "anonymous":
                return site.browser()
            if role == "node":
                return site.browser(auth=Signature("node-1", stage.node_key))
            user = getattr(stage.people, PERSONS[role])
            return site.bearer(user) if path.startswith(API) else site.logged_in(user, stage.config)

        yield call


def test_every_route_has_its_row_and_every_row_its_route(served_stage):
    routes = {
        (method, route.path)
        for route in iter_route_contexts(served_stage.app.routes)
        for method in (route.methods or ())
        if method not in {"HEAD", "OPTIONS"}
    }
    assert routes == set(TABLE)


@pytest.mark.full("slow")
@pytest.mark.parametrize("route", TABLE, ids=" ".join)
def test_each_role_gets_what_the_table_says(route, fill, client_of):
    found = {}
    for role in ROLES:
        with answer(client_of(role, route[1]), route, fill(route[1])) as response:
            found[role] = response.status_code
    assert found == TABLE[route]


CRAFTED = [
    "\n".join(f"x{n}=0\ns{(n + shift) % 49}='''" for n in range(70_000)).encode()[:MAX_SOURCE_BYTES]
    for shift in (0, 24)
]
"""Two sources of the largest size, whose lines are alike in many ways."""
HOSTILE_LOG = (("é\u202e<script>" * 20 + "\n") * 80)[:MAX_LOG_CHARS]
MOST_S = 1.5
"""Of processor time for one request, of all processes of the server; three times what is aimed at."""


@pytest.fixture
def hostile(stage: Stage) -> None:
    """Everything that Alice may hand in is as large and as hard to lay out, colour or compare as the edge takes it."""
    with stage.database.transaction() as session:
        first = session.get_one(Submission, stage.made.id)
        first.source = CRAFTED[0]
        copied = {column.key: getattr(first, column.key) for column in Submission.__table__.columns}
        another = {"id": None, "public_id": ids.public_id(), "number": first.number + 1, "source": CRAFTED[1]}
        session.add(Submission(**{**copied, **another}))
        _leave_a_file(session, first.id)
        attempt = session.scalars(select(Attempt)).one()
        found = dataclasses.replace(wrong(), log=HOSTILE_LOG, explanation="![" * 2_000)
        write_result(session, first, attempt, found, now=first.uploaded_at)
        _write_up(session, first)
        row = session.scalars(select(WriteUp)).one()
        row.data, row.format = ("[a](" * (SHOWN_BYTES // 4)).encode(), WriteUpFormat.markdown
        same = {"course_id": first.course_id, "assignment_id": first.assignment_id, "user_id": first.user_id}
        for text in ("$a" * 5_000, "*a_" * 3_333, "> " * 5_000):
            session.add(
                Comment(
                    **same, submission_id=first.id, author_id=first.user_id, text=text, showing=Showing.at_once,
                    created_at=first.uploaded_at, revision=1,
                )
            )  # fmt: skip


def _processor_s() -> float:
    return time.process_time() + APART.processor_s()


def _slower_now() -> float:
    """How many times as long processor time is on a machine whose cores are shared; 1 at least."""
    return max(1.0, statistics.median(yardstick() for _ in range(5)) / YARDSTICK_S)


@pytest.mark.full("slow")
@pytest.mark.parametrize("route", [one for one in TABLE if one[0] == "GET" and "/events" not in one[1]], ids=" ".join)
def test_no_page_costs_much_whatever_was_handed_in(route, hostile, fill, client_of, request):
    path = fill(route[1])
    # What thousands of other tests left behind is not this page's to look through.
    gc.freeze()
    request.addfinalizer(gc.unfreeze)
    for role in ("owner", "ta", "admin"):
        client = client_of(role, route[1])
        began = _processor_s()
        client.get(path, params=BODIES.get(route, {}).get("params"))
        assert _processor_s() - began < MOST_S * _slower_now(), role
