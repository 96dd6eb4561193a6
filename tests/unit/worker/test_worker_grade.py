from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread, Timer

import pytest

from autograder import codec
from autograder.assignment import content_hash, pack
from autograder.contract import (
    CONTRACT_VERSION,
    AttemptFailure,
    Claim,
    Envelope,
    GradeRequest,
    GradeTask,
    Kind,
    Lane,
    Language,
    Mode,
    Phase,
    Verdict,
)
from broker.app import make_app
from broker.envelope import key_of, unseal
from worker.attempts import Attempts
from worker.bundles import Bundles
from worker.config import load_config
from worker.errors import BundleError, WorkerError
from worker.grade import Grader
from worker.judge import JudgeProcess
from worker.reports import Reporter
from worker.results import Outbox

REPOSITORY = Path(__file__).parents[3]
TOKEN = "kn_secret"
ATTEMPT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class Site:
    """A server of bundles that counts what it is asked."""

    def __init__(self) -> None:
        self.bundles: dict[str, bytes] = {}
        self.failures = 0
        self.asked: list[tuple[str, str | None]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append((self.path, self.headers.get("authorization")))
                data = site.bundles.get(self.path.rpartition("/")[2])
                site.failures -= 1
                status = 503 if site.failures >= 0 else 200 if data is not None else 404
                self.send_response(status)
                self.end_headers()
                if status == 200:
                    self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = Thread(target=self.server.serve_forever)
        self.thread.start()

    def add(self, data: bytes) -> str:
        self.bundles[content_hash(data)] = data
        return content_hash(data)

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def site():
    made = Site()
    yield made
    made.close()


@pytest.fixture
def bundle(site, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "assignment.toml").write_text("slug = 'vector_add'")
    return site.add(pack({"assignments/vector_add": files}))


class Node:
    """One worker without Celery's consumer, and what it put on the results queue."""

    def __init__(self, work: Path, site: Site, *, keep: bool = False) -> None:
        self.app = make_app("test", f"filesystem://{work / 'broker'}")
        self.outbox = Outbox(self.app, "anvil", TOKEN)
        self.judge = JudgeProcess((sys.executable, str(REPOSITORY / "tests/doubles/judge.py")), work / "judge.log")
        self.attempts = Attempts(work, keep=keep)
        bundles = Bundles(work / "bundles", site.url, TOKEN)
        self.grader = Grader(attempts=self.attempts, bundles=bundles, judge=self.judge, outbox=self.outbox)

    def said(self) -> list[tuple[Kind, object]]:
        """Everything said so far, verified."""
        found = []
        with self.app.connection_for_read() as connection:
            queue = connection.SimpleQueue("results")
            while queue.qsize():
                message = queue.get(timeout=1)
                message.ack()
                envelope = codec.loads(Envelope, message.payload[1]["envelope"])
                found.append((envelope.kind, unseal(envelope, key_of(TOKEN))))
            queue.close()
        return found


@pytest.fixture
def node(tmp_path, site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    made = Node(tmp_path / "work", site)
    yield made
    made.judge.kill()


def task(bundle, *directives, **changes):
    source = "".join(f"# judge: {line}\n" for line in directives)
    request = GradeRequest("vector_add", bundle, Language.triton, Lane.cpu, Mode.submission, source, "kernel.py")
    plain = GradeTask(ATTEMPT, 1, "trace", lease_s=20.0, deadline_s=60.0, request=request)
    return dataclasses.replace(plain, **changes)


# --- an attempt ------------------------------------------------------------------------------------------------------


def test_an_attempt_is_claimed_followed_and_ends_in_a_result(node, bundle, tmp_path):
    node.grader.run(codec.dumps(task(bundle, "ratio 1.5")))
    said = node.said()
    kinds = [kind for kind, _ in said]
    assert kinds == [Kind.claimed, *[Kind.event] * 6, Kind.result]
    assert [message.sequence for kind, message in said if kind is Kind.event] == list(range(6))
    assert said[1][1].event.phase.phase is Phase.preparing
    assert said[-1][1].result.verdict is Verdict.passed
    assert list((tmp_path / "work" / "attempts").iterdir()) == []


def test_heartbeats_go_on_while_it_is_graded(node, bundle):
    node.grader.run(codec.dumps(task(bundle, "sleep 1.5", lease_s=1.0)))
    assert [kind for kind, _ in node.said()].count(Kind.heartbeat) >= 3


def test_a_task_that_comes_twice_is_graded_once_even_after_a_restart(node, bundle, site, tmp_path):
    text = codec.dumps(task(bundle))
    node.grader.run(text)
    node.said()
    node.grader.run(text)
    again = Node(tmp_path / "work", site)
    again.grader.fail_unfinished()
    again.grader.run(text)
    assert node.said() == []


@pytest.mark.parametrize("directive", ["die", "garbage"])
def test_a_judge_that_breaks_is_a_failure_of_ours_and_the_next_attempt_goes_on(node, bundle, directive):
    node.grader.run(codec.dumps(task(bundle, directive)))
    kind, failure = node.said()[-1]
    assert (kind, failure.fence) == (Kind.failure, 1)
    assert "the judge" in failure.reason
    node.grader.run(codec.dumps(task(bundle, attempt=ATTEMPT[:-1] + "W")))
    assert node.said()[-1][0] is Kind.result


def test_an_attempt_that_outlives_its_deadline_is_a_failure_of_ours(node, bundle):
    node.grader.run(codec.dumps(task(bundle, "silent", deadline_s=1.0)))
    assert "deadline" in node.said()[-1][1].reason


def test_another_contract_version_is_refused_and_not_claimed(node, bundle, tmp_path):
    node.grader.run(codec.dumps(task(bundle, version=CONTRACT_VERSION + 1)))
    newer = {**codec.to_json(task(bundle)), "version": CONTRACT_VERSION + 1, "colour": "blue"}
    node.grader.run(json.dumps(newer))
    said = node.said()
    assert [kind for kind, _ in said] == [Kind.failure, Kind.failure]
    assert (said[1][1].attempt, said[1][1].fence) == (ATTEMPT, 1)
    assert list((tmp_path / "work" / "claims").iterdir()) == []


@pytest.mark.parametrize("text", ["", "null", "[" * 100_000, '{"attempt": 7}', "{" + "x" * 5_000_000])
def test_what_is_no_task_is_dropped(node, text):
    node.grader.run(text)
    assert node.said() == []


@pytest.mark.parametrize("attempt", ["../../etc/passwd", "", "x" * 26, "01ARZ3NDEKTSV4RRFFQ69G5FA/"])
def test_an_attempts_id_that_could_be_a_path_is_refused(node, bundle, tmp_path, attempt):
    node.grader.run(codec.dumps(task(bundle, attempt=attempt)))
    assert [kind for kind, _ in node.said()] == [Kind.failure]
    assert list((tmp_path / "work" / "claims").iterdir()) == []


def test_files_that_cannot_be_had_are_a_failure_of_ours(node):
    missing = content_hash(b"nothing")
    node.grader.run(codec.dumps(task(missing)))
    kind, failure = node.said()[-1]
    assert (kind, "404" in failure.reason) == (Kind.failure, True)


def test_what_a_killed_worker_left_is_said_once_and_removed(node, bundle, site, tmp_path):
    assert node.attempts.claim(ATTEMPT, 4)
    left = tmp_path / "work" / "attempts" / ATTEMPT
    left.mkdir()
    for expected in ([(Kind.failure, 4)], []):
        Node(tmp_path / "work", site).grader.fail_unfinished()
        assert [(kind, message.fence) for kind, message in node.said()] == expected
    assert not left.exists()


def test_an_attempts_folder_is_private_and_is_kept_on_request(site, bundle, tmp_path):
    attempts = Attempts(tmp_path / "kept", keep=True)
    request = task(bundle).request
    with attempts.staged(ATTEMPT, request, site.bundles[bundle]) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "bundle" / "assignments" / "vector_add" / "assignment.toml").is_file()
    assert codec.loads(GradeRequest, (folder / "request.json").read_text()) == request


# --- bundles ---------------------------------------------------------------------------------------------------------


def test_a_bundle_is_fetched_once_with_the_nodes_token(site, bundle, tmp_path):
    store = Bundles(tmp_path / "store", site.url, TOKEN)
    assert store.get(bundle, patience_s=0) == store.get(bundle, patience_s=0) == site.bundles[bundle]
    assert site.asked == [(f"/api/v1/bundles/{bundle}", f"Bearer {TOKEN}")]


def test_a_bundle_that_is_not_what_its_name_says_is_refused(site, bundle, tmp_path):
    site.bundles[bundle] = b"something else"
    store = Bundles(tmp_path / "store", site.url, TOKEN)
    with pytest.raises(BundleError, match="something else"):
        store.get(bundle, patience_s=0)
    assert list((tmp_path / "store").iterdir()) == []


def test_a_damaged_copy_is_fetched_again(site, bundle, tmp_path):
    store = Bundles(tmp_path / "store", site.url, TOKEN)
    store.get(bundle, patience_s=0)
    (kept,) = (tmp_path / "store").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert store.get(bundle, patience_s=0) == site.bundles[bundle]
    assert len(site.asked) == 2


def test_a_server_that_does_not_answer_is_asked_again_for_a_while(site, bundle, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.bundles.PAUSE_S", 0.01)
    site.failures = 3
    assert Bundles(tmp_path / "store", site.url, TOKEN).get(bundle, patience_s=60) == site.bundles[bundle]
    with pytest.raises(BundleError, match="did not answer"):
        Bundles(tmp_path / "other", "http://127.0.0.1:1", TOKEN).get(bundle, patience_s=0.05)


def test_a_bundle_that_is_too_large_is_not_read_to_its_end(site, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.bundles.MAX_BUNDLE_BYTES", 10)
    name = site.add(b"x" * 11)
    with pytest.raises(BundleError, match="more than 10 bytes"):
        Bundles(tmp_path / "store", site.url, TOKEN).get(name, patience_s=0)


@pytest.mark.parametrize("name", ["", "sha256:", "sha256:" + "0" * 63, "sha256:../../../etc/passwd", "md5:0"])
def test_a_name_that_is_no_content_hash_is_never_asked_for(site, tmp_path, name):
    with pytest.raises(BundleError, match="no content hash"):
        Bundles(tmp_path / "store", site.url, TOKEN).get(name, patience_s=0)
    assert site.asked == []


def test_only_the_bundles_used_last_are_kept(site, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.bundles.KEPT", 2)
    store = Bundles(tmp_path / "store", site.url, TOKEN)
    names = [site.add(text) for text in (b"a", b"b", b"c")]
    for age, name in enumerate(names):
        store.get(name, patience_s=0)
        for kept in (tmp_path / "store").glob(f"{name[7:]}.tar"):
            os.utime(kept, (1000 + age, 1000 + age))
    kept = {path.stem for path in (tmp_path / "store").iterdir()}
    assert kept == {name[7:] for name in names[1:]}


# --- saying it -------------------------------------------------------------------------------------------------------


def test_a_message_is_said_again_until_it_is_said_or_its_lease_is_gone(node, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.results.PAUSE_S", 0.05)
    messages = tmp_path / "work" / "broker" / "messages"
    failure = AttemptFailure(ATTEMPT, 1, "")
    messages.rename(tmp_path / "away")
    assert not node.outbox.tell(Kind.failure, failure)
    assert not node.outbox.deliver(Kind.failure, failure, lease_s=0.2)
    back = Timer(0.3, (tmp_path / "away").rename, [messages])
    back.start()
    assert node.outbox.deliver(Kind.failure, failure, lease_s=60)
    back.join()
    assert node.said() == [(Kind.failure, failure)]


def test_a_broker_that_does_not_answer_is_no_error():
    outbox = Outbox(make_app("test", "redis://127.0.0.1:1/0"), "anvil", TOKEN)
    assert not outbox.tell(Kind.heartbeat, Claim(ATTEMPT, 1, 0.0))


def test_a_node_reports_when_it_starts_drains_and_stops(node):
    reporter = Reporter(node.outbox, (Lane.cpu,))

    def reports():
        return [(message.slots, message.draining) for _, message in node.said()]

    reporter.start()
    found = []
    while not found:
        found += reports()
        time.sleep(0.01)
    reporter.drain()
    while len(found) < 2:
        found += reports()
        time.sleep(0.01)
    reporter.stop()
    found += reports()
    assert (found[0], found[1], found[-1]) == ((1, False), (1, True), (0, True))


def test_a_reporter_that_never_started_can_be_stopped(node):
    Reporter(node.outbox, (Lane.cpu,)).stop()
    assert node.said() == []


# --- configuration ---------------------------------------------------------------------------------------------------


def test_everything_has_a_default_but_the_token(tmp_path):
    home = {"LADDER_HOME": str(tmp_path)}
    with pytest.raises(ValueError, match="LADDER_NODE_TOKEN is not set"):
        load_config(home)
    (tmp_path / "node-local.token").write_text("kn_file\n")
    config = load_config(home)
    assert (config.node, config.token, config.lanes) == ("local", "kn_file", (Lane.cpu,))
    assert config.work == tmp_path / "work"
    assert "kn_file" not in repr(config)


def test_what_cannot_be_read_is_named():
    with pytest.raises(ValueError, match="LADDER_LANES has to be some of cpu"):
        load_config({"LADDER_NODE_TOKEN": "t", "LADDER_LANES": "cpu,abacus"})


def test_the_environment_is_read(tmp_path):
    config = load_config(
        {
            "LADDER_NODE_NAME": "forge",
            "LADDER_NODE_TOKEN": "t",
            "LADDER_SERVER_URL": "https://ladder.example/",
            "LADDER_BROKER_URL": "redis://broker/1",
            "LADDER_WORK": str(tmp_path),
            "LADDER_LANES": "h200, b200",
            "LADDER_JUDGE": "python 'my judge.py' serve",
            "LADDER_KEEP_ATTEMPTS": "1",
        }
    )
    assert config.server_url == "https://ladder.example"
    assert config.lanes == (Lane.h200, Lane.b200)
    assert config.judge == ("python", "my judge.py", "serve")
    assert config.keep_attempts


def test_a_claim_of_a_name_that_is_no_id_is_an_error(node):
    with pytest.raises(WorkerError, match="no attempt's id"):
        node.attempts.claim("../x", 1)
