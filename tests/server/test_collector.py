"""What nodes say reaches the recorder whatever one of them does to the broker, on a real Redis under its rules."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress

import pytest
import redis
from kombu.exceptions import OperationalError

from broker.access import broker_user, complete_url
from broker.app import GRADE, RECORD, RESULTS, TICK, TICKS, grade_queue, make_app, queue_of_ticks, said_queue, send
from broker.redis import message_in
from server import alerts
from server.dispatcher import Dispatcher
from server.models import AlertKind
from server.nodes import access, collector
from server.nodes.collector import Collector
from tests.doubles.world import World

pytestmark = pytest.mark.redis
PATIENCE_S = 60
MEMORY_MB = 200


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    limits = ["--maxmemory", f"{MEMORY_MB}mb", "--maxmemory-policy", "noeviction"]
    limits += ["--proto-max-bulk-len", "16mb", "--client-query-buffer-limit", "32mb"]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", *limits]
    with subprocess.Popen(command, cwd=tmp_path_factory.mktemp("redis"), stdout=subprocess.DEVNULL) as process:
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            with suppress(redis.ConnectionError):
                redis.Redis(port=port).ping()
                break
            assert time.monotonic() < give_up_at
        yield f"redis://127.0.0.1:{port}/0"
        process.terminate()


@pytest.fixture
def admin(url):
    with redis.Redis.from_url(url) as client:
        client.flushall()
        yield client


@pytest.fixture
def world(admin, url, sqlite_url, tmp_path):
    made = World.make(sqlite_url, tmp_path, broker_url=url)
    made.add_node("forge")
    with made.database.reading() as session:
        access.sync(session, url)
    yield made
    made.database.dispose()


@pytest.fixture
def app_of(world, url):
    """How a node, or the server, speaks to the broker."""

    def make(node=None):
        if node is None:
            return make_app("server", url)
        own = f"redis://{broker_user(node)}@{url.partition('//')[2]}"
        return make_app("worker", complete_url(own, world.keys[node].broker_password), queue=grade_queue(node))

    return make


@pytest.fixture
def collect(world, admin):
    """One round, with everything that is due."""
    made = Collector(world.database, world.config)

    def step():
        made._due = dict.fromkeys(made._due, 0.0)
        return made.step(admin)

    return step


def say(app, node, text):
    send(app, RECORD, said_queue(node), text)


def recorded(admin):
    """What the recorder will get, in its order."""
    raws = [message_in(item) for item in reversed(admin.lrange(RESULTS, 0, -1))]
    return [make_app("x", "memory://").connection().channel().decode_body(raw["body"], "base64") for raw in raws]


def told(world):
    with world.database.reading() as session:
        return {(alert.kind, alert.subject): alert.message for alert in alerts.open_alerts(session)}


def test_what_nodes_say_is_taken_on_in_order_and_a_tick_comes_last(app_of, admin, collect):
    anvil, server = app_of("anvil"), app_of()
    assert queue_of_ticks(server) == TICKS
    send(server, TICK, TICKS, "0" * 32)
    for number in range(5):
        say(anvil, "anvil", f"number {number}")
    say(app_of("forge"), "forge", "hello")
    assert collect() == 6
    found = recorded(admin)
    assert [text for text in found if b"number" in text] == [
        t for t in found if any(b"number %d" % n in t for n in range(5))
    ]
    assert b"0" * 32 in found[-1]
    assert len(found) == 7
    assert collect() == 0


def test_a_recorder_that_is_behind_is_given_no_more_and_no_tick(app_of, admin, collect, monkeypatch):
    monkeypatch.setattr(collector, "MOST_RECORDING", 3)
    for number in range(5):
        say(app_of("anvil"), "anvil", f"number {number}")
    send(app_of(), TICK, TICKS, "0" * 32)
    assert collect() == 3
    assert (admin.llen(RESULTS), admin.llen(said_queue("anvil")), admin.llen(TICKS)) == (3, 2, 1)
    admin.delete(RESULTS)
    assert collect() == 2
    assert (admin.llen(said_queue("anvil")), admin.llen(TICKS)) == (0, 0)


def test_one_that_says_too_much_waits_loses_nothing_and_keeps_nobody_waiting(
    app_of, admin, collect, world, monkeypatch
):
    monkeypatch.setattr(collector, "MOST_WAITING", 50)
    monkeypatch.setattr(collector, "SHARE", 10)
    anvil, forge = app_of("anvil"), app_of("forge")
    for number in range(60):
        say(anvil, "anvil", f"number {number}")
    say(forge, "forge", "hello")
    send(app_of(), TICK, TICKS, "0" * 32)
    assert collect() == 11
    assert any(b"hello" in text for text in recorded(admin))
    # Its own backlog is its own doing: leases go on without it.
    assert admin.llen(TICKS) == 0
    assert (AlertKind.broker_misused, "node:anvil") in told(world)
    with pytest.raises(redis.ResponseError, match="permissions"):
        redis.Redis.from_url(str(anvil.conf.broker_url)).lpush(said_queue("anvil"), "x")
    say(forge, "forge", "hello again")
    while admin.llen(said_queue("anvil")):
        collect()
    collect()
    say(anvil, "anvil", "at last")
    collect()
    assert len([text for text in recorded(admin) if b"number" in text]) == 60
    assert b"at last" in recorded(admin)[-1]


def test_one_that_was_kept_from_saying_is_let_again_by_the_next_collector(app_of, admin, world, url, collect):
    access.let_say(admin, url, "anvil", world.keys["anvil"].identity.broker_hash, may_say=False)
    collect()
    say(app_of("anvil"), "anvil", "hello")
    assert collect() == 1


@pytest.mark.parametrize("size", [100, 2**20])
def test_after_a_flood_as_fast_as_it_can_be_others_are_heard(app_of, admin, world, size):
    """It is some gigabytes of it in a few seconds, where Redis may have 200 MB."""
    node = redis.Redis.from_url(str(app_of("anvil").conf.broker_url))
    many, refused = [b"x" * size] * max(1, 2**20 // size), threading.Event()

    def flood():
        give_up_at = time.monotonic() + 5
        while time.monotonic() < give_up_at:
            try:
                node.lpush(said_queue("anvil"), *many)
            except redis.exceptions.NoPermissionError:
                refused.set()
                time.sleep(0.01)
            except redis.OutOfMemoryError:
                time.sleep(0.01)

    running = Collector(world.database, world.config)
    running.start()
    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        flooding.join()
        forge = app_of("forge")
        give_up_at = time.monotonic() + PATIENCE_S
        while not any(b"hello" in text for text in recorded(admin)):
            assert time.monotonic() < give_up_at
            with suppress(redis.OutOfMemoryError, OperationalError):
                say(forge, "forge", "hello")
            time.sleep(0.2)
    finally:
        running.stop()
    assert refused.is_set()
    assert (AlertKind.broker_misused, "node:anvil") in told(world)


@pytest.mark.parametrize("text", [b"x" * 2**16, None])
def test_a_broker_that_a_node_filled_while_nobody_collected_loses_what_it_said_last(
    app_of, admin, world, collect, text
):
    say(app_of("anvil"), "anvil", "first")
    (message,) = admin.lrange(said_queue("anvil"), 0, -1)
    node = redis.Redis.from_url(str(app_of("anvil").conf.broker_url))
    with suppress(redis.OutOfMemoryError):
        while True:
            node.lpush(said_queue("anvil"), *[text or message] * 500)
    waited = admin.llen(said_queue("anvil"))
    admin.config_set("maxmemory", int(0.9 * admin.info("memory")["used_memory"]))
    try:
        collect()
        assert admin.llen(said_queue("anvil")) < waited / 2
        collect()
    finally:
        admin.config_set("maxmemory", f"{MEMORY_MB}mb")
    assert (AlertKind.broker_misused, "node:anvil") in told(world)
    assert any(b"first" in one for one in recorded(admin))


@pytest.mark.parametrize(
    "item", [b"", b"x", b"\xff\x00", b"null", b"[]", b"{}", b'{"body": 1}', b"[" * 50_000, b"x" * 100_000]
)
def test_what_is_no_message_is_set_aside_with_the_name_of_who_put_it_there(app_of, admin, world, collect, item):
    redis.Redis.from_url(str(app_of("anvil").conf.broker_url)).lpush(said_queue("anvil"), item)
    say(app_of("anvil"), "anvil", "hello")
    assert collect() == 2
    assert len(recorded(admin)) == 1
    kept = admin.lrange(f"aside.{said_queue('anvil')}", 0, -1)
    assert kept == ([item] if len(item) <= collector.LARGEST_ASIDE else [])
    assert "not a message" in told(world)[AlertKind.broker_misused, "node:anvil"]


@pytest.mark.parametrize("key", [RESULTS, "results.unacked", "results.unacked_index", TICKS, said_queue("anvil")])
def test_a_key_of_the_wrong_type_is_set_aside_and_told_of(app_of, admin, world, collect, key):
    """Nodes cannot do this any more; whoever has the server's password, or a mistake, can."""
    admin.xadd(key, {"a": "b"})
    say_it = lambda: say(app_of("anvil"), "anvil", "hello")  # noqa: E731
    if key == said_queue("anvil"):
        with pytest.raises(Exception, match=r"WRONGTYPE|wrong kind"):
            say_it()
        collect()
    say_it()
    collect()
    assert len(recorded(admin)) == 1
    assert [name for name in admin.keys("aside.*") if key.encode() in name]
    assert (AlertKind.broker_misused, "broker") in told(world)


def test_a_node_cannot_keep_the_dispatcher_from_sending_to_others(app_of, admin, world):
    node = redis.Redis.from_url(str(app_of("anvil").conf.broker_url))
    for attempt in (("SET", grade_queue("anvil"), "x"), ("SADD", grade_queue("anvil"), "x")):
        with pytest.raises(redis.ResponseError, match="permissions"):
            node.execute_command(*attempt)
    for person in ("Alice", "Bob"):
        world.submit(person)
    dispatcher = Dispatcher(world.database, app_of(), world.config)
    world.hear(None)
    with world.database.transaction() as session:
        world.now = collector.now(session)
    world.hear(world.now)
    assert dispatcher._guarded("queue", dispatcher._fill_all) == 2
    assert admin.llen(grade_queue("anvil")) == admin.llen(grade_queue("forge")) == 1
    assert GRADE == "grade"
