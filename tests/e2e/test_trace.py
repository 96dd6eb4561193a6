"""One id from an HTTP request to its result, through the logs of the real processes; and what these must not say."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from socket import create_server

import httpx
from sqlalchemy import select

from server.accounts import accounts
from server.models import Submission, User
from tests.e2e.test_pipeline import REPOSITORY, made_pipeline, until

SERVE = "import sys; from server.web import serve; serve('127.0.0.1', int(sys.argv[1]), 1)"
SOURCE = "# judge: ratio 0.9\nTHE_STUDENTS_OWN_WORDS = 1\n"


def free_port() -> int:
    with create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start_web(pipeline) -> str:
    """The web tier as a process; its address."""
    port = free_port()
    log = pipeline.stack.enter_context((pipeline.logs / "web.log").open("ab"))
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(port)], cwd=REPOSITORY, env=pipeline.environ, stdout=log, stderr=log
    )
    pipeline.stack.callback(process.wait)
    pipeline.stack.callback(process.kill)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/healthz", timeout=60).status_code == 200
        except httpx.TransportError:
            return False

    until(answers, "the web tier")
    return url


def lines_of(pipeline, name: str) -> list[dict[str, object]]:
    """A process's log: every line has to be an object."""
    return [json.loads(line) for line in pipeline.log(name).splitlines()]


def test_one_id_leads_from_the_request_to_the_result(tmp_path, sqlite_url):
    with made_pipeline(tmp_path, sqlite_url, f"filesystem://{tmp_path / 'broker'}", log_format="json") as pipeline:
        with pipeline.world.database.transaction() as session:
            alice = session.scalars(select(User).where(User.name == "Alice")).one()
            _row, token = accounts.create_token(session, alice, name="test")
        url = start_web(pipeline)
        pipeline.start_all()
        path = f"{url}/api/v1/courses/gpu/assignments/vector_add/submissions"
        body = {"mode": "submission", "source": SOURCE, "lane": "cpu", "language": "triton"}
        answer = httpx.post(path, json=body, headers={"authorization": f"Bearer {token}"}, timeout=60)
        assert answer.status_code == 201, answer.text
        trace = answer.headers["x-request-id"]
        httpx.get(f"{url}/api/v1/me", headers={"authorization": f"Bearer {token}x"}, timeout=60)
        with pipeline.world.database.reading() as session:
            receipt = session.scalars(select(Submission.public_id).where(Submission.trace == trace)).one()
        pipeline.wait_for(receipt)
        until(lambda: "ended after" in pipeline.log("worker"), "the worker's last word")
        about = {
            name: [line for line in lines_of(pipeline, name) if line.get("trace") == trace]
            for name in ("web", "server.dispatcher", "worker", "server.recorder")
        }
        assert all(about.values()), about
        assert "201" in str(about["web"][-1]["message"])
        assert any("the judge is checking" in str(line["message"]) for line in about["worker"])
        assert any("found passed" in str(line["message"]) for line in about["server.recorder"])
        assert f"trace {trace}: attempt" in (tmp_path / "work" / "judge.log").read_text(encoding="utf-8")
        assert datetime.fromisoformat(str(about["web"][0]["at"])) <= datetime.now(UTC)
        everything = "".join(pipeline.log(name) for name in (*about, "web"))
        for secret in (token, pipeline.world.keys["anvil"].broker_password, "THE_STUDENTS_OWN_WORDS"):
            assert secret not in everything
