"""A course in containers, from nothing to a verdict and back: TLS, a host that joins as a node, and things that die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.compose.conftest import ROOT, UP_S, Stack, run

LADDER = [sys.executable, "-m", "client"]
PASSWORD = "a password of this test"
COURSE, RUNG = "gpu-demo", "vector_add"
FINAL_S = 300

pytestmark = pytest.mark.timeout(UP_S + 600)


@pytest.fixture(scope="module")
def token(stack: Stack) -> str:
    """Of a student of the demo course."""
    stack.admin("seed-demo", "--password", PASSWORD)
    with stack.client() as client:
        body = {"email": "alice@example.org", "password": PASSWORD, "name": "test"}
        answer = client.post("/api/v1/tokens", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])


def _submit(stack: Stack, token: str, remark: str) -> str:
    source = (ROOT / "scripts/demo/passed_correct.py").read_text() + f"\n# {remark}\n"
    body = {"mode": "submission", "lane": "cpu", "language": "triton", "filename": "vector_add.py", "source": source}
    with stack.client(token) as client:
        answer = client.post(f"/api/v1/courses/{COURSE}/assignments/{RUNG}/submissions", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["public_id"])


def _final(stack: Stack, token: str, public_id: str) -> dict[str, object]:
    deadline = time.monotonic() + FINAL_S
    with stack.client(token) as client:
        while True:
            answer = client.get(f"/api/v1/submissions/{public_id}")
            if answer.status_code == 200 and answer.json()["state"] in {"done", "failed", "cancelled"}:
                return dict(answer.json())
            assert time.monotonic() < deadline, answer.text + stack.compose("logs", "--tail=30")
            time.sleep(1)


def test_it_serves_over_tls_and_sends_plain_http_there(stack: Stack) -> None:
    with stack.client() as client:
        answer = client.get("/login")
        assert answer.status_code == 200
        assert "strict-transport-security" in answer.headers
        # The web tier knows that the browser's connection is safe, and says so with its cookies.
        assert "Secure" in answer.headers["set-cookie"]
        plain = client.get(f"http://{stack.settings['LADDER_HOST']}:{stack.settings['LADDER_HTTP_PORT']}/login")
        assert (plain.status_code, plain.headers["location"]) == (308, f"{stack.url}/login")
        too_much = client.post("/api/v1/tokens", content=b"x" * 9_000_000, headers={"content-type": "text/plain"})
        assert too_much.status_code == 413


def test_what_a_client_says_of_its_address_counts_for_nothing(stack: Stack, token: str) -> None:
    """Failed log-ins are counted by address: saying another one must not begin a new count."""
    with stack.client() as client:
        statuses = []
        for number in range(120):
            body = {"email": f"nobody{number}@example.org", "password": "wrong", "name": "test"}
            headers = {"X-Forwarded-For": f"198.51.100.{number}", "Forwarded": f"for=198.51.100.{number}"}
            statuses.append(client.post("/api/v1/tokens", json=body, headers=headers).status_code)
            if statuses[-1] == 429:
                break
    assert statuses[-1] == 429, statuses


def test_nothing_but_the_proxy_is_published_and_nobody_but_the_worker_is_root(stack: Stack) -> None:
    ids = stack.compose("ps", "--quiet").split()
    service = '{{index .Config.Labels "com.docker.compose.service"}}'
    template = service + " {{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{len .HostConfig.PortBindings}}"
    said = run("docker", "inspect", "--format", template, *ids, env=stack.environ).splitlines()
    found = {line.split()[0]: line.split()[1:] for line in said}
    assert {name for name, (_, _, ports) in found.items() if ports != "0"} == {"proxy"}
    assert {name for name, (user, _, _) in found.items() if user.startswith("0:")} == {"worker"}
    assert all(read_only == "true" for _, read_only, _ in found.values())


def test_the_worker_keeps_what_its_file_says(stack: Stack) -> None:
    said = stack.compose("logs", "worker")
    assert "guarantees that the sandbox lacks here: memory_limit\n" in said
    # Nothing of the staff's solutions is in an image that runs submissions.
    files = ("(", "-path", "*/solutions/*", "-o", "-name", "hidden.toml", ")")
    # The templates of a new rung, which doubles a vector, are nobody's exercise.
    search = ("find", "/opt/ladder", *files, "-not", "-name", "*.template")
    listed = stack.compose("exec", "-T", "worker", *search)
    assert listed.strip() == ""


def test_the_worker_grades(stack: Stack, token: str) -> None:
    result = _final(stack, token, _submit(stack, token, "in the container"))
    assert (result["state"], result["verdict"]) == ("done", "passed")


def test_a_backup_is_put_back_and_signs_as_before(stack: Stack, token: str, tmp_path: Path) -> None:
    """Without a new worker: the one that runs goes on, and needs no second look at itself."""
    kept = _submit(stack, token, "before the backup")
    _final(stack, token, kept)
    with stack.client(token) as client:
        receipt = client.get(f"/api/v1/submissions/{kept}/receipt").json()
    run("sh", "deploy/backup.sh", str(tmp_path / "backups"), env=stack.environ)
    (file,) = (tmp_path / "backups").iterdir()
    gone = _submit(stack, token, "after the backup")
    run("sh", "deploy/restore.sh", str(file), env=stack.environ)
    run("sh", "deploy/up.sh", env=stack.environ, limit_s=UP_S)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    with stack.client(token) as client:
        assert client.get(f"/api/v1/submissions/{gone}").status_code == 404
        again = client.get(f"/api/v1/submissions/{kept}/receipt").json()
    assert again["signature"]["key"] == receipt["signature"]["key"]
    result = _final(stack, token, _submit(stack, token, "after the restore"))
    assert (result["state"], result["verdict"]) == ("done", "passed")


@contextmanager
def _node(folder: Path, environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """`ladder node run` on this host."""
    log = folder / "log"
    command = [*LADDER, "node", "run", "--folder", str(folder / "etc")]
    if os.geteuid() != 0:
        command += [f"--accept-missing={name}" for name in ("memory_limit", "other_uid", "process_limit")]
    with log.open("wb") as file, subprocess.Popen(command, cwd=ROOT, env=environ, stdout=file, stderr=file) as process:
        try:
            yield process, log
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)


def test_a_host_joins_grades_and_nothing_is_lost_when_things_die(stack: Stack, token: str, tmp_path: Path) -> None:
    said = stack.admin("invite-node", "host-1", "--lanes", "cpu")
    code = re.search(r"--code (\S+)", said)
    assert code, said
    host = stack.settings["LADDER_HOST"]
    environ = {**stack.environ, "NO_PROXY": f"{host},127.0.0.1,localhost", "no_proxy": f"{host},127.0.0.1,localhost"}
    environ = {name: value for name, value in environ.items() if not name.startswith("LADDER_")}
    folder = tmp_path / "etc"
    join = [*LADDER, "node", "join", stack.url, "--name", "host-1", "--code", code[1], "--folder", str(folder)]
    join += ["--home", str(tmp_path / "home"), "--ca", str(stack.site / "tls_certificate")]
    assert "can be reached" in run(*join, env=environ)
    assert (tmp_path / "etc/node.env").stat().st_mode & 0o077 == 0
    assert (tmp_path / "etc/key").stat().st_mode & 0o077 == 0
    again = subprocess.run(join, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (again.returncode, "is not valid" in again.stderr) == (4, True), again.stderr

    # Only the host can grade it.
    stack.compose("stop", "worker")
    with _node(tmp_path, environ) as (process, log):
        result = _final(stack, token, _submit(stack, token, "on the host"))
        assert result["verdict"] == "passed", result
        assert b"begins" in log.read_bytes()

        # What waits, and what is being graded, outlives a broker that starts again and a dispatcher that is killed.
        waiting = [_submit(stack, token, f"while things die, {number}") for number in range(2)]
        stack.compose("restart", "redis")
        stack.compose("kill", "dispatcher", "recorder")
        stack.compose("start", "dispatcher", "recorder")
        for public_id in waiting:
            result = _final(stack, token, public_id)
            assert (result["state"], result["verdict"]) == ("done", "passed"), result
        assert process.poll() is None, log.read_text()
    stack.compose("start", "worker")


def test_the_proxy_serves_on_when_the_web_tier_has_another_address(stack: Stack) -> None:
    stack.compose("up", "--detach", "--no-deps", "--force-recreate", "web")
    deadline = time.monotonic() + FINAL_S
    with stack.client() as client:
        while client.get("/healthz").status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(1)
