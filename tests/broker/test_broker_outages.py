"""What happens to publishers and consumers when their Redis dies, hangs, forgets everything, or wants TLS.

Each test has a Redis of its own, and a consumer in a process of its own, which writes down what it gets.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from kombu.exceptions import OperationalError

from broker.app import RECORD, RESULTS, make_app, send

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 90.0
CONSUMER = """
import sys, time
from broker import app as module
module._REDIS.update(visibility_timeout=2, unacked_restore_interval=1, health_check_interval=1)
url, path = sys.argv[1:]
app = module.make_app("test", url, queue=module.RESULTS)
def record(envelope):
    with open(path, "a") as file:
        file.write(envelope + "\\n")
    if envelope == "hang":
        time.sleep(3600)
module.serve(app, module.RECORD, record, acks_late=True)
sys.exit(module.consume(app))
"""

pytestmark = pytest.mark.redis


def until(found, what):
    give_up_at = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < give_up_at, f"waited in vain for: {what}"
        time.sleep(0.05)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PrivateRedis:
    """A Redis that may be killed, stopped and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._options = options
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        command = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        command += self._options or ("--port", str(self.port))
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(self._answers, "Redis")

    def _answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


@pytest.fixture
def private(tmp_path) -> Iterator[PrivateRedis]:
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server")
    made = PrivateRedis(tmp_path)
    made.start()
    yield made
    made.kill()


class Consumer:
    """A process that consumes the results queue."""

    def __init__(self, url: str, path: Path) -> None:
        self.path = path
        command = [sys.executable, "-c", CONSUMER, url, str(path)]
        self.process = subprocess.Popen(command, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})

    def got(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []

    def wait_for(self, *texts: str) -> None:
        until(lambda: set(texts) <= set(self.got()), texts)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def consume(tmp_path):
    started = []

    def call(url):
        started.append(Consumer(url, tmp_path / "got"))
        return started[-1]

    yield call
    for consumer in started:
        consumer.kill()


def say(url, text):
    send(make_app("publisher", url), RECORD, RESULTS, text)


@pytest.mark.full("slow")
def test_a_consumer_goes_on_after_its_redis_was_killed_and_started_again(private, consume):
    consumer = consume(private.url)
    say(private.url, "before")
    consumer.wait_for("before")
    for number in range(3):
        private.kill()
        private.start()
        say(private.url, f"after{number}")
        consumer.wait_for(f"after{number}")
    assert consumer.process.poll() is None


def test_a_consumer_that_starts_before_redis_waits_for_it(tmp_path, private, consume):
    private.kill()
    consumer = consume(private.url)
    time.sleep(1.0)
    private.start()
    say(private.url, "first")
    consumer.wait_for("first")


def test_a_consumer_goes_on_after_everything_was_flushed(private, consume):
    consumer = consume(private.url)
    say(private.url, "before")
    consumer.wait_for("before")
    private.client().flushall()
    say(private.url, "after")
    consumer.wait_for("after")


def test_a_publisher_says_soon_that_nobody_answers(private):
    app = make_app("publisher", private.url)
    send(app, RECORD, RESULTS, "pooled")
    private.kill()
    for _ in range(2):
        with pytest.raises(OperationalError):
            send(app, RECORD, RESULTS, "lost")
    private.start()
    send(app, RECORD, RESULTS, "again")
    assert private.client().llen(RESULTS) == 1


def test_a_publisher_does_not_wait_for_ever_for_a_redis_that_hangs(private, monkeypatch):
    monkeypatch.setitem(sys.modules["broker.app"]._REDIS, "socket_timeout", 0.5)
    app = make_app("publisher", private.url)
    send(app, RECORD, RESULTS, "pooled")
    private.process.send_signal(signal.SIGSTOP)
    with pytest.raises(OperationalError):
        send(app, RECORD, RESULTS, "unheard")
    private.process.send_signal(signal.SIGCONT)
    send(app, RECORD, RESULTS, "again")


def test_a_redis_without_room_is_an_error_of_its_own_and_no_surprise(private):
    app = make_app("publisher", private.url)
    send(app, RECORD, RESULTS, "fits")
    private.client().config_set("maxmemory", 1)
    with pytest.raises(OperationalError):
        send(app, RECORD, RESULTS, "too much")


@pytest.mark.full("slow")
def test_a_consumer_goes_on_after_its_redis_hung(private, consume):
    consumer = consume(private.url)
    say(private.url, "before")
    consumer.wait_for("before")
    private.process.send_signal(signal.SIGSTOP)
    time.sleep(6.0)
    private.process.send_signal(signal.SIGCONT)
    say(private.url, "after")
    consumer.wait_for("after")


def test_what_a_killed_consumer_had_in_its_hands_comes_to_the_next_one(private, consume):
    first = consume(private.url)
    say(private.url, "hang")
    first.wait_for("hang")
    first.kill()
    first.path.unlink()
    consume(private.url).wait_for("hang")


class Wire:
    """Connections to a Redis that can be made half-open: alive on this side, dead on the other."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._dead: set[socket.socket] = set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self._target))
            self._open += [here, there]
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source, sink):
        try:
            while data := source.recv(65_536):
                if source not in self._dead:
                    sink.sendall(data)
        except OSError:
            pass
        if source not in self._dead:
            sink.close()

    def cut(self):
        """Whatever is open now is silent from here on, and nobody is told."""
        self._dead.update(self._open)

    def close(self):
        self._listener.close()
        for each in self._open:
            each.close()


@contextmanager
def wire(port):
    made = Wire(port)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.full("slow")
def test_a_consumer_on_a_half_open_connection_finds_out_and_takes_a_new_one(private, consume):
    with wire(private.port) as made:
        consumer = consume(made.url)
        say(private.url, "before")
        consumer.wait_for("before")
        made.cut()
        # What the dead connection's last request takes with it is lost to it: its sender says it again.
        time.sleep(2.0)
        for number in range(3):
            say(private.url, f"after{number}")
        until(lambda: "after2" in consumer.got(), "a message by a new connection")


@pytest.fixture
def certificates(tmp_path) -> Path:
    """A CA, a certificate of it for 127.0.0.1, and another CA."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=tmp_path, check=True, capture_output=True)

    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=redis", "-keyout", "redis.key", "-out", "redis.csr")
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "redis.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "names", "-out", "redis.pem")  # fmt: skip
    return tmp_path


@pytest.fixture
def with_tls(certificates) -> Iterator[PrivateRedis]:
    made = PrivateRedis(certificates)
    made._options = (
        "--port", "0", "--tls-port", str(made.port), "--tls-cert-file", "redis.pem", "--tls-key-file", "redis.key",
        "--tls-ca-cert-file", "ca.pem", "--tls-auth-clients", "no",
    )  # fmt: skip
    options = list(made._options)
    for name in ("redis.pem", "redis.key", "ca.pem"):
        options[options.index(name)] = str(certificates / name)
    made._options = tuple(options)
    made.start()
    yield made
    made.kill()


def test_rediss_trusts_the_authority_that_the_url_names_and_no_other(with_tls, certificates, consume):
    url = f"rediss://127.0.0.1:{with_tls.port}/0?ssl_cert_reqs=required&ssl_ca_certs={certificates}"
    # kombu keeps connections by host: one process would use the same one, whatever authority a second URL names.
    for wrong in (f"{url}/other.pem", f"rediss://127.0.0.1:{with_tls.port}/0"):
        with pytest.raises(OperationalError, match="certificate"):
            say(wrong, "to a stranger")
    program = "import sys; from broker.app import *; send(make_app('p', sys.argv[1]), RECORD, RESULTS, 'sealed')"
    command = [sys.executable, "-c", program, f"{url}/ca.pem"]
    subprocess.run(command, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, check=True)
    consume(f"{url}/ca.pem").wait_for("sealed")
