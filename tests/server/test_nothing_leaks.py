"""What is secret reaches nobody it is not for: every page and every answer is fetched as everybody, and read through.

Markers are planted in every secret place of a course. Then each role fetches every GET route there is, with the ids of
everything that was planted, its own and others', and with every query that a route takes. No body and no header may
hold a marker that is not for that role. A route with a parameter that `PLACES` does not know fails: plant something.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from sqlalchemy import select

from autograder.contract import (
    Finding,
    FindingKind,
    Frame,
    GradeResult,
    Lane,
    Language,
    Mismatch,
    Pattern,
    StudentError,
    Verdict,
)
from server import alerts, announcements, audit, ids, models
from server.accounts import accounts, links
from server.accounts.places import Place
from server.courses import courses
from server.grading.artefacts import store_artefact
from server.grading.interface import Outcome
from server.messages import messages
from server.models import AlertKind, NotificationKind
from server.models.regrades import RegradeKind, RegradeState, RequestState
from server.models.roster import RosterImport
from server.models.staff import ComparisonState, Showing
from server.models.student import Draft, WriteUp, WriteUpFormat
from server.nodes import nodes
from tests.doubles.world import World, case, measurement, passed, wrong

"""Each test fetches several hundred pages."""

ROLES = {"anonymous": "", "stranger": "stranger", "dropped": "carol", "other": "bob", "owner": "alice"}
"""Everybody below staff: of this course nobody, its former student, and two students; most of it is about Alice."""
NOBODY: frozenset[str] = frozenset()
OWNER, OTHER = frozenset({"owner"}), frozenset({"other"})
FROM_FILES = "SECRET-OF-THE-STAFF"


@dataclass
class Planted:
    """What is where.

    Attributes:
        markers: secret → who may see it.
        places: what stands for a parameter of an address.
        queries: what stands for a parameter after the question mark.
    """

    markers: dict[str, frozenset[str]] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    queries: dict[str, list[str]] = field(default_factory=dict)

    def hide(self, what: str, may: frozenset[str] = NOBODY) -> str:
        """A new marker."""
        marker = f"LEAK-{what}-{secrets.token_hex(4)}"
        self.markers[marker] = may
        return marker

    def keep(self, secret: str, may: frozenset[str] = NOBODY) -> str:
        """Something that is secret as it is."""
        self.markers[secret] = may
        return secret


@pytest.fixture
def database_url(sqlite_url):
    """What is shown does not depend on the database."""
    return sqlite_url


@pytest.fixture
def config(config):
    """The rung's solution says that it is secret, as its hidden cases and its answer key do already."""
    solution = config.reference / "add_one" / "solutions" / "triton.py"
    solution.write_text(f"# {FROM_FILES}\n{solution.read_text()}")
    return config


@pytest.fixture
def planted(database, people, config, submit):
    found = Planted()
    found.keep(FROM_FILES)
    world = World(database, config, now=datetime.now(UTC))
    world.add_node("anvil", lanes=(Lane.cpu, Lane.h200))
    submissions = _graded(found, world, people, submit)
    with database.transaction() as session:
        _people(found, session, people, config)
        _staff_only(found, session, people, submissions)
        _students_own(found, session, people, submissions)
        _announced(found, session, people)
    found.places |= {
        "course": [people.course.slug, "other"],
        "slug": ["add_one", "none"],
        "provider": ["none"],
        "handle": [people.alice.handle, people.bob.handle],
        "user_id": [str(people.alice.id), str(people.bob.id)],
        "name": ["judge.log", "none"],
    }
    own = [submissions[0].public_id, submissions[-1].public_id]
    found.queries |= {
        "copy": ["staff", "whole", "student"],
        "old": own,
        "new": own,
        "against": own,
        "student": [str(people.bob.id)],
        "user": [str(people.bob.id), "bob@example.org"],
        "version": ["1"],
        "lane": ["cpu", "h200", "none"],
        "frozen": ["true"],
        "section": ["A"],
        "search": ["bob"],
        "q": ["bob"],
        "page": ["1", "2"],
        "before": ["999999"],
        "format": ["csv", "canvas"],
        "assignment": ["add_one"],
        "dropped": ["1"],
        "next": ["/operations"],
        "email": ["bob@example.org"],
        "box": ["open", "answered"],
        "show": ["all"],
        "kind": ["ptx", "sass"],
    }
    return found


def _graded(found: Planted, world: World, people, submit) -> list[models.Submission]:
    """Results of several verdicts, whose every hidden part says what it is."""

    def hidden(verdict: Verdict):
        return case(
            f"hidden {found.hide('case-name')} n=7919",
            verdict,
            message=found.hide("case-message"),
            seconds=7919.5,
            mismatch=Mismatch(
                output="out", shape=(7919,), dtype="float32", wrong=1, total=7919, pattern=Pattern.scattered,
                where=found.hide("where"), index=(3,), expected=found.hide("expected"), got=found.hide("got"),
                tolerance="0",
            ) if verdict is Verdict.wrong_answer else None,
            error=StudentError(found.hide("error-kind"), found.hide("error"), (Frame(3, found.hide("frame"), "pass"),)),
        )  # fmt: skip

    def secretive(plain: GradeResult, verdict: Verdict, **changes: object) -> GradeResult:
        cases = (*(item for item in plain.cases if not item.name.startswith("hidden")), hidden(verdict))
        # No rung ranks hidden cases; if one did, its times would be as secret as its size.
        changes = {"measurements": (*plain.measurements, measurement(cases[-1].name, 3.0)), **changes}
        findings = (Finding(FindingKind.library_call, found.hide("finding"), {found.hide("key"): found.hide("value")}),)
        return dataclasses.replace(plain, cases=cases, findings=findings, **changes)

    held = {"held": True, "held_reason": found.hide("held-reason"), "remeasure": ""}
    results = [
        (people.alice, OWNER, Lane.cpu, secretive(wrong(), Verdict.wrong_answer)),
        (people.alice, OWNER, Lane.cpu, secretive(passed(2.0), Verdict.passed)),
        (people.alice, OWNER, Lane.h200, secretive(passed(0.5), Verdict.passed, **held)),
        (
            people.alice,
            OWNER,
            Lane.cpu,
            secretive(
                dataclasses.replace(wrong(), verdict=Verdict.illegal_access),
                Verdict.illegal_access,
            ),
        ),
        (people.bob, OTHER, Lane.h200, secretive(passed(1.5), Verdict.passed)),
        (people.bob, OTHER, Lane.cpu, secretive(wrong(), Verdict.wrong_answer)),
    ]
    made = []
    for person, may, lane, result in results:
        # Other code each time: identical sources share their samples.
        source = f"# {found.hide('source', may)}\nVERSION = {len(made)}\ndef add_one(x, out, n): ...\n".encode()
        made.append(submit(person, source, lane=lane))
        world.now = datetime.now(UTC) + timedelta(seconds=1)
        while (task := world.claim()) is not None:
            # On a lane that measures apart the checked half comes first.
            assert world.finish(task, result) is Outcome.applied
            world.now += timedelta(seconds=1)
    found.places["public_id"] = [row.public_id for row in made]
    return made


def _people(found: Planted, session, people, config) -> None:
    """What nobody may know of another: addresses, names, secrets of log-ins."""
    for person, may in ((people.alice, OWNER), (people.bob, OTHER)):
        user = session.get_one(models.User, person.id)
        user.email = found.keep(f"leak-{person.id}-{secrets.token_hex(4)}@example.org", may)
        user.name = found.keep(f"Leak {person.id} {secrets.token_hex(4)}", may)
        _login, cookie = accounts.start_login(session, user, place=Place("192.0.2.7"), agent="x", config=config)
        found.keep(cookie)
        token, text = accounts.create_token(session, user, name=found.hide("token-name", may))
        found.keep(text)
        found.keep(token.token_hash)
        links.request_reset(session, email=user.email, address="192.0.2.7")
    session.flush()
    found.keep(session.get_one(models.User, people.alice.id).password_hash)
    for hashes in (models.LoginSession.token_hash, models.PasswordLink.token_hash):
        for value in session.scalars(select(hashes)):
            found.keep(str(value))
    for url in session.scalars(select(models.Mail.url)):
        found.keep(url.partition("token=")[2])


def _staff_only(found: Planted, session, people, submissions: Sequence[models.Submission]) -> None:
    at, first = datetime.now(UTC), submissions[0]
    tom = session.get_one(models.User, people.tom.id)
    attempt = session.scalars(select(models.Attempt).order_by(models.Attempt.id)).first()
    found.places["attempt"] = [attempt.public_id]
    found.places["bundle_hash"] = list(session.scalars(select(models.Bundle.hash)))
    attempt.reason = found.hide("attempt-reason")
    attempt.state, attempt.lease_expires_at = models.AttemptState.running, at + timedelta(hours=1)
    node = nodes.find_node(session, name="anvil")
    data = found.hide("artefact").encode()
    store_artefact(session, node, attempt=attempt.public_id, fence=attempt.fence, name="judge.log", data=data, now=at)
    attempt.state = models.AttemptState.finished
    subject = f"submission:{first.public_id}"
    alerts.raise_alert(session, AlertKind.result_held, subject, found.hide("alert"), at)
    audit.record(
        session, action="submission.reviewed", subject=subject, actor=tom, reason=found.hide("audit-reason"),
        detail={"note": found.hide("audit-detail")},
    )  # fmt: skip
    for submission in submissions:
        session.add(
            models.Comment(
                course_id=people.course.id, assignment_id=submission.assignment_id, user_id=submission.user_id,
                submission_id=submission.id, author_id=tom.id, text=found.hide("comment-before-grades"),
                showing=Showing.with_grades, created_at=at, first_line=1, last_line=1,
            )
        )  # fmt: skip
    session.add(
        models.SavedComment(course_id=people.course.id, text=found.hide("saved"), digest="0" * 64, created_at=at)
    )
    _similar(found, session, people, submissions, at)
    _regraded(found, session, people, submissions, at)
    shared = models.SharedSource(
        submission_id=submissions[1].id, user_id=people.alice.id, public_id=ids.public_id(), is_open=True,
        note=found.hide("shared-before-the-end", OWNER), by_staff=False, changed_at=at,
    )  # fmt: skip
    session.add(shared)
    found.places["entry"] = [shared.public_id]
    row = RosterImport(
        public_id=ids.public_id(), course_id=people.course.id, uploaded_by_id=tom.id,
        filename=found.hide("roster-file"), people=[], troubles=[[2, found.hide("roster-line")]],
        passed_over=[], created_at=at,
    )  # fmt: skip
    session.add(row)
    found.places["import_id"] = [row.public_id]


def _similar(found: Planted, session, people, submissions, at: datetime) -> None:
    comparison = models.Comparison(
        course_id=people.course.id, assignment_id=submissions[0].assignment_id, scope={}, created_at=at,
        state=ComparisonState.done, error=found.hide("comparison"),
    )  # fmt: skip
    session.add(comparison)
    session.flush()
    pair = models.SimilarPair(
        comparison_id=comparison.id, left_id=submissions[0].id, right_id=submissions[-1].id, share=0.9, left_share=0.9,
        right_share=0.9, common=10, matches={"left": [], "right": []}, reason=found.hide("similar"),
    )  # fmt: skip
    session.add(pair)
    session.flush()
    found.places |= {"comparison_id": [str(comparison.id)], "pair_id": [str(pair.id)]}


def _regraded(found: Planted, session, people, submissions, at: datetime) -> None:
    regrade = models.Regrade(
        course_id=people.course.id, assignment_id=submissions[0].assignment_id, version_id=submissions[0].version_id,
        kind=next(iter(RegradeKind)), selection={}, reason=found.hide("regrade-reason"), state=RegradeState.ready,
        created_at=at,
    )  # fmt: skip
    theirs = models.RegradeRequest(
        course_id=people.course.id, assignment_id=submissions[-1].assignment_id, submission_id=submissions[-1].id,
        user_id=people.bob.id, state=next(iter(RequestState)), created_at=at,
    )  # fmt: skip
    session.add_all([regrade, theirs])
    session.flush()
    session.add(
        models.RegradeMessage(
            request_id=theirs.id, author_id=people.bob.id, by_staff=False, text=found.hide("request", OTHER), at=at
        )
    )
    found.places |= {"regrade_id": [str(regrade.id)], "request_id": [str(theirs.id)]}


def _students_own(found: Planted, session, people, submissions: Sequence[models.Submission]) -> None:
    at, assignment = datetime.now(UTC), submissions[0].assignment_id
    told = []
    for person, may in ((people.alice, OWNER), (people.bob, OTHER)):
        session.add(
            Draft(
                user_id=person.id, assignment_id=assignment, language=Language.triton, text=found.hide("draft", may),
                revision=1, saved_at=at,
            )
        )  # fmt: skip
        text = found.hide("write-up", may).encode()
        paper = WriteUp(
            public_id=ids.public_id(), number=1, course_id=people.course.id, assignment_id=assignment,
            user_id=person.id, format=WriteUpFormat("md"), filename="paper.md", data=text, size=len(text),
            sha256="0" * 64, trace="0" * 32,
            uploaded_at=at,
        )  # fmt: skip
        session.add(paper)
        found.places["public_id"].append(paper.public_id)
        title = found.hide("notification", may)
        about = {"course_id": people.course.id, "title": title, "url": "/account", "key": "k"}
        messages.notify(session, [person.id], NotificationKind.comment, **about)
        told.append(session.scalars(select(models.Notification).where(models.Notification.title == title)).one().id)
        session.add(
            models.Extension(
                course_id=people.course.id, assignment_id=assignment, user_id=person.id, due_at=at + timedelta(days=9),
                reason=found.hide("extension-reason", may), at=at,
            )
        )  # fmt: skip
        session.add(
            models.GradeOverride(
                course_id=people.course.id, assignment_id=assignment, user_id=person.id, points=1.0, at=at,
                reason=found.hide("override-reason", may),
            )
        )  # fmt: skip
    found.places["notification_id"] = [str(item) for item in told]


def _announced(found: Planted, session, people) -> None:
    tom = courses.membership(session, people.tom, "gpu")
    drafts = [
        announcements.Draft("To all", "…"),
        announcements.Draft(
            found.hide("announcement"), found.hide("announcement"), datetime.now(UTC) + timedelta(days=1)
        ),
        announcements.Draft(found.hide("withdrawn"), found.hide("withdrawn"), tell=False),
    ]
    rows = [announcements.write(session, tom, draft) for draft in drafts]
    announcements.withdraw(session, tom, rows[-1].id, revision=1)
    found.places["announcement_id"] = [str(row.id) for row in rows]


def routes_of(app) -> list[tuple[str, frozenset[str]]]:
    """Every GET route, and what it takes after the question mark."""
    found = []
    for route in iter_route_contexts(app.routes):
        if "GET" in (route.methods or ()):
            real = route.original_route
            found.append(
                (route.path, frozenset(_queries(real.dependant)) if isinstance(real, APIRoute) else frozenset())
            )
    return found


def _queries(dependant) -> Iterator[str]:
    for query in dependant.query_params:
        fields = getattr(query.field_info.annotation, "model_fields", None)
        yield from fields or [query.alias]
    for below in dependant.dependencies:
        yield from _queries(below)


def addresses(app, planted: Planted) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Every route with the first of everything, with each other thing in its place, and with each of its queries."""
    for path, queries in routes_of(app):
        names = re.findall(r"{(\w+)}", path)
        unknown = [name for name in names if name not in planted.places]
        assert not unknown, f"nothing was planted for {unknown} of {path}"
        first = {name: planted.places[name][0] for name in names}
        yield path.format(**first), {}
        for name in names:
            for value in planted.places[name][1:]:
                yield path.format(**{**first, name: value}), {}
        for query in sorted(queries & planted.queries.keys()):
            for value in planted.queries[query]:
                yield path.format(**first), {query: value}


def read(client: httpx.Client, address: str, query: Mapping[str, str]) -> tuple[int, str]:
    """An answer as text, its head first; a stream is read to its end, which comes at once after a final result."""
    with client.stream("GET", address, params=query) as answer:
        body = answer.read()
    head = "".join(f"{name}: {value}\n" for name, value in answer.headers.items())
    return answer.status_code, f"{head}\n{body.decode('utf-8', 'replace')}"


@pytest.mark.full("slow")
@pytest.mark.parametrize("role", ROLES)
def test_nobody_below_staff_sees_what_is_not_for_them(*, role, site, app, planted, people, config):
    clients = [site.browser()]
    if role != "anonymous":
        user = getattr(people, ROLES[role])
        clients = [site.bearer(user), site.logged_in(user, config)]
    secret = [marker for marker, may in planted.markers.items() if role not in may]
    found, answers = [], {}
    for address, query in addresses(app, planted):
        client = clients[0] if address.startswith("/api/") else clients[-1]
        status, text = read(client, address, query)
        answers[status] = answers.get(status, 0) + 1
        assert status < 500, (address, query, text[-2000:])
        # What was asked for stands in a page's links; that tells nobody anything.
        asked = {*query.values()}
        found += [(address, query, marker) for marker in secret if marker in text and marker not in asked]
    assert found == []
    assert answers[200] > 8, answers


@pytest.mark.full("slow")
def test_the_markers_are_where_staff_see_them(site, app, planted, people, config):
    """Or the other test would find nothing because nothing is there."""
    clients = [site.bearer(people.tom), site.logged_in(people.tom, config)]
    seen = set()
    for address, query in addresses(app, planted):
        client = clients[0] if address.startswith("/api/") else clients[-1]
        _status, text = read(client, address, query)
        seen |= {marker for marker in planted.markers if marker in text}
    kinds = {marker.rsplit("-", 1)[0] for marker in seen if marker.startswith("LEAK-")}
    assert kinds >= {
        "LEAK-case-name", "LEAK-finding", "LEAK-held-reason", "LEAK-artefact", "LEAK-source", "LEAK-announcement",
        "LEAK-comment-before-grades", "LEAK-write-up",
    }  # fmt: skip


@pytest.mark.full("slow")
@pytest.mark.parametrize(("role", "kinds"), [("owner", {"source", "notification", "draft"}), ("other", {"source"})])
def test_what_is_ones_own_is_shown(*, role, kinds, site, app, planted, people, config):
    client, api = site.logged_in(getattr(people, ROLES[role]), config), site.bearer(getattr(people, ROLES[role]))
    text = "".join(
        read(api if address.startswith("/api/") else client, address, query)[1]
        for address, query in addresses(app, planted)
        if not query
    )
    seen = {marker for marker, may in planted.markers.items() if role in may and marker in text}
    own = {marker.removeprefix("LEAK-").rpartition("-")[0] for marker in seen}
    assert kinds <= own
