"""The page that says whether everything is accounted for: who sees what of it, and what its buttons do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from server import alerts
from server.courses import courses
from server.models import (
    Alert,
    AlertKind,
    AuditEntry,
    Course,
    Node,
    NodeInvite,
    ReconciliationRun,
    Rehearsal,
    Role,
    Submission,
    User,
)
from server.nodes import access, nodes
from server.reconciliation import runs as reconciliation
from tests.doubles.machines import make_node


@pytest.fixture
def staffed(site, people, config):
    """Clients of the TA, of an admin, and of the instructor of the other course."""
    return {name: site.logged_in(getattr(people, name), config) for name in ("tom", "admin", "stranger", "alice")}


@pytest.fixture
def told(database, people, submit):
    """An alert about the course, one about its submission, one about a node; the submission's receipt."""
    receipt = submit(people.alice).public_id
    with database.transaction() as session:
        for kind, subject in (
            (AlertKind.reconciliation_failed, "course:gpu"),
            (AlertKind.submission_failed, f"submission:{receipt}"),
            (AlertKind.node_rests, "node:anvil"),
            (AlertKind.reconciliation_failed, "course:other"),
        ):
            alerts.raise_alert(session, kind, subject, f"about {subject}", datetime.now(UTC))
        make_node(session, name="anvil", now=datetime.now(UTC))
    return receipt


def alert_id(database, subject):
    with database.reading() as session:
        return session.scalars(select(Alert.id).where(Alert.subject == subject, Alert.resolved_at.is_(None))).one()


def test_the_sum_is_shown_to_staff_and_on_the_ladder_to_students(staffed, database, submit, people):
    for person in (people.alice, people.bob):
        submit(person)
    assert reconciliation.check_due(database) == 2
    page = staffed["tom"].get("/operations").text
    assert "All 2 submissions accounted for" in page
    assert "Another course" not in page
    ladder = staffed["alice"].get("/courses/gpu").text
    assert "All 2 submissions accounted for: 0 final and 2 on their way" in ladder
    assert "/operations" not in ladder
    assert "/operations" in staffed["tom"].get("/courses/gpu").text


def test_what_was_not_checked_lately_is_not_called_accounted_for(staffed, database, submit, people):
    submit(people.alice)
    assert "have not been checked recently" in staffed["tom"].get("/operations").text
    assert "accounted for" not in staffed["alice"].get("/courses/gpu").text
    reconciliation.check_due(database)
    long_ago = datetime.now(UTC) - timedelta(hours=2)
    with database.transaction() as session:
        session.execute(update(ReconciliationRun).values(checked_at=long_ago))
    assert "have not been checked recently" in staffed["tom"].get("/operations").text
    assert "last accounted for 2 hours ago" in staffed["alice"].get("/courses/gpu").text


def test_accounts_that_do_not_add_up_are_said_to_staff_and_students(staffed, database, submit, people):
    receipt = submit(people.alice).public_id
    with database.transaction() as session:
        session.execute(update(Submission).values(source_hash="gone"))
    assert staffed["tom"].post("/operations/check").status_code == 303
    page = staffed["tom"].get("/operations").text
    assert "The accounts do not add up" in page
    assert "source_present" in page
    assert receipt in page
    assert "do not add up; staff were told" in staffed["alice"].get("/courses/gpu").text
    assert receipt not in staffed["stranger"].get("/operations").text


def test_staff_of_one_course_see_nothing_of_another_nor_of_the_machines(staffed, database, told):
    tom, admin, stranger = (staffed[name].get("/operations").text for name in ("tom", "admin", "stranger"))
    texts = ("course:gpu", told, "course:other", "node:anvil", "GPU programming", "Another course", "Quarantine")
    assert [text for text in texts if text in tom] == ["course:gpu", told, "GPU programming"]
    assert [text for text in texts if text in stranger] == ["course:other", "Another course"]
    assert [text for text in texts if text in admin] == list(texts)


def test_leases_and_places_are_those_of_ones_courses(staffed, database, told):
    page = staffed["stranger"].get("/operations").text
    assert "No submissions yet." in page
    assert "No node is grading." in page


def test_an_alert_is_resolved_by_its_own_staff_and_leaves_a_trail(staffed, database, told, people):
    mine, others = alert_id(database, "course:gpu"), alert_id(database, "course:other")
    machines = alert_id(database, "node:anvil")
    for hidden in (others, machines, 10**9):
        assert staffed["tom"].post(f"/operations/alerts/{hidden}/resolve").status_code == 404
    assert staffed["tom"].post(f"/operations/alerts/{mine}/resolve").status_code == 303
    assert staffed["tom"].post(f"/operations/alerts/{mine}/resolve").status_code == 404
    assert staffed["admin"].post(f"/operations/alerts/{machines}/resolve").status_code == 303
    with database.reading() as session:
        row = session.get_one(Alert, mine)
        assert row.resolved_by_id == people.tom.id
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "alert.resolved")).first()
        assert (entry.actor_id, entry.subject) == (people.tom.id, "course:gpu")
        assert session.get_one(Alert, others).resolved_at is None


@pytest.mark.parametrize(
    ("action", "undo", "column"),
    [
        ("drain", "undrain", "drained_at"),
        ("quarantine", "release", "quarantine"),
        ("disable", "enable", "disabled_at"),
    ],
)
def test_an_admin_changes_what_a_node_is_given(*, staffed, database, told, people, action, undo, column):
    def now():
        with database.reading() as session:
            return getattr(session.scalars(select(Node).where(Node.name == "anvil")).one(), column)

    assert staffed["tom"].post(f"/operations/nodes/anvil/{action}").status_code == 404
    assert not now()
    for verb in (action, undo):
        assert staffed["admin"].post(f"/operations/nodes/anvil/{verb}").status_code == 303
        assert bool(now()) is (verb == action)
    with database.reading() as session:
        trail = session.execute(
            select(AuditEntry.action, AuditEntry.actor_id)
            .where(AuditEntry.subject == "node:anvil")
            .order_by(AuditEntry.id)
        ).all()
    assert trail == [(f"node.{action}", people.admin.id), (f"node.{undo}", people.admin.id)]


def test_a_node_that_an_admin_puts_back_is_let_in_at_the_broker_again(staffed, database, told, config, monkeypatch):
    let_in = []
    monkeypatch.setattr(access, "grant", lambda url, found: let_in.append((url, list(found))))
    assert staffed["admin"].post("/operations/nodes/anvil/disable").status_code == 303
    assert let_in == []
    assert staffed["admin"].post("/operations/nodes/anvil/enable").status_code == 303
    with database.reading() as session:
        key = nodes.find_node(session, name="anvil").broker_hash
    assert let_in == [(config.broker_url, [("anvil", key)])]


def test_a_node_or_an_action_that_is_none_is_not_there(staffed, told):
    assert staffed["admin"].post("/operations/nodes/none/drain").status_code == 404
    assert staffed["admin"].post("/operations/nodes/anvil/explode").status_code == 404


def test_the_last_rehearsal_is_shown_and_its_report_to_admins(staffed, database):
    assert "None was recorded" in staffed["tom"].get("/operations").text
    with database.transaction() as session:
        for day, passed in ((1, True), (2, False)):
            at = datetime(2026, 11, day, tzinfo=UTC)
            report = {"lost": "<script>alert(1)</script>"}
            session.add(Rehearsal(at=at, passed=passed, machine=f"machine {day}", report=report))
    tom, admin = (staffed[name].get("/operations").text for name in ("tom", "admin"))
    assert "Failed" in tom
    assert "machine 2" in tom
    assert "lost" not in tom.split("Last rehearsal")[1].split("</section>")[0]
    assert "lost" in admin
    assert "<script>alert" not in admin


def test_what_a_node_says_of_itself_cannot_rearrange_the_page(staffed, database):
    with database.transaction() as session:
        node, _key = make_node(session, name="anvil", now=datetime.now(UTC))
        node.lanes = ["<b>cpu</b>"]
        alerts.raise_alert(session, AlertKind.forged_message, "<i>x</i>", "<script>1</script>\u202e", datetime.now(UTC))
    page = staffed["admin"].get("/operations").text
    assert "<b>cpu" not in page
    assert "<i>x" not in page
    assert "<script>1" not in page
    assert "\u202e" not in page


def test_an_admin_of_an_empty_installation_gets_a_page(site, database, config):
    with database.transaction() as session:
        user = User(email="a@b.c", name="A", handle="a", is_admin=True, created_at=datetime.now(UTC))
        session.add(user)
    page = site.logged_in(user, config).get("/operations").text
    assert "There is no course yet" in page
    with database.transaction() as session:
        course = courses.create_course(session, slug="new", title="New")
        courses.enrol(session, course=session.get_one(Course, course.id), user=user, role=Role.student)
    assert "have not been checked recently" in site.logged_in(user, config).get("/operations").text


def test_an_admin_makes_a_code_that_says_what_the_node_may_grade(staffed, database, told):
    page = staffed["admin"].post(
        "/operations/invites", data={"name": "gpu-1", "lanes": ["h100", "h200"], "courses": "gpu"}
    )
    assert page.status_code == 201
    assert "ladder node join" in page.text
    with database.reading() as session:
        invite = session.scalars(select(NodeInvite)).one()
        assert (invite.name, invite.lanes, len(invite.courses)) == ("gpu-1", ["h100", "h200"], 1)
    assert "ladder node join" not in staffed["admin"].get("/operations").text
    for wrong in ({"name": "gpu-1"}, {"name": "GPU", "lanes": "cpu"}, {"name": "a", "lanes": "cpu", "courses": "none"}):
        assert staffed["admin"].post("/operations/invites", data=wrong).status_code == 422


def test_an_admin_changes_what_a_node_may_grade_and_revokes_its_key(staffed, database, told):
    assert staffed["admin"].post("/operations/grants/anvil", data={"lanes": ["cpu"]}).status_code == 303
    assert "May grade cpu" in staffed["admin"].get("/operations").text
    assert staffed["admin"].post("/operations/grants/anvil", data={}).status_code == 422
    assert staffed["admin"].post("/operations/grants/none", data={"lanes": ["cpu"]}).status_code == 404
    assert staffed["admin"].post("/operations/nodes/anvil/revoke").status_code == 303
    with database.reading() as session:
        node = nodes.find_node(session, name="anvil")
        assert (node.granted_lanes, node.public_key) == (["cpu"], None)


def test_the_api_does_the_same(site, people, database, told):
    admin = site.bearer(people.admin)
    made = admin.post("/api/v1/nodes/invites", json={"name": "gpu-1", "lanes": ["h100"], "courses": ["gpu"]})
    assert made.status_code == 201
    assert made.json()["code"] in made.json()["command"]
    given = admin.put("/api/v1/nodes/anvil/grant", json={"lanes": ["cpu"], "courses": ["gpu"]})
    assert (given.json()["granted_lanes"], given.json()["courses"]) == (["cpu"], ["gpu"])
    for wrong in ({"lanes": []}, {"lanes": ["abacus"]}, {"lanes": ["cpu"], "courses": []}):
        assert admin.put("/api/v1/nodes/anvil/grant", json=wrong).status_code == 422
    revoked = admin.post("/api/v1/nodes/anvil/revoke", json={"since": "2026-11-01T00:00:00Z"})
    assert revoked.json()["has_key"] is False
    assert [node["name"] for node in admin.get("/api/v1/nodes").json()] == ["anvil"]
    assert admin.post("/api/v1/nodes/none/revoke", json={}).status_code == 404
