"""A node replaces its own key, also when it is cut off in between."""

from __future__ import annotations

import stat

import pytest

from autograder.contract import Lane
from broker.identity import NodeKey
from server.app import create_app
from server.nodes import nodes
from server.nodes.nodes import Grant
from tests.doubles.world import World
from tests.server.conftest import served
from worker.config import load_config
from worker.disk import locked
from worker.node_errors import FolderTakenError, RefusedError
from worker.reach import _web
from worker.rekey import replace_key


@pytest.fixture
def world(sqlite_url, tmp_path):
    made = World.make(sqlite_url, tmp_path)
    yield made
    made.database.dispose()


@pytest.fixture
def node(world, tmp_path):
    """How the node anvil is configured now."""
    with served(create_app(world.config)) as url:
        told = {
            "LADDER_HOME": str(tmp_path), "LADDER_NODE_NAME": "anvil", "LADDER_SERVER_URL": url,
            "LADDER_NODE_KEY_FILE": world.key_file(),
        }  # fmt: skip
        (tmp_path / "work").mkdir()
        yield lambda **more: load_config({**told, **more})


def test_a_node_has_another_key_and_the_server_takes_only_that(node, world, tmp_path):
    before, path = node(), tmp_path / "node-anvil.key"
    replace_key(before, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert NodeKey.load(path).identity != before.key.identity
    assert _web(node()) == ""
    assert "not signed by the node's key" in _web(before)
    assert list(tmp_path.glob("*.new")) == []


def test_a_node_that_was_cut_off_after_the_server_took_its_key_says_it_again(node, tmp_path):
    before, path = node(), tmp_path / "node-anvil.key"
    replace_key(before, path)
    # As if it had died before it moved the file.
    new = path.read_bytes()
    (tmp_path / "node-anvil.key.new").write_bytes(new)
    path.unlink()
    before.key.save(path)
    replace_key(node(), path)
    assert path.read_bytes() == new
    assert _web(node()) == ""


def test_a_node_that_works_keeps_its_key(node, tmp_path):
    config, path = node(), tmp_path / "node-anvil.key"
    with locked(config.node.work), pytest.raises(FolderTakenError):
        replace_key(config, path)
    assert _web(node()) == ""


def test_whom_the_server_does_not_know_keeps_its_key(node, tmp_path):
    config, path = node(LADDER_NODE_NAME="other"), tmp_path / "node-anvil.key"
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="There is no such node"):
        replace_key(config, path)
    assert path.read_bytes() == before


def test_a_node_is_told_which_lane_it_was_not_granted(node, world):
    with world.database.transaction() as session:
        nodes.set_grant(nodes.find_node(session, name="anvil"), Grant(frozenset({Lane.cpu})))
    assert _web(node()) == ""
    assert "did not grant anvil the lane b200, h100" in _web(node(LADDER_LANES="cpu,h100,b200"))
