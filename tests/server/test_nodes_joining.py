"""Joining as a node: a code is good once, for a day, for one name; the machine's key lets it work and no more."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import select

from autograder.contract import Lane
from broker.identity import NodeKey
from server.app import create_app
from server.errors import InvalidInputError, UnauthenticatedError
from server.models import AuditEntry, Node, NodeInvite
from server.nodes import access, invites, nodes
from server.nodes.nodes import Grant
from server.operations import fleet
from tests.server.conftest import served
from worker.server import Signature

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
H100 = Grant(frozenset({Lane.h100}))


def _invite(database, name: str = "gpu-1", now: datetime = NOW, grant: Grant = H100) -> str:
    with database.transaction() as session:
        return invites.invite(session, name=name, grant=grant, now=now)


def _join(database, code: str, now: datetime = NOW, name: str = "gpu-1", key: NodeKey | None = None) -> Node:
    with database.transaction() as session:
        identity = (key or NodeKey.generate()).identity
        return invites.join(session, name=name, code=code, identity=identity, now=now)


def test_a_code_lets_one_machine_join_once(database):
    code, key = _invite(database), NodeKey.generate()
    node = _join(database, code, key=key)
    assert (node.name, node.public_key, node.broker_hash) == ("gpu-1", *dataclasses.astuple(key.identity))
    with database.reading() as session:
        assert code not in session.scalars(select(NodeInvite.token_hash)).one()
    with pytest.raises(UnauthenticatedError):
        _join(database, code)


def test_a_code_is_for_one_name_and_is_not_used_up_by_another(database):
    code = _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, code, name="gpu-2")
    assert _join(database, code).name == "gpu-1"


def test_a_code_is_good_for_a_day(database):
    code = _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, code, NOW + timedelta(hours=24))
    assert _join(database, code, NOW + timedelta(hours=23, minutes=59)).name == "gpu-1"


def test_a_newer_code_replaces_an_older_one_of_that_name_only(database):
    old, other = _invite(database), _invite(database, "gpu-2")
    new = _invite(database)
    with pytest.raises(UnauthenticatedError):
        _join(database, old)
    assert _join(database, new).name == "gpu-1"
    assert _join(database, other, name="gpu-2").name == "gpu-2"


def test_what_the_node_may_grade_is_said_with_the_code_and_anew_when_it_joins_again(database):
    assert nodes.grant_of(_join(database, _invite(database))) == H100
    narrow = Grant(frozenset({Lane.cpu}), frozenset({7}))
    first = _join(database, _invite(database, grant=narrow))
    assert nodes.grant_of(first) == narrow
    with database.reading() as session:
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


@pytest.fixture
def browser(config, database):
    app = create_app(dataclasses.replace(config, nodes_broker_url="rediss://broker.example:6380/0"))
    with served(app) as url, httpx.Client(base_url=f"{url}/api/v1/nodes", trust_env=False, timeout=60) as client:
        yield client


def _asked(code: str, key: NodeKey) -> dict[str, str]:
    return {"name": "gpu-1", "code": code, **dataclasses.asdict(key.identity)}


def test_nothing_that_comes_back_from_joining_is_secret(browser, database):
    code, key = _invite(database, now=datetime.now(UTC)), NodeKey.generate()
    answer = browser.post("/join", json=_asked(code, key), auth=Signature("gpu-1", key))
    assert answer.status_code == 201, answer.text
    assert answer.json() == {"name": "gpu-1", "broker_url": "rediss://node-gpu-1@broker.example:6380/0"}
    assert browser.post("/join", json=_asked(code, key), auth=Signature("gpu-1", key)).status_code == 401
    own = browser.get("/own", auth=Signature("gpu-1", key))
    assert own.json() == {"name": "gpu-1", "lanes": ["h100"], "courses": None}


def test_a_key_that_is_somebody_elses_cannot_be_joined_with(browser, database):
    code, key = _invite(database, now=datetime.now(UTC)), NodeKey.generate()
    for auth in (None, Signature("gpu-1", NodeKey.generate())):
        answer = browser.post("/join", json=_asked(code, key), auth=auth)
        assert answer.status_code == 401, answer.text
    nothing = {**_asked(code, key), "public_key": "x" * 44}
    assert browser.post("/join", json=nothing, auth=Signature("gpu-1", key)).status_code == 401
    # None of that has used it up.
    assert browser.post("/join", json=_asked(code, key), auth=Signature("gpu-1", key)).status_code == 201


@pytest.fixture
def joined(browser, database):
    code, key = _invite(database, now=datetime.now(UTC)), NodeKey.generate()
    assert browser.post("/join", json=_asked(code, key), auth=Signature("gpu-1", key)).status_code == 201
    return key


def test_a_node_replaces_its_key_and_the_old_one_is_nobodys(browser, joined):
    new = NodeKey.generate()
    body = {**dataclasses.asdict(new.identity), "consent": new.consent("gpu-1", joined.identity.public_key)}
    assert browser.put("/own/key", json=body, auth=Signature("gpu-1", joined)).status_code == 204
    assert browser.get("/own", auth=Signature("gpu-1", joined)).status_code == 401
    assert browser.get("/own", auth=Signature("gpu-1", new)).status_code == 200


def test_whoever_has_only_one_of_the_two_keys_replaces_nothing(browser, joined):
    new, other = NodeKey.generate(), NodeKey.generate()
    body = {**dataclasses.asdict(new.identity), "consent": new.consent("gpu-1", joined.identity.public_key)}
    for change, signer in (
        ({}, new),
        ({}, other),
        ({"consent": other.consent("gpu-1", joined.identity.public_key)}, joined),
        ({"consent": new.consent("gpu-2", joined.identity.public_key)}, joined),
        ({"consent": new.consent("gpu-1", other.identity.public_key)}, joined),
    ):
        assert browser.put("/own/key", json={**body, **change}, auth=Signature("gpu-1", signer)).status_code == 401
    assert browser.get("/own", auth=Signature("gpu-1", joined)).status_code == 200


def test_a_revoked_node_is_nobody_until_it_joins_anew(browser, joined, database, config):
    with database.transaction() as session:
        fleet.revoke(session, config, name="gpu-1", actor=None, now=NOW, since=NOW - timedelta(hours=1))
    assert browser.get("/own", auth=Signature("gpu-1", joined)).status_code == 401
    with database.reading() as session:
        node = nodes.find_node(session, name="gpu-1")
        assert (node.public_key, node.broker_hash, node.disabled_at) == (None, None, NOW)
        assert (node.suspect_since_at, node.suspect_until_at) == (NOW - timedelta(hours=1), NOW)
        assert session.scalars(select(AuditEntry.action)).all()[-1] == "node.revoked"


def test_a_broker_of_files_knows_no_users(database, tmp_path):
    url = f"filesystem://{tmp_path}"
    assert access.grant(url, [("gpu-1", "0" * 64)])
    with database.reading() as session:
        assert access.sync(session, url) == []


def test_a_broker_that_is_away_keeps_nobody_from_joining(caplog):
    assert not access.grant("redis://127.0.0.1:1/0", [("gpu-1", "0" * 64)])
    assert "sync-broker-acl" in caplog.text
