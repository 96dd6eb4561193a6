"""`ladder node …` without a server: what it refuses, what it writes, and whom it lets read it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from autograder.sandbox import Promise, process
from client.commands import node
from client.commands.node import node as group


def _run(*arguments: str, status: int) -> str:
    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == status, done.output
    return done.output


def test_a_code_travels_over_https_only(tmp_path):
    said = _run("join", "http://127.0.0.1:1", "--name", "a", "--code", "c", "--folder", str(tmp_path / "etc"), status=2)
    assert "https only" in said
    assert not list((tmp_path / "etc").glob("*"))


def test_a_server_that_is_away_leaves_nothing_behind(tmp_path):
    said = _run(
        "join", "https://127.0.0.1:1", "--name", "a", "--code", "c", "--folder", str(tmp_path / "etc"), status=4
    )
    assert "cannot be reached" in said
    assert not list((tmp_path / "etc").glob("*"))


def test_it_serves_with_every_promise_or_with_those_that_were_named(monkeypatch):
    class Weak:
        promises = frozenset(Promise) - {Promise.memory_limit, Promise.no_network}

        def close(self):
            pass

    monkeypatch.setattr(process, "ProcessSandbox", Weak)
    with pytest.raises(node.OursError, match="does not guarantee no_network"):
        node._require_promises(("memory_limit",), {})
    node._require_promises(("memory_limit", "no_network"), {})
    with pytest.raises(node.UsageError, match="no such guarantee"):
        node._require_promises(("everything",), {})


def test_the_brokers_certificate_is_always_checked(tmp_path):
    assert node._with_certificate("rediss://node-a@h:6380/0", None).endswith("?ssl_cert_reqs=required")
    url = node._with_certificate("rediss://node-a@h:6380/0", Path("/etc/ca.pem"))
    assert url.endswith("?ssl_cert_reqs=required&ssl_ca_certs=/etc/ca.pem")


def test_a_node_that_runs_looks_after_itself_unless_it_was_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.setattr(node.os, "environ", {**os.environ})
    monkeypatch.setattr(node, "_require_promises", lambda *_: None)
    monkeypatch.setattr(node, "load", lambda *_: SimpleNamespace(main=lambda: 0))
    (tmp_path / "node.env").write_text("LADDER_CANARY_EVERY_S=60\n")
    _run("run", "--folder", str(tmp_path), "--accept-missing", "memory_limit", status=0)
    told = {name: node.os.environ.get(name) for name in (*node.USUAL, "LADDER_SANDBOX_WAIVE")}
    assert told == {
        "LADDER_SELF_TEST": "1",
        "LADDER_CANARY_EVERY_S": "60",
        "LADDER_CANARY_EVERY_JOBS": "100",
        "LADDER_SANDBOX_WAIVE": "memory_limit",
    }


def test_the_promises_asked_for_are_those_of_the_sandbox_that_it_will_use():
    assert type(node._driver("process")).__name__ == "ProcessSandbox"
    with pytest.raises(node.UsageError, match="no sandbox named 'chroot'"):
        node._driver("chroot")


def test_leaving_removes_key_and_settings(tmp_path):
    (tmp_path / "etc").mkdir()
    for name in ("key", "node.env"):
        (tmp_path / "etc" / name).write_text("x=y\n")
    assert "no longer a node" in _run("leave", "--folder", str(tmp_path / "etc"), status=0)
    assert not list((tmp_path / "etc").glob("*"))
    assert "There is no node" in _run("leave", "--folder", str(tmp_path / "etc"), status=0)


def test_the_unit_names_this_machines_paths(tmp_path, monkeypatch):
    unit = tmp_path / "kernel-ladder-gpu-1.service"
    monkeypatch.setattr("sys.argv", [str(tmp_path / "bin/ladder")])
    node._write_unit(tmp_path / "etc", unit)
    text = unit.read_text()
    assert f"ExecStart={tmp_path}/bin/ladder node run --folder {tmp_path}/etc\n" in text
    assert f"EnvironmentFile={tmp_path}/etc/node.env\n" in text
    assert "/opt/kernel-ladder" not in text
