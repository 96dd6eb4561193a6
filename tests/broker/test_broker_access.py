"""Nodes at a real Redis under its access rules: each works with its own queue and can read nobody else's."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kombu import Connection

from broker.access import broker_password, broker_user, complete_url, rules
from broker.app import GRADE, RECORD, RESULTS, grade_queue, make_app, send, unacked_keys
from broker.envelope import key_of
from server.nodes import access

pytestmark = pytest.mark.redis

KEYS = {name: key_of(f"token of {name}") for name in ("gpu-1", "gpu-10")}
PATIENCE_S = 30

CONSUMER = """
import sys
from broker.app import GRADE, RECORD, RESULTS, consume, grade_queue, make_app, send, serve

node, url = sys.argv[1:]
app = make_app("worker", url, queue=grade_queue(node))

def grade(task):
    send(app, RECORD, RESULTS, f"{node} did {task}")

serve(app, GRADE, grade, acks_late=False)
sys.exit(consume(app))
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A Redis of these tests' own, with a password."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    with subprocess.Popen(
        [program, "--port", str(port), "--bind", "127.0.0.1", "--requirepass", "server", "--save", ""],
        cwd=folder,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            _wait_for(_admin(port))
            yield port
        finally:
            process.terminate()


def _admin(port: int) -> redis.Redis:
    return redis.Redis(port=port, password="server", decode_responses=True)


def _wait_for(admin: redis.Redis) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            admin.ping()
        except redis.ConnectionError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def nodes(port: int) -> dict[str, str]:
    """Two nodes whose names begin alike, with their URLs."""
    admin = _admin(port)
    admin.flushall()
    for name, key in KEYS.items():
        admin.execute_command("ACL", "SETUSER", *rules(name, key))
    admin.execute_command("ACL", "LOG", "RESET")
    return {name: complete_url(f"redis://{broker_user(name)}@127.0.0.1:{port}/0", KEYS[name]) for name in KEYS}


def _denials(port: int) -> list[str]:
    said = [f"{entry['reason']} {entry['object']}" for entry in _admin(port).acl_log()]
    # From Redis 7.2 on redis-py says its name and version, and does not mind a refusal.
    return [line for line in said if line != "command client|setinfo"]


def test_a_node_takes_its_tasks_and_puts_its_results_where_the_recorder_finds_them(port, nodes):
    server = make_app("dispatcher", f"redis://:server@127.0.0.1:{port}/0")
    command = [sys.executable, "-c", CONSUMER, "gpu-1", nodes["gpu-1"]]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True) as worker:
        try:
            for number in range(3):
                send(server, GRADE, grade_queue("gpu-1"), f"task {number}")
            admin = _admin(port)
            deadline = time.monotonic() + PATIENCE_S
            while admin.llen(RESULTS) < 3 and time.monotonic() < deadline and worker.poll() is None:
                time.sleep(0.05)
        finally:
            worker.send_signal(signal.SIGTERM)
            said = worker.communicate(timeout=PATIENCE_S)[1]
    # Whatever kombu and Celery did on the way from start to stop, nothing of it was refused.
    assert _denials(port) == []
    assert admin.llen(RESULTS) == 3, said
    assert worker.returncode == 0, said
    assert admin.exists(*unacked_keys(grade_queue("gpu-1"))[:2]) == 0


def test_who_came_in_with_a_key_that_was_replaced_is_put_out(port, nodes):
    old = redis.Redis.from_url(nodes["gpu-1"])
    assert old.llen(grade_queue("gpu-1")) == 0
    other = redis.Redis.from_url(nodes["gpu-10"])
    assert other.llen(grade_queue("gpu-10")) == 0
    assert access.grant(f"redis://:server@127.0.0.1:{port}/0", [("gpu-1", key_of("another token"))])
    with pytest.raises(redis.RedisError):
        old.llen(grade_queue("gpu-1"))
    assert other.llen(grade_queue("gpu-10")) == 0
    new = redis.Redis.from_url(
        complete_url(f"redis://{broker_user('gpu-1')}@127.0.0.1:{port}/0", key_of("another token"))
    )
    assert new.llen(grade_queue("gpu-1")) == 0


def test_a_node_cannot_read_another_ones_queue_nor_results_nor_change_who_may(port, nodes):
    server = make_app("dispatcher", f"redis://:server@127.0.0.1:{port}/0")
    send(server, GRADE, grade_queue("gpu-10"), "of gpu-10")
    send(server, RECORD, RESULTS, "anybody's")
    node = redis.Redis.from_url(nodes["gpu-1"])
    admin = _admin(port)
    admin.hset(unacked_keys(grade_queue("gpu-10"))[0], "tag", "a source")
    # How many results wait it may know: Redis lets whoever may write to a list ask for its length.
    assert node.llen(RESULTS) == 1
    for attempt in (
        ("RPOP", grade_queue("gpu-10")),
        ("BRPOP", grade_queue("gpu-10"), "1"),
        ("LLEN", grade_queue("gpu-10")),
        ("LPUSH", grade_queue("gpu-10"), "a task of its own making"),
        ("HGET", unacked_keys(grade_queue("gpu-10"))[0], "tag"),
        ("RPOP", RESULTS),
        ("LRANGE", RESULTS, "0", "-1"),
        ("EVAL", "return 1", "0"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("FLUSHALL",),
        ("ACL", "LIST"),
        ("ACL", "SETUSER", broker_user("gpu-1"), "allkeys"),
        ("CONFIG", "GET", "requirepass"),
        ("MONITOR",),
        ("SHUTDOWN", "NOSAVE"),
        ("CLIENT", "LIST"),
    ):
        with pytest.raises(redis.ResponseError, match=r"permissions|script"):
            node.execute_command(*attempt)
    assert admin.llen(grade_queue("gpu-10")) == 1
    assert admin.llen(RESULTS) == 1


def test_a_node_that_declares_itself_everybodys_queue_gets_nothing_of_the_others(port, nodes):
    node = redis.Redis.from_url(nodes["gpu-1"])
    member = "\x06\x16".join([grade_queue("gpu-10"), "", grade_queue("gpu-1")])
    for name in ("_kombu.binding.celery", "_kombu.binding_permanent.celery"):
        node.sadd(name, member)
    server = make_app("dispatcher", f"redis://:server@127.0.0.1:{port}/0")
    send(server, GRADE, grade_queue("gpu-10"), "of gpu-10")
    admin = _admin(port)
    assert (admin.llen(grade_queue("gpu-10")), admin.llen(grade_queue("gpu-1"))) == (1, 0)


@pytest.mark.full("slow")
def test_without_its_own_password_nobody_is_that_node(port, nodes):
    for password in ("", broker_password(KEYS["gpu-10"]), KEYS["gpu-1"], "token of gpu-1"):
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port, username=broker_user("gpu-1"), password=password or None).ping()
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port).ping()


def test_what_the_broker_keeps_gives_away_no_signing_key(port, nodes):
    text = "\n".join(_admin(port).acl_list())
    for name, key in KEYS.items():
        assert broker_user(name) in text
        assert key not in text
        assert broker_password(key) not in text


def test_a_url_is_completed_only_where_it_names_a_user_without_a_password():
    key = KEYS["gpu-1"]
    whole = complete_url("rediss://node-gpu-1@broker.example:6380/0?ssl_cert_reqs=required", key)
    assert whole.startswith(f"rediss://node-gpu-1:{broker_password(key)}@broker.example:6380/0?")
    with Connection(whole) as connection:
        assert connection.userid == "node-gpu-1"
    for url in ("redis://127.0.0.1:6379/0", "redis://:secret@redis:6379/0", "filesystem:///srv/broker"):
        assert complete_url(url, key) == url
