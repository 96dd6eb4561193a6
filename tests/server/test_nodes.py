from __future__ import annotations

import dataclasses

import httpx
import pytest
from sqlalchemy import select

from autograder.assignment import content_hash
from autograder.contract import Lane, NodeReport
from server.errors import ConflictError, InvalidInputError, NotFoundError, UnauthenticatedError
from server.models import Bundle, Node
from server.nodes import service as nodes
from tests.doubles.world import START

REPORT = NodeReport((Lane.h200, Lane.cpu, Lane.cpu), 2, draining=False, facts={"python": "3.11"}, at=1e12)


@pytest.fixture
def node(database):
    with database.transaction() as session:
        row, token = nodes.create_node(session, name="anvil", now=START)
        session.expunge(row)
    return row, token


def test_a_token_is_shown_once_and_only_its_hash_is_kept(database, node):
    row, token = node
    with database.reading() as session:
        assert token not in str([item.__dict__ for item in session.scalars(select(Node))])
        assert nodes.node_of_token(session, token).name == row.name
        with pytest.raises(UnauthenticatedError):
            nodes.node_of_token(session, token + "x")


def test_a_rotated_token_replaces_the_old_one(database, node):
    with database.transaction() as session:
        _, new = nodes.rotate_token(session, name="anvil")
    with database.reading() as session:
        assert nodes.node_of_token(session, new).name == "anvil"
        with pytest.raises(UnauthenticatedError):
            nodes.node_of_token(session, node[1])


@pytest.mark.parametrize("name", ["", "Anvil", "an vil", "-anvil", "a.b", "x" * 61, "../etc"])
def test_a_name_that_cannot_be_part_of_a_queues_name_is_refused(database, name):
    with database.transaction() as session, pytest.raises(InvalidInputError):
        nodes.create_node(session, name=name, now=START)


def test_two_nodes_cannot_have_one_name(database, node):
    with database.transaction() as session, pytest.raises(ConflictError):
        nodes.create_node(session, name="anvil", now=START)


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


def test_an_unknown_node_or_bundle_is_not_found(database):
    with database.reading() as session:
        with pytest.raises(NotFoundError):
            nodes.find_node(session, name="nobody")
        with pytest.raises(NotFoundError):
            nodes.bundle_bytes(session, "sha256:0")


def test_a_node_and_nobody_else_gets_bundles(site, people, config, database, node):
    _, token = node
    with database.reading() as session:
        name = session.scalars(select(Bundle.hash)).first()
    url = f"{site.url}/api/v1/bundles/{name}"
    answer = httpx.get(url, headers={"authorization": f"Bearer {token}"})
    assert (answer.status_code, content_hash(answer.content)) == (200, name)
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"authorization": "Bearer kn_guessed"}).status_code == 401
    for client in (site.bearer(people.ines), site.bearer(people.admin), site.logged_in(people.admin, config)):
        assert client.get(f"/api/v1/bundles/{name}").status_code == 401
    with database.transaction() as session:
        nodes.set_disabled(session, name="anvil", disabled=True, now=START)
    assert httpx.get(url, headers={"authorization": f"Bearer {token}"}).status_code == 401


def test_a_bundle_that_does_not_exist_is_not_found(site, node):
    answer = httpx.get(f"{site.url}/api/v1/bundles/sha256:0", headers={"authorization": f"Bearer {node[1]}"})
    assert answer.status_code == 404
