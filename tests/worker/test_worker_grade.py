from __future__ import annotations

import dataclasses
import errno
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread, Timer
from types import SimpleNamespace

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
    Work,
)
from broker.app import make_app
from broker.envelope import unseal
from broker.identity import Credentials, ForgedError, NodeKey
from tests.doubles.nvml import FakeNvml
from worker import artefacts, judge, known
from worker.aftermath import Aftermath
from worker.attempts import Attempts
from worker.bundles import Bundles
from worker.config import load_config
from worker.disk import Disk, locked
from worker.gpulock import GpuLock
from worker.grade import Around, Grader
from worker.health import Health
from worker.judge import JudgeProcess
from worker.known import KnownJobs
from worker.lanes import Serves
from worker.life import Device, NodeLife
from worker.node_errors import BundleError, FolderTakenError, HandedBackError, WorkerError
from worker.nvml import open_gpu
from worker.outbox import Outbox
from worker.processes import kill_tree
from worker.reports import Reporter
from worker.server import Server, Signature
from worker.settings import LifeConfig
from worker.stopping import Stopping

REPOSITORY = Path(__file__).parents[2]
KEY = NodeKey.generate()
SIGNATURE = Signature("anvil", KEY)
ATTEMPT = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class Site:
    """A server of bundles that counts what it is asked, knows which attempts live, and keeps files."""

    def __init__(self) -> None:
        self.bundles: dict[str, bytes] = {}
        self.wanted = ""
        """The bundle of whatever attempt is asked about."""
        self.failures = 0
        self.asked: list[tuple[str, str | None]] = []
        self.live: bool | None = True
        self.asked_about: list[str] = []
        self.kept: dict[str, bytes] = {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self):
                site.kept[self.path] = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(204)
                self.end_headers()

            def about_an_attempt(self):
                site.asked_about.append(self.path)
                self.send_response(200 if site.live is not None else 503)
                self.end_headers()
                self.wfile.write(json.dumps({"live": site.live}).encode())

            def do_GET(self):
                if "/bundle" not in self.path:
                    self.about_an_attempt()
                    return
                site.asked.append((self.path, self.headers.get("authorization")))
                data = site.bundles.get(site.wanted)
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
        self.wanted = content_hash(data)
        self.bundles[self.wanted] = data
        return self.wanted

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

    def __init__(self, work: Path, site: Site, *, keep: bool = False, drain_s: float = 600, floor_mb: int = 0) -> None:
        self.app = make_app("test", f"filesystem://{work / 'broker'}")
        self.outbox = Outbox(self.app, "anvil", KEY)
        self.stopping, self.disk = Stopping(drain_s), Disk(work, floor_mb)
        self.server = Server(site.url, SIGNATURE)
        self.aftermath = Aftermath(self.outbox, self.server)
        double = (sys.executable, str(REPOSITORY / "tests/doubles/judge.py"))
        self.judge = JudgeProcess(double, work / "judge.log", stopping=self.stopping)
        self.attempts = Attempts(work, keep=keep)
        bundles = Bundles(work / "bundles", site.url, SIGNATURE, wait=self.stopping.sleep)
        self.life = self._life(work, LifeConfig(), Device(GpuLock(work, "")))
        around = Around(self.outbox, self.server, self.aftermath, self.stopping, self.disk, self.life)
        self.grader = Grader(attempts=self.attempts, bundles=bundles, judge=self.judge, around=around)
        serves = Serves((Lane.cpu,), (Work.all, Work.check), {"sandbox": "double"})
        self.reporter = Reporter(self.outbox, serves, stopping=self.stopping, disk=self.disk, life=self.life)

    def _life(self, work: Path, config: LifeConfig, device: Device, lane: Lane = Lane.cpu) -> NodeLife:
        jobs = KnownJobs(self.judge, work / "known", lane)
        health = Health(work / "health.json", config.cool_down_s, time.time)
        return NodeLife(config, jobs, device, health, work=work, stopping=self.stopping)

    def end(self) -> None:
        self.judge.kill()
        self.aftermath.stop()
        self.server.close()

    def said(self) -> list[tuple[Kind, object]]:
        """Everything said so far, verified."""
        found = []
        with self.app.connection_for_read() as connection:
            queue = connection.SimpleQueue("results")
            while queue.qsize():
                message = queue.get(timeout=1)
                message.ack()
                envelope = codec.loads(Envelope, message.payload[1]["envelope"])
                found.append((envelope.kind, unseal(envelope, KEY.identity.public_key)))
            queue.close()
        return found


@pytest.fixture
def node(tmp_path, site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    made = Node(tmp_path / "work", site)
    yield made
    made.end()


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
    again.grader.say_what_was_left()
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
        Node(tmp_path / "work", site).grader.say_what_was_left()
        assert [(kind, message.fence) for kind, message in node.said()] == expected
    assert not left.exists()


@pytest.mark.parametrize("left", [b"\0" * 4, b"four", b"\xff"])
def test_a_claim_that_a_power_cut_left_broken_keeps_no_worker_from_starting(node, bundle, tmp_path, left):
    (tmp_path / "work" / "claims" / ATTEMPT).write_bytes(left)
    folder = tmp_path / "work" / "attempts" / ATTEMPT
    folder.mkdir()
    node.grader.say_what_was_left()
    assert node.said() == []
    # It is removed as that of a finished one is, and the attempt's lease ends.
    assert not folder.exists()
    assert node.attempts.unfinished() == []


def test_an_attempts_folder_is_private_and_is_kept_on_request(site, bundle, tmp_path):
    attempts = Attempts(tmp_path / "kept", keep=True)
    request = task(bundle).request
    with attempts.staged(ATTEMPT, request, site.bundles[bundle]) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / "bundle" / "assignments" / "vector_add" / "assignment.toml").is_file()
    assert codec.loads(GradeRequest, (folder / "request.json").read_text()) == request


def test_a_web_tier_that_is_away_costs_no_attempt(node, bundle, monkeypatch):
    """The broker may be there all the while: the same submission would come back, and fail, which is nobody's fault."""
    monkeypatch.setattr("worker.bundles.PAUSE_S", 0.01)
    asked = []
    real = node.grader._bundles.get

    def get(name, *, patience_s):
        asked.append(patience_s)
        return real(name, patience_s=0.05)

    monkeypatch.setattr(node.grader._bundles, "get", get)
    monkeypatch.setattr(node.grader._bundles, "_url", "http://127.0.0.1:1")
    work = task(bundle)
    node.grader.run(codec.dumps(work))
    kind, failure = node.said()[-1]
    assert (kind, failure.handed_back) == (Kind.failure, True)
    assert "did not answer" in failure.reason
    assert work.deadline_s / 2 < asked[0] < work.deadline_s


# --- bundles ---------------------------------------------------------------------------------------------------------


def test_a_bundle_is_fetched_once_for_the_attempt_and_signed(site, bundle, tmp_path):
    store = Bundles(tmp_path / "store", site.url, SIGNATURE)
    assert store.get(task(bundle), patience_s=0) == store.get(task(bundle), patience_s=0) == site.bundles[bundle]
    ((path, authorization),) = site.asked
    assert path == f"/api/v1/attempts/{ATTEMPT}/bundle?fence=1"
    credentials = Credentials.parse(authorization.removeprefix("Ladder-Node "))
    credentials.check(KEY.identity.public_key, "GET", path, b"")
    with pytest.raises(ForgedError):
        credentials.check(KEY.identity.public_key, "GET", path.replace("fence=1", "fence=2"), b"")


def test_a_bundle_that_is_not_what_its_name_says_is_refused(site, bundle, tmp_path):
    site.bundles[bundle] = b"something else"
    store = Bundles(tmp_path / "store", site.url, SIGNATURE)
    with pytest.raises(BundleError, match="did not send"):
        store.get(task(bundle), patience_s=0)
    assert list((tmp_path / "store").iterdir()) == []


def test_a_damaged_copy_is_fetched_again(site, bundle, tmp_path):
    store = Bundles(tmp_path / "store", site.url, SIGNATURE)
    store.get(task(bundle), patience_s=0)
    (kept,) = (tmp_path / "store").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert store.get(task(bundle), patience_s=0) == site.bundles[bundle]
    assert len(site.asked) == 2


def test_a_server_that_does_not_answer_is_asked_again_for_a_while(site, bundle, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.bundles.PAUSE_S", 0.01)
    site.failures = 3
    assert Bundles(tmp_path / "store", site.url, SIGNATURE).get(task(bundle), patience_s=60) == site.bundles[bundle]
    with pytest.raises(HandedBackError, match="did not answer"):
        Bundles(tmp_path / "other", "http://127.0.0.1:1", SIGNATURE).get(task(bundle), patience_s=0.05)


def test_a_bundle_that_is_too_large_is_not_read_to_its_end(site, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.bundles.MAX_BUNDLE_BYTES", 10)
    name = site.add(b"x" * 11)
    with pytest.raises(BundleError, match="more than 10 bytes"):
        Bundles(tmp_path / "store", site.url, SIGNATURE).get(task(name), patience_s=0)


def test_a_bundle_that_could_not_be_kept_leaves_nothing_on_a_full_disk(site, bundle, tmp_path, monkeypatch):
    def full(path, data):
        with path.open("wb") as file:
            file.write(data[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    bundles = Bundles(tmp_path / "bundles", site.url, SIGNATURE)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        bundles.get(task(bundle), patience_s=1)
    assert list((tmp_path / "bundles").iterdir()) == []


@pytest.mark.parametrize("name", ["", "sha256:", "sha256:" + "0" * 63, "sha256:../../../etc/passwd", "md5:0"])
def test_a_name_that_is_no_content_hash_is_never_asked_for(site, tmp_path, name):
    with pytest.raises(BundleError, match="no content hash"):
        Bundles(tmp_path / "store", site.url, SIGNATURE).get(task(name), patience_s=0)
    assert site.asked == []


def test_only_the_bundles_used_last_are_kept(site, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.bundles.KEPT", 2)
    store = Bundles(tmp_path / "store", site.url, SIGNATURE)
    names = [site.add(text) for text in (b"a", b"b", b"c")]
    for age, name in enumerate(names):
        site.wanted = name
        store.get(task(name), patience_s=0)
        for kept in (tmp_path / "store").glob(f"{name[7:]}.tar"):
            os.utime(kept, (1000 + age, 1000 + age))
    kept = {path.stem for path in (tmp_path / "store").iterdir()}
    assert kept == {name[7:] for name in names[1:]}


# --- saying it -------------------------------------------------------------------------------------------------------


def test_a_message_is_said_again_until_it_is_said_or_patience_ends(node, tmp_path, monkeypatch):
    monkeypatch.setattr("worker.outbox.PAUSE_S", 0.05)
    messages = tmp_path / "work" / "broker" / "messages"
    failure = AttemptFailure(ATTEMPT, 1, "")
    messages.rename(tmp_path / "away")
    assert not node.outbox.tell(Kind.failure, failure)
    assert not node.outbox.deliver(Kind.failure, failure, patience_s=0.2, wait=time.sleep)
    back = Timer(0.3, (tmp_path / "away").rename, [messages])
    back.start()
    assert node.outbox.deliver(Kind.failure, failure, patience_s=60, wait=time.sleep)
    back.join()
    assert node.said() == [(Kind.failure, failure)]


def test_what_is_only_shown_never_keeps_a_grading_waiting(tmp_path, site, bundle, monkeypatch):
    """Every event of a broker that hangs would be waited for."""
    node = Node(tmp_path / "work", site)
    hang = Event()

    def tell(kind, message):
        if kind is Kind.event:
            hang.wait(60)
            return False
        return told(kind, message)

    told = node.outbox.tell
    monkeypatch.setattr(node.outbox, "tell", tell)
    monkeypatch.setattr("worker.grade.MENTIONS_S", 0.1)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    node.grader.run(codec.dumps(task(bundle)))
    hang.set()
    assert [kind for kind, _ in node.said()] == [Kind.claimed, Kind.result]
    node.end()


def test_a_broker_that_does_not_answer_is_no_error():
    outbox = Outbox(make_app("test", "redis://127.0.0.1:1/0"), "anvil", KEY)
    assert not outbox.tell(Kind.heartbeat, Claim(ATTEMPT, 1, 0.0))


def test_a_node_reports_when_it_starts_drains_and_stops(node):
    def reports():
        return [(message.slots, message.draining) for _, message in node.said()]

    node.reporter.start()
    found = []
    while not found:
        found += reports()
        time.sleep(0.01)
    node.stopping.ask()
    while len(found) < 2:
        found += reports()
        time.sleep(0.01)
    node.reporter.stop()
    found += reports()
    assert (found[0], found[1], found[-1]) == ((1, False), (1, True), (0, True))


def test_a_reporter_that_never_started_can_be_stopped(node):
    node.reporter.stop()
    assert node.said() == []


def test_a_node_says_what_it_does_and_what_time_it_is(node):
    began = time.time()
    node.reporter._report(draining=False)
    ((_, report),) = node.said()
    assert report.works == (Work.all, Work.check)
    assert began <= report.at <= time.time()


# --- what is still wanted --------------------------------------------------------------------------------------------


def test_an_attempt_that_is_over_is_not_begun(node, bundle, site):
    site.live = False
    node.grader.run(codec.dumps(task(bundle)))
    assert site.asked_about == [f"/api/v1/attempts/{ATTEMPT}?fence=1"]
    assert (node.said(), site.asked) == ([], [])


def test_a_server_that_does_not_say_keeps_nobody_waiting(node, bundle, site):
    site.live = None
    node.grader.run(codec.dumps(task(bundle)))
    assert node.said()[-1][0] is Kind.result


def test_a_result_that_the_server_still_waits_for_is_said_again(node, bundle, site, monkeypatch):
    monkeypatch.setattr("worker.aftermath.LOOK_EVERY_S", 0.05)
    node.aftermath.start()
    node.grader.run(codec.dumps(task(bundle)))
    said = []
    while [kind for kind, _ in said].count(Kind.result) < 2:
        said += node.said()
        time.sleep(0.01)
    assert Kind.heartbeat in {kind for kind, _ in said}
    results = [message for kind, message in said if kind is Kind.result]
    assert results[0] == results[1]
    site.live = False
    asked = len(site.asked_about)
    while len(site.asked_about) == asked or node.aftermath._waiting:
        time.sleep(0.01)
    node.said()
    asked = len(site.asked_about)
    time.sleep(0.3)
    assert (node.said(), len(site.asked_about)) == ([], asked)


# --- being stopped ---------------------------------------------------------------------------------------------------


def begun(node, text):
    """The node grades in a thread, as far as the judge's first word."""
    thread = Thread(target=node.grader.run, args=[text])
    thread.start()
    said = []
    while Kind.event not in {kind for kind, _ in said}:
        said += node.said()
        time.sleep(0.01)
    return thread


@pytest.mark.parametrize("how", ["asked twice", "too slow"])
def test_a_node_that_is_stopped_hands_its_attempt_back(tmp_path, site, bundle, monkeypatch, how):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    node = Node(tmp_path / "work", site, drain_s=0.05 if how == "too slow" else 600)
    thread = begun(node, codec.dumps(task(bundle, "silent")))
    node.stopping.ask()
    if how == "asked twice":
        node.stopping.ask()
    else:
        node.reporter.start()
    thread.join()
    node.reporter.stop()
    failures = [message for kind, message in node.said() if kind is Kind.failure]
    assert failures == [AttemptFailure(ATTEMPT, 1, "the node was stopped", handed_back=True)]
    node.end()


def test_a_node_that_is_asked_once_finishes_what_it_has_and_begins_nothing(node, bundle):
    thread = begun(node, codec.dumps(task(bundle, "sleep 0.5")))
    node.stopping.ask()
    thread.join()
    assert [kind for kind, _ in node.said()][-1] is Kind.result
    node.grader.run(codec.dumps(task(bundle, attempt=ATTEMPT[:-1] + "W")))
    ((kind, failure),) = node.said()
    assert (kind, failure.handed_back) == (Kind.failure, True)


def test_a_node_that_waits_for_files_can_be_stopped(node, site):
    site.failures = 10**6
    thread = Thread(target=node.grader.run, args=[codec.dumps(task(content_hash(b"nothing"), lease_s=3600.0))])
    thread.start()
    while not site.asked:
        time.sleep(0.01)
    node.stopping.ask()
    node.stopping.ask()
    thread.join()
    assert node.said()[-1][1].handed_back


def test_a_result_that_cannot_be_sent_before_the_end_is_sent_by_the_next_worker(node, bundle, site, tmp_path):
    messages = tmp_path / "work" / "broker" / "messages"
    thread = begun(node, codec.dumps(task(bundle, "sleep 0.5", "ratio 1.5")))
    messages.rename(tmp_path / "away")
    node.stopping.ask()
    time.sleep(1.5)  # The judge has ended by now, or the attempt is handed back, which is said as well.
    node.stopping.ask()
    thread.join()
    (tmp_path / "away").rename(messages)
    node.said()
    for expected in (1, 0):
        Node(tmp_path / "work", site).grader.say_what_was_left()
        said = node.said()
        assert len(said) == expected
        if said:
            assert said[0][1].attempt == ATTEMPT


# --- room on the disk ------------------------------------------------------------------------------------------------


def test_a_node_without_room_takes_nothing_and_hands_back(tmp_path, site, bundle):
    node = Node(tmp_path / "work", site, floor_mb=10**9)
    node.reporter._report(draining=False)
    node.grader.run(codec.dumps(task(bundle)))
    (_, report), (claimed, _), (kind, failure) = node.said()
    assert report.slots == 0
    assert report.facts["trouble"].startswith("disk full: ")
    assert (claimed, kind, failure.handed_back) == (Kind.claimed, Kind.failure, True)
    assert site.asked == []
    node.end()


@pytest.mark.parametrize("where", ["claim", "staged"])
def test_a_disk_that_fills_while_we_write_is_ours(node, bundle, monkeypatch, where):
    def full(*_arguments, **_options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(node.attempts, where, full)
    node.grader.run(codec.dumps(task(bundle)))
    kind, failure = node.said()[-1]
    assert (kind, failure.handed_back) == (Kind.failure, True)
    assert "No space left" in failure.reason


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"f_flag": os.ST_RDONLY}, "its folder cannot be used: the file system is read-only"),
        ({"f_favail": 10}, "disk full: 10 files can still be made, 1000 are needed"),
        # One that counts no files has room for any.
        ({"f_files": 0, "f_favail": 0}, ""),
    ],
)
def test_a_disk_may_be_of_no_use_although_it_has_room(tmp_path, monkeypatch, found, said):
    real = os.statvfs(tmp_path)
    plain = {name: getattr(real, name) for name in dir(real) if name.startswith("f_")}
    plain |= {"f_files": 10**6, "f_favail": 10**6, "f_flag": 0, "f_bavail": 10**9}
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(**plain | found))
    assert Disk(tmp_path, 500).trouble() == said


@pytest.mark.parametrize("where", ["claim", "staged", "finished"])
def test_a_disk_that_turns_read_only_raises_nothing_and_costs_no_attempt(node, bundle, monkeypatch, where):
    def read_only(*_arguments, **_options):
        raise OSError(errno.EROFS, "Read-only file system")

    if where == "finished":
        monkeypatch.setattr(Path, "write_text", read_only)
    else:
        monkeypatch.setattr(node.attempts, where, read_only)
    node.grader.run(codec.dumps(task(bundle)))
    kind, message = node.said()[-1]
    assert (kind, message.handed_back) == (Kind.failure, True)


# --- one folder, one worker ------------------------------------------------------------------------------------------


def test_a_second_worker_of_a_folder_is_refused(tmp_path):
    with locked(tmp_path / "work"):
        with pytest.raises(FolderTakenError, match=f"process {os.getpid()}"), locked(tmp_path / "work"):
            pass
        with locked(tmp_path / "other"):
            pass
    with locked(tmp_path / "work"):
        pass


# --- files that an attempt leaves ------------------------------------------------------------------------------------


def test_only_small_plain_files_with_plain_names_are_taken(tmp_path):
    folder = tmp_path / "artefacts"
    folder.mkdir()
    (folder / "ptx.txt").write_text("fine")
    (tmp_path / "secret").write_text("kn_secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "hard").hardlink_to(tmp_path / "secret")
    (folder / "large").write_bytes(b"x" * (artefacts.MAX_BYTES + 1))
    (folder / "empty").touch()
    (folder / ".hidden").write_text("no")
    (folder / "sp ace").write_text("no")
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    assert artefacts.left_in(tmp_path) == (("ptx.txt", b"fine"),)
    for number in range(20):
        (folder / f"more{number:02}").write_text("x")
    assert len(artefacts.left_in(tmp_path)) == artefacts.MAX_FILES


def test_a_folder_of_files_that_is_a_link_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("kn_secret")
    (tmp_path / "attempt").mkdir()
    (tmp_path / "attempt" / "artefacts").symlink_to(tmp_path / "elsewhere")
    assert artefacts.left_in(tmp_path / "attempt") == ()
    assert artefacts.left_in(tmp_path / "nowhere") == ()


def test_of_the_judges_log_only_the_end_of_this_attempt_is_taken(tmp_path):
    log = tmp_path / "judge.log"
    assert artefacts.end_of(log, since=0) == ()
    log.write_bytes(b"before" + b"x" * artefacts.LOG_BYTES + b"the end")
    assert artefacts.end_of(log, since=len(log.read_bytes()) - 7) == (("judge.log", b"the end"),)
    ((_, data),) = artefacts.end_of(log, since=0)
    assert (len(data), data[-7:]) == (artefacts.LOG_BYTES, b"the end")
    assert artefacts.end_of(log, since=10**9)[0][1] == data
    assert artefacts.end_of(log, since=len(log.read_bytes())) == ()


def test_files_and_the_log_of_a_failure_go_to_the_server_after_the_result(node, bundle, site, tmp_path):
    node.aftermath.start()
    node.judge.start()
    node.judge.log.write_text("what the judge said before\n")
    node.grader.run(codec.dumps(task(bundle, "die")))
    path = f"/api/v1/attempts/{ATTEMPT}/artefacts/judge.log?fence=1"
    give_up_at = time.monotonic() + 30
    while path not in site.kept and time.monotonic() < give_up_at:
        time.sleep(0.01)
    assert ATTEMPT.encode() in site.kept[path]
    assert b"before" not in site.kept[path]


# --- configuration ---------------------------------------------------------------------------------------------------


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "node-local.key"
    KEY.save(path)
    return path


def test_everything_has_a_default_but_the_key(tmp_path):
    home = {"LADDER_HOME": str(tmp_path)}
    with pytest.raises(ValueError, match=r"node-local.key \(LADDER_NODE_KEY_FILE\) cannot be read"):
        load_config(home)
    (tmp_path / "node-local.key").write_text("no key\n")
    with pytest.raises(ValueError, match=r"LADDER_NODE_KEY_FILE: .* holds no key"):
        load_config(home)
    (tmp_path / "node-local.key").unlink()
    KEY.save(tmp_path / "node-local.key")
    config = load_config(home)
    assert (config.name, config.key.identity, config.node.lanes) == ("local", KEY.identity, (Lane.cpu,))
    assert config.node.work == tmp_path / "work"
    assert KEY.broker_password not in repr(config)


def test_what_cannot_be_read_is_named(key_file):
    with pytest.raises(ValueError, match="LADDER_LANES has to be some of cpu"):
        load_config({"LADDER_NODE_KEY_FILE": str(key_file), "LADDER_LANES": "cpu,abacus"})


def test_the_environment_is_read(tmp_path, key_file):
    config = load_config(
        {
            "LADDER_NODE_NAME": "forge",
            "LADDER_NODE_KEY_FILE": str(key_file),
            "LADDER_SERVER_URL": "https://ladder.example/",
            "LADDER_BROKER_URL": "redis://broker/1",
            "LADDER_WORK": str(tmp_path),
            "LADDER_LANES": "h200, b200",
            "LADDER_JUDGE": "python 'my judge.py' serve",
            "LADDER_KEEP_ATTEMPTS": "1",
            "LADDER_STAGES": "check, measure",
            "LADDER_DRAIN_S": "7.5",
            "LADDER_MIN_FREE_MB": "9",
        }
    )
    assert config.server_url == "https://ladder.example"
    assert config.node.lanes == (Lane.h200, Lane.b200)
    assert config.node.judge == ("python", "my judge.py", "serve")
    assert config.keep_attempts
    assert config.node.works == (Work.check, Work.measure)
    assert (config.drain_s, config.min_free_mb) == (7.5, 9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("LADDER_STAGES", "dance"), ("LADDER_DRAIN_S", "soon"), ("LADDER_DRAIN_S", "nan"), ("LADDER_MIN_FREE_MB", "-1")],
)
def test_a_setting_that_makes_no_sense_is_refused_by_its_name(key_file, name, value):
    with pytest.raises(ValueError, match=name):
        load_config({"LADDER_NODE_KEY_FILE": str(key_file), name: value})


def test_a_claim_of_a_name_that_is_no_id_is_an_error(node):
    with pytest.raises(WorkerError, match="no attempt's id"):
        node.attempts.claim("../x", 1)


# --- a node that looks after itself ----------------------------------------------------------------------------------


def test_a_node_in_trouble_takes_nothing_and_says_so(node, bundle):
    node.life.health.refuse("self-test failed: it got out")
    node.reporter._report(*node.reporter._state())
    node.grader.run(codec.dumps(task(bundle)))
    (_, report), (kind, failure) = node.said()
    assert (report.slots, report.draining, report.facts["trouble"]) == (0, True, "self-test failed: it got out")
    assert (kind, failure.handed_back, failure.suspect) == (Kind.failure, True, False)


def test_an_attempt_after_which_the_node_is_ill_comes_back_as_suspect_and_the_next_is_handed_back(
    node, bundle, monkeypatch, tmp_path
):
    ill = tmp_path / "good.py"
    ill.write_text("# judge: ours\n")
    monkeypatch.setattr(known, "KNOWN_GOOD", ill)
    node.life.health.sang()
    node.grader.run(codec.dumps(task(bundle, "die")))
    failure = node.said()[-1][1]
    assert (failure.suspect, failure.handed_back) == (True, False)
    assert "the judge died" in failure.reason
    assert "known-good job failed" in failure.reason
    node.reporter._report(*node.reporter._state())
    node.grader.run(codec.dumps(task(bundle, attempt=ATTEMPT[:-1] + "W")))
    (_, report), (_, after) = node.said()
    assert report.suspect_since <= report.suspect_until
    assert after.handed_back


def test_whether_the_node_is_ill_is_asked_also_after_a_judge_that_no_signal_ends(node, bundle, monkeypatch, tmp_path):
    """A call into a driver that hangs: SIGKILL waits for it."""
    node.judge.start()
    stuck = node.judge._process
    ill = tmp_path / "good.py"
    ill.write_text("# judge: ours\n")
    monkeypatch.setattr(known, "KNOWN_GOOD", ill)
    monkeypatch.setattr(judge, "kill_tree", lambda pid: kill_tree(pid) if pid != stuck.pid else None)
    monkeypatch.setattr(judge, "EXIT_S", 2.0)
    node.life.health.sang()
    node.grader.run(codec.dumps(task(bundle, "silent", deadline_s=1.0)))
    kill_tree(stuck.pid)
    stuck.wait(30)
    failure = node.said()[-1][1]
    assert failure.suspect
    assert "deadline" in failure.reason
    assert "known-good job failed" in failure.reason
    assert "known-good job failed" in node.life.trouble()


def test_a_judge_that_dies_on_a_healthy_node_makes_no_suspect(node, bundle):
    node.grader.run(codec.dumps(task(bundle, "die")))
    failure = node.said()[-1][1]
    assert (failure.suspect, node.life.trouble()) == (False, "")


def test_a_result_travels_with_what_was_seen_of_the_gpu(node, bundle, tmp_path):
    gpu = open_gpu(nvml=FakeNvml(xids=[]))
    node.life._device = Device(GpuLock(tmp_path / "locks", gpu.uuid), gpu)
    node.grader.run(codec.dumps(task(bundle, "sleep 0.5")))
    result = node.said()[-1][1].result
    assert (result.gpu.name, result.gpu.uuid, result.gpu.trouble) == ("NVIDIA H200", "GPU-aaaa", "")
    assert Phase.checking in {one.phase for one in result.gpu.samples}
    assert result.environment["gpu uuid"] == "GPU-aaaa"


def test_an_attempt_is_handed_back_if_others_have_the_gpu_all_the_time(node, bundle, tmp_path):
    gpu = open_gpu(nvml=FakeNvml())
    node.life._device = Device(GpuLock(tmp_path / "locks", gpu.uuid), gpu)
    with GpuLock(tmp_path / "locks", gpu.uuid).held(Work.measure, patience_s=0):
        node.grader.run(codec.dumps(task(bundle, deadline_s=0.2)))
    failure = node.said()[-1][1]
    assert (failure.handed_back, "GPU-aaaa was in use" in failure.reason) == (True, True)


def test_a_report_carries_the_noise_floor(node, bundle):
    node.life.canary.sing()
    node.reporter._report(*node.reporter._state())
    assert node.said()[-1][1].calibration.gradings == 1
