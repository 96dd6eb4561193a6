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

from broker.access import broker_user, complete_url, rules
from broker.app import GRADE, RESULTS, TICKS, grade_queue, make_app, said_queue, send, unacked_keys
from broker.identity import NodeKey
from server.nodes import access

pytestmark = pytest.mark.redis

KEYS = {name: NodeKey.generate() for name in ("gpu-1", "gpu-10")}
PATIENCE_S = 30

CONSUMER = """
import sys
from broker.app import GRADE, RECORD, consume, grade_queue, make_app, queue_of_sayings, send, serve

node, url = sys.argv[1:]
app = make_app("worker", url, queue=grade_queue(node))

def grade(task):
    send(app, RECORD, queue_of_sayings(app, node), f"{node} did {task}")

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
        admin.execute_command("ACL", "SETUSER", *rules(name, key.identity.broker_hash))
    admin.execute_command("ACL", "LOG", "RESET")
    return {name: _url(port, name, key) for name, key in KEYS.items()}


def _url(port: int, name: str, key: NodeKey) -> str:
    return complete_url(f"redis://{broker_user(name)}@127.0.0.1:{port}/0", key.broker_password)


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
            while admin.llen(said_queue("gpu-1")) < 3 and time.monotonic() < deadline and worker.poll() is None:
                time.sleep(0.05)
        finally:
            worker.send_signal(signal.SIGTERM)
            said = worker.communicate(timeout=PATIENCE_S)[1]
    # Whatever kombu and Celery did on the way from start to stop, nothing of it was refused.
    assert _denials(port) == []
    assert admin.llen(said_queue("gpu-1")) == 3, said
    assert worker.returncode == 0, said
    assert admin.exists(*unacked_keys(grade_queue("gpu-1"))[:2]) == 0


def test_who_came_in_with_a_key_that_was_replaced_is_put_out(port, nodes):
    old = redis.Redis.from_url(nodes["gpu-1"])
    assert old.llen(grade_queue("gpu-1")) == 0
    other = redis.Redis.from_url(nodes["gpu-10"])
    assert other.llen(grade_queue("gpu-10")) == 0
    another = NodeKey.generate()
    assert access.grant(f"redis://:server@127.0.0.1:{port}/0", [("gpu-1", another.identity.broker_hash)])
    with pytest.raises(redis.RedisError):
        old.llen(grade_queue("gpu-1"))
    assert other.llen(grade_queue("gpu-10")) == 0
    new = redis.Redis.from_url(
        complete_url(f"redis://{broker_user('gpu-1')}@127.0.0.1:{port}/0", another.broker_password)
    )
    assert new.llen(grade_queue("gpu-1")) == 0
    # A node that is revoked has no user at all.
    assert access.grant(f"redis://:server@127.0.0.1:{port}/0", [("gpu-1", None)])
    with pytest.raises(redis.RedisError):
        new.llen(grade_queue("gpu-1"))
    assert broker_user("gpu-1") not in _admin(port).acl_users()


OTHERS = (RESULTS, TICKS, *unacked_keys(RESULTS), grade_queue("gpu-10"), *unacked_keys(grade_queue("gpu-10")),
          said_queue("gpu-10"), "_kombu.binding.celery", "anything")  # fmt: skip
OWN = {
    grade_queue("gpu-1"): "list",
    unacked_keys(grade_queue("gpu-1"))[0]: "hash",
    unacked_keys(grade_queue("gpu-1"))[1]: "zset",
    unacked_keys(grade_queue("gpu-1"))[2]: "string",
    said_queue("gpu-1"): "list",
}
MAKES = {
    "list": (("LPUSH", "KEY", "x"), ("RPUSH", "KEY", "x")),
    "hash": (("HSET", "KEY", "x", "y"),),
    "zset": (("ZADD", "KEY", "1", "x"),),
    "string": (("SET", "KEY", "x"),),
    "set": (("SADD", "KEY", "x"),),
    "stream": (("XADD", "KEY", "*", "x", "y"),),
}
"""What makes a key of each type where there is none."""
ELSEWISE = (
    ("DEL", "KEY"), ("UNLINK", "KEY"), ("RENAME", "KEY", "other"), ("COPY", "KEY", "other"), ("EXPIRE", "KEY", "1"),
    ("LRANGE", "KEY", "0", "-1"), ("RPOP", "KEY"), ("BRPOP", "KEY", "1"), ("LLEN", "KEY"), ("LTRIM", "KEY", "1", "0"),
    ("LMOVE", "KEY", "other", "LEFT", "LEFT"), ("LSET", "KEY", "0", "x"), ("LREM", "KEY", "0", "x"), ("GET", "KEY"),
    ("HGETALL", "KEY"), ("ZRANGE", "KEY", "0", "-1"), ("DUMP", "KEY"), ("TYPE", "KEY"), ("WATCH", "KEY"),
    ("SORT", "KEY"), ("BITFIELD", "KEY", "SET", "u8", "0", "1"),
)  # fmt: skip
EVERYWHERE = (
    ("EVAL", "return 1", "0"), ("EVALSHA", "0" * 40, "0"), ("SCRIPT", "LOAD", "return 1"), ("FUNCTION", "LIST"),
    ("FCALL", "f", "0"), ("KEYS", "*"), ("SCAN", "0"), ("FLUSHALL",), ("FLUSHDB",), ("SWAPDB", "0", "1"), ("INFO",),
    ("ACL", "LIST"), ("ACL", "WHOAMI"), ("ACL", "SETUSER", broker_user("gpu-1"), "allkeys"), ("RANDOMKEY",),
    ("CONFIG", "GET", "requirepass"), ("MONITOR",), ("SHUTDOWN", "NOSAVE"), ("CLIENT", "LIST"), ("DBSIZE",),
    ("CLIENT", "KILL", "TYPE", "normal"), ("CLIENT", "PAUSE", "1"), ("SELECT", "1"), ("PUBLISH", "c", "x"),
    ("SUBSCRIBE", "c"), ("MODULE", "LIST"), ("REPLICAOF", "127.0.0.1", "1"), ("SLOWLOG", "GET"),
)  # fmt: skip


def _refused(node: redis.Redis, attempt: tuple[str, ...]) -> bool:
    try:
        node.execute_command(*attempt)
    except redis.ResponseError as error:
        return "permissions" in str(error)
    return False


def _on(key: str, commands: tuple[tuple[str, ...], ...]) -> Iterator[tuple[str, ...]]:
    for command in commands:
        yield tuple(key if word == "KEY" else word for word in command)


def test_a_node_does_nothing_to_what_is_not_its_own(port, nodes):
    node = redis.Redis.from_url(nodes["gpu-1"])
    made = tuple(command for commands in MAKES.values() for command in commands)
    for key in OTHERS:
        for attempt in _on(key, (*made, *ELSEWISE)):
            assert _refused(node, attempt), attempt
    for attempt in EVERYWHERE:
        assert _refused(node, attempt), attempt
    assert _admin(port).keys() == []


def test_a_node_makes_nothing_of_its_own_keys_that_their_readers_do_not_expect(port, nodes):
    """`SET` of the queue that the dispatcher writes to would end its sending to everybody."""
    node, admin = redis.Redis.from_url(nodes["gpu-1"]), _admin(port)
    for key, wanted in OWN.items():
        for kind, commands in MAKES.items():
            for attempt in _on(key, commands):
                assert _refused(node, attempt) or kind == wanted, attempt
        assert admin.type(key) in {"none", wanted}
        admin.delete(key)


def test_a_node_can_only_append_to_what_it_says(port, nodes):
    node, admin = redis.Redis.from_url(nodes["gpu-1"]), _admin(port)
    assert node.lpush(said_queue("gpu-1"), "one", "two") == 2
    for attempt in _on(
        said_queue("gpu-1"), (("RPUSH", "KEY", "x"), ("LINSERT", "KEY", "BEFORE", "one", "x"), *ELSEWISE)
    ):
        assert _refused(node, attempt), attempt
    with pytest.raises(redis.ResponseError, match="permissions"):
        node.pipeline().lpush(said_queue("gpu-10"), "x").execute()
    assert admin.lrange(said_queue("gpu-1"), 0, -1) == ["two", "one"]


def test_a_node_that_may_not_say_anything_for_now_goes_on_taking(port, nodes):
    node, admin = redis.Redis.from_url(nodes["gpu-1"]), _admin(port)
    url, broker_hash = f"redis://:server@127.0.0.1:{port}/0", KEYS["gpu-1"].identity.broker_hash
    assert not access.is_silenced(admin, "gpu-1")
    access.let_say(admin, url, "gpu-1", broker_hash, may_say=False)
    assert access.is_silenced(admin, "gpu-1")
    # On the connection that it has.
    assert _refused(node, ("LPUSH", said_queue("gpu-1"), "x"))
    assert node.llen(grade_queue("gpu-1")) == 0
    access.let_say(admin, url, "gpu-1", broker_hash, may_say=True)
    assert node.lpush(said_queue("gpu-1"), "x") == 1


def test_a_node_works_in_the_database_of_its_installation_only(port, nodes):
    admin = _admin(port)
    admin.execute_command("ACL", "SETUSER", *rules("gpu-1", KEYS["gpu-1"].identity.broker_hash, database=3))
    node = redis.Redis.from_url(nodes["gpu-1"].replace("/0", "/3"))
    assert node.lpush(said_queue("gpu-1"), "x") == 1
    assert _refused(node, ("SELECT", "4"))
    assert access.database_of("redis://:x@h:1/3?a=b") == 3
    assert access.database_of("redis://h") == 0


def test_users_outlive_a_restart_of_redis(tmp_path):
    """The file of users is text, read again at the start."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    (tmp_path / "users.acl").write_text("user default on nopass ~* &* +@all\n")
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--aclfile", str(tmp_path / "users.acl")]
    url = f"redis://127.0.0.1:{port}/0"
    for again in range(2):
        with subprocess.Popen([*command, "--save", ""], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
            try:
                _wait_for(redis.Redis(port=port))
                if not again:
                    assert access.grant(url, [("gpu-1", KEYS["gpu-1"].identity.broker_hash)])
                node = redis.Redis.from_url(_url(port, "gpu-1", KEYS["gpu-1"]))
                assert node.lpush(said_queue("gpu-1"), "x") == 1
                assert _refused(node, ("LPUSH", RESULTS, "x"))
            finally:
                process.terminate()


@pytest.mark.full("slow")
def test_without_its_own_password_nobody_is_that_node(port, nodes):
    for password in ("", KEYS["gpu-10"].broker_password, KEYS["gpu-1"].identity.broker_hash):
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port, username=broker_user("gpu-1"), password=password or None).ping()
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port).ping()


def test_what_the_broker_keeps_gives_away_no_password(port, nodes):
    text = "\n".join(_admin(port).acl_list())
    for name, key in KEYS.items():
        assert broker_user(name) in text
        assert key.broker_password not in text


def test_a_url_is_completed_only_where_it_names_a_user_without_a_password():
    password = KEYS["gpu-1"].broker_password
    whole = complete_url("rediss://node-gpu-1@broker.example:6380/0?ssl_cert_reqs=required", password)
    assert whole.startswith(f"rediss://node-gpu-1:{password}@broker.example:6380/0?")
    with Connection(whole) as connection:
        assert connection.userid == "node-gpu-1"
    for url in ("redis://127.0.0.1:6379/0", "redis://:secret@redis:6379/0", "filesystem:///srv/broker"):
        assert complete_url(url, password) == url
