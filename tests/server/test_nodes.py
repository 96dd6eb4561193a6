from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import select

from autograder.contract import Lane, NodeReport
from server.errors import ConflictError, InvalidInputError, NotFoundError
from server.models import Course, Node
from server.nodes import nodes
from server.nodes.nodes import Grant
from tests.doubles.machines import make_node
from tests.doubles.world import START

REPORT = NodeReport((Lane.h200, Lane.cpu, Lane.cpu), 2, draining=False, facts={"python": "3.11"}, at=1e12)


@pytest.fixture
def node(database):
    with database.transaction() as session:
        row, key = make_node(session, name="anvil", now=START)
        session.expunge(row)
    return row, key


def test_nothing_is_kept_that_signs_or_lets_anybody_in(database, node):
    row, key = node
    with database.reading() as session:
        kept = str([item.__dict__ for item in session.scalars(select(Node))])
    assert key.broker_password not in kept
    assert row.public_key == key.identity.public_key


@pytest.mark.parametrize("name", ["", "Anvil", "an vil", "-anvil", "a.b", "x" * 61, "../etc"])
def test_a_name_that_cannot_be_part_of_a_queues_name_is_refused(database, name):
    with database.transaction() as session, pytest.raises(InvalidInputError):
        make_node(session, name=name, now=START)


def test_two_nodes_cannot_have_one_name(database, node):
    with database.transaction() as session, pytest.raises(ConflictError):
        make_node(session, name="anvil", now=START)


def test_a_report_is_bounded_and_heard_by_our_clock(database, node):
    with database.transaction() as session:
        row = nodes.find_node(session, name="anvil")
        facts = {f"fact {number:03}": "x" * 10_000 for number in range(500)}
        nodes.apply_report(row, dataclasses.replace(REPORT, facts=facts, slots=10**9), now=START)
        assert (row.lanes, row.slots, row.last_seen_at) == (["cpu", "h200"], nodes.MAX_SLOTS, START)
        assert len(row.facts) == nodes.MAX_FACTS
        assert max(map(len, row.facts.values())) == nodes.MAX_FACT_CHARS


def test_only_lanes_of_nodes_that_take_work_are_in_service(database, node):
    def lanes():
        with database.reading() as session:
            return nodes.lanes_in_service(session, now=START)

    assert lanes() == frozenset()
    for draining, expected in ((False, {Lane.cpu, Lane.h200}), (True, set())):
        with database.transaction() as session:
            row = nodes.find_node(session, name="anvil")
            nodes.apply_report(row, dataclasses.replace(REPORT, draining=draining), now=START)
        assert lanes() == expected


def test_a_report_narrows_what_staff_granted_and_never_widens_it(database):
    with database.transaction() as session:
        row, _ = make_node(session, name="anvil", now=START, grant=Grant(frozenset({Lane.h100, Lane.cpu})))
        nodes.apply_report(row, dataclasses.replace(REPORT, lanes=tuple(Lane)), now=START)
        assert row.lanes == ["cpu", "h100"]
        nodes.apply_report(row, dataclasses.replace(REPORT, lanes=(Lane.h100,)), now=START)
        assert row.lanes == ["h100"]
        # What is taken from it counts before it reports again.
        nodes.set_grant(row, Grant(frozenset({Lane.cpu})))
        assert row.lanes == []
        nodes.apply_report(row, dataclasses.replace(REPORT, lanes=(Lane.b200,)), now=START)
        assert row.lanes == []


def test_a_grant_names_lanes_and_courses_that_there_are(database, people):
    with database.reading() as session:
        assert nodes.make_grant(session, [Lane.cpu], None) == Grant(frozenset({Lane.cpu}))
        found = nodes.make_grant(session, [Lane.cpu], ["gpu"])
        assert found.courses == frozenset(session.scalars(select(Course.id).where(Course.slug == "gpu")))
        for lanes, courses in (([], None), ([Lane.cpu], []), ([Lane.cpu], ["gpu", "none"])):
            with pytest.raises(InvalidInputError):
                nodes.make_grant(session, lanes, courses)


def test_a_node_of_one_course_puts_no_others_lanes_in_service(database, people):
    with database.transaction() as session:
        course_id = session.scalars(select(Course.id)).first()
        grant = Grant(frozenset({Lane.cpu}), frozenset({course_id}))
        row, _ = make_node(session, name="anvil", now=START, grant=grant)
        nodes.apply_report(row, dataclasses.replace(REPORT, lanes=(Lane.cpu,)), now=START)
    with database.reading() as session:
        assert nodes.lanes_in_service(session, now=START, course_id=course_id) == {Lane.cpu}
        assert nodes.lanes_in_service(session, now=START, course_id=course_id + 1) == set()


def test_an_unknown_node_is_not_found(database):
    with database.reading() as session, pytest.raises(NotFoundError):
        nodes.find_node(session, name="nobody")
