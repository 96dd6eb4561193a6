"""What is handed in to a lane that nothing serves says so before it is taken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from autograder.contract import NodeReport
from server.errors import InvalidInputError
from server.models import Course, Lane, Node, Submission
from server.nodes import nodes
from tests.doubles.machines import make_node
from tests.server.conftest import COURSE, RUNG

BODY = {"lane": "h200", "language": "triton", "mode": "submission", "source": "def add_one(x, out, n): ...\n"}


@pytest.fixture
def cpu_node(database, people):
    """An installation that serves the CPU lane."""
    with database.transaction() as session:
        node, _key = make_node(session, name="anvil", now=datetime.now(UTC))
        nodes.apply_report(node, NodeReport((Lane.cpu,), 1, draining=False, facts={}, at=0.0), now=datetime.now(UTC))


def test_the_answer_names_the_lanes_that_are_served(site, people, cpu_node, database):
    client = site.bearer(people.alice)
    path = f"/api/v1/courses/{COURSE}/assignments/{RUNG}/submissions"
    answer = client.post(path, json=BODY)
    assert (answer.status_code, answer.json()["field"]) == (422, "lane")
    assert "No node serves the lane h200" in answer.json()["message"]
    assert "in service: cpu." in answer.json()["message"]
    assert client.post(path, json={**BODY, "lane": "cpu"}).status_code == 201
    with database.reading() as session:
        assert session.scalars(select(Submission.lane)).all() == [Lane.cpu]


def test_the_page_says_so_beside_the_choice_and_in_the_answer(site, people, cpu_node, config):
    browser = site.logged_in(people.alice, config)
    path = f"/courses/{COURSE}/assignments/{RUNG}"
    assert "(nothing serves it)" in browser.get(path).text
    data = {"source": BODY["source"], "lane": "h200", "language": "triton", "mode": "submission"}
    answer = browser.post(f"{path}/submissions", data=data)
    assert (answer.status_code, "No node serves the lane h200" in answer.text) == (422, True)


def test_a_course_may_take_them_all_the_same(submit, people, cpu_node, database):
    with pytest.raises(InvalidInputError):
        submit(people.alice, lane=Lane.h200)
    with database.transaction() as session:
        session.get_one(Course, people.course.id).accepts_unserved_lanes = True
    assert submit(people.alice, lane=Lane.h200).lane is Lane.h200


def test_a_node_that_is_away_for_an_hour_turns_nobody_down_and_one_that_never_returns_does(
    submit, people, cpu_node, database
):
    with database.transaction() as session:
        gpu, _key = make_node(session, name="forge", now=datetime.now(UTC))
        gpu.lanes, gpu.last_seen_at = ["h200"], datetime.now(UTC) - timedelta(hours=1)
    assert submit(people.alice, lane=Lane.h200).lane is Lane.h200
    with database.transaction() as session:
        session.scalars(select(Node).where(Node.name == "forge")).one().last_seen_at -= timedelta(days=1)
    with pytest.raises(InvalidInputError):
        submit(people.alice, lane=Lane.h200)


def test_where_no_node_is_there_yet_everything_waits(submit, people):
    assert submit(people.alice, lane=Lane.h200).lane is Lane.h200


def test_a_language_that_no_node_of_the_lane_has_installed_is_refused_by_name(site, people, cpu_node, database):
    client = site.bearer(people.alice)
    path = f"/api/v1/courses/{COURSE}/assignments/{RUNG}/submissions"
    lacking = NodeReport((Lane.cpu,), 1, draining=False, facts={"triton": "not installed"}, at=0.0)
    with database.transaction() as session:
        nodes.apply_report(session.scalars(select(Node)).one(), lacking, now=datetime.now(UTC))
    answer = client.post(path, json={**BODY, "lane": "cpu"})
    assert (answer.status_code, answer.json()["field"]) == (422, "language")
    assert "No node serves Triton on cpu" in answer.json()["message"]
    assert "CUDA C++" in answer.json()["message"]
    with database.transaction() as session:
        another, _key = make_node(session, name="bellows", now=datetime.now(UTC))
        having = NodeReport((Lane.cpu,), 1, draining=False, facts={"triton": "3.9.0"}, at=0.0)
        nodes.apply_report(another, having, now=datetime.now(UTC))
    assert client.post(path, json={**BODY, "lane": "cpu"}).status_code == 201
