"""Joining as a node: a code is good once, for a day, for one name; what the machine gets lets it work and no more."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import select

from broker.envelope import key_of
from server.app import create_app
from server.errors import InvalidInputError, UnauthenticatedError
from server.models import Node, NodeInvite
from server.nodes import access, invites
from server.nodes import service as nodes
from tests.server.conftest import served

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def _invite(database, name: str = "gpu-1", now: datetime = NOW) -> str:
    with database.transaction() as session:
        return invites.invite(session, name=name, now=now)


def _join(database, code: str, now: datetime = NOW, name: str = "gpu-1") -> tuple[str, str]:
    with database.transaction() as session:
        node, token = invites.join(session, name=name, code=code, now=now)
        return node.name, token


def test_a_code_lets_one_machine_join_once(database):
    code = _invite(database)
    name, token = _join(database, code)
    assert name == "gpu-1"
    with database.reading() as session:
        assert nodes.node_of_token(session, token).name == "gpu-1"
        assert code not in session.scalars(select(NodeInvite.token_hash)).one()
    with pytest.raises(UnauthenticatedError):
        _join(database, code)


def test_a_code_is_for_one_name_and_is_not_used_up_by_another(database):
    code = _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, code, name="gpu-2")
    assert _join(database, code)[0] == "gpu-1"


def test_a_code_is_good_for_a_day(database):
    code = _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, code, NOW + timedelta(hours=24))
    assert _join(database, code, NOW + timedelta(hours=23, minutes=59))[0] == "gpu-1"


def test_a_newer_code_replaces_an_older_one_of_that_name_only(database):
    old, other = _invite(database), _invite(database, "gpu-2")
    new = _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, old)
    assert _join(database, new)[0] == "gpu-1"
    assert _join(database, other, name="gpu-2")[0] == "gpu-2"


def test_a_machine_that_joins_again_gets_a_new_token_and_the_old_one_is_nobodys(database):
    _, first = _join(database, _invite(database))
    _, second = _join(database, _invite(database))
    with database.reading() as session:
        assert nodes.node_of_token(session, second).name == "gpu-1"
        with pytest.raises(UnauthenticatedError):
            nodes.node_of_token(session, first)
        assert len(session.scalars(select(Node)).all()) == 1


@pytest.mark.parametrize("name", ["", "GPU", "a b", "a/b", "*", "x" * 61, "-a", "a\n"])
def test_a_name_that_means_something_elsewhere_is_refused(database, name):
    with pytest.raises(InvalidInputError):
        _invite(database, name)


@pytest.mark.parametrize("code", ["", "kj_", "x" * 100, "\x00", "ü"])
def test_what_is_no_code_lets_nobody_in(database, code):
    _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, code)


def test_a_token_made_elsewhere_can_be_adopted_again_and_again(database):
    token = "kn_" + "t" * nodes.MIN_TOKEN
    for _ in range(2):
        with database.transaction() as session:
            assert nodes.adopt_token(session, name="worker", token=token, now=NOW).key == key_of(token)
    # One without the prefix would be taken for a person's by the web tier.
    for refused in ("kn_short", "t" * nodes.MIN_TOKEN):
        with pytest.raises(InvalidInputError), database.transaction() as session:
            nodes.adopt_token(session, name="worker", token=refused, now=NOW)


def test_the_api_answers_with_all_that_the_machine_needs(config, database):
    app = create_app(dataclasses.replace(config, nodes_broker_url="rediss://broker.example:6380/0"))
    code = _invite(database, now=datetime.now(UTC))
    with served(app) as url, httpx.Client(base_url=url, trust_env=False) as browser:
        answer = browser.post("/api/v1/nodes/join", json={"name": "gpu-1", "code": code})
        assert answer.status_code == 201, answer.text
        joined = answer.json()
        assert joined["broker_url"] == "rediss://node-gpu-1@broker.example:6380/0"
        used = browser.post("/api/v1/nodes/join", json={"name": "gpu-1", "code": code})
        assert used.status_code == 401
        bundle = browser.get("/api/v1/bundles/none", headers={"Authorization": f"Bearer {joined['token']}"})
        assert bundle.status_code == 404


def test_a_broker_of_files_knows_no_users(database, tmp_path):
    url = f"filesystem://{tmp_path}"
    assert access.grant(url, [("gpu-1", "0" * 64)])
    with database.reading() as session:
        assert access.sync(session, url) == []


def test_a_broker_that_is_away_keeps_nobody_from_joining(caplog):
    assert not access.grant("redis://127.0.0.1:1/0", [("gpu-1", "0" * 64)])
    assert "sync-broker" in caplog.text
