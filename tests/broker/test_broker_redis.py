"""A consumer on Redis whose acknowledgement fails goes on consuming."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress

import pytest
import redis
from kombu.transport import redis as kombu_redis

from broker import redis as own
from broker.app import RESULTS, make_app

URL = "redis://localhost:6379/9"
pytestmark = pytest.mark.redis


@pytest.fixture
def channel():
    try:
        redis.Redis(host="localhost").ping()
    except redis.ConnectionError as error:
        pytest.skip(f"Redis does not answer on localhost: {error}")
    with make_app("test", URL, queue=RESULTS).connection_for_read() as connection:
        made = connection.channel()
        made.basic_qos(prefetch_count=1)
        yield made


@pytest.fixture
def taken(channel):
    """The tag of a message that the channel took and works on."""
    queue = f"test-{secrets.token_hex(4)}"
    channel.queue_declare(queue)
    channel.basic_publish(channel.prepare_message("{}"), "", queue)
    message = channel.basic_get(queue)
    yield message.delivery_tag
    channel.queue_delete(queue)


def away(*_arguments, **_more):
    raise redis.ConnectionError("Connection closed by server.")


@pytest.mark.parametrize("settle", [lambda qos, tag: qos.ack(tag), lambda qos, tag: qos.reject(tag, requeue=True)])
def test_the_next_message_is_taken_after_redis_was_away_at_an_acknowledgement(channel, taken, monkeypatch, settle):
    assert not channel.qos.can_consume()
    monkeypatch.setattr(own.QoS, "_remove_from_indices", away)
    monkeypatch.setattr(own.QoS, "restore_by_tag", away)
    with pytest.raises(redis.ConnectionError):
        settle(channel.qos, taken)
    assert channel.qos.can_consume()


def test_as_kombu_ships_it_the_consumer_is_deaf_from_then_on(channel, taken, monkeypatch):
    """Why the override is there: if this fails, kombu has mended it and broker/redis.py can go."""
    monkeypatch.setattr(own.QoS, "_remove_from_indices", away)
    with pytest.raises(redis.ConnectionError):
        kombu_redis.QoS.ack(channel.qos, taken)
    assert not channel.qos.can_consume()


def test_redis_keeps_what_could_not_be_acknowledged(channel, taken, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(own.QoS, "_remove_from_indices", away)
        with pytest.raises(redis.ConnectionError):
            channel.qos.ack(taken)
    assert channel.client.hexists(channel.unacked_key, taken)
    channel.client.hdel(channel.unacked_key, taken)
    channel.client.zrem(channel.unacked_index_key, taken)


# --- what is no message, and keys of the wrong type ------------------------------------------------------------------


@pytest.fixture
def consumer(channel):
    """Consumes a queue of its own in this thread; what it got."""
    queue, got = f"test-{secrets.token_hex(4)}", []
    channel.queue_declare(queue)

    def receive(message):
        got.append(message.body)
        channel.basic_ack(message.delivery_tag)

    channel.basic_consume(queue, no_ack=False, callback=receive, consumer_tag="test")

    def until(many):
        give_up_at = time.monotonic() + 30
        while len(got) < many and time.monotonic() < give_up_at:
            with suppress(TimeoutError):
                channel.connection.drain_events(channel.connection.client, timeout=1)
        return got

    yield queue, until
    with redis.Redis.from_url(URL) as other:
        other.delete(queue)


def test_it_needs_no_script_and_notes_no_binding(channel, consumer):
    queue, until = consumer
    channel.client.script_flush()
    before = set(channel.client.keys("_kombu.binding*"))
    channel.basic_publish(channel.prepare_message("one"), "", queue)
    assert until(1) == [b"one"]
    channel.qos.restore_visible(interval=1)
    assert set(channel.client.keys("_kombu.binding*")) == before
    assert channel.client.info("memory")["number_of_cached_scripts"] == 0


@pytest.mark.parametrize(
    "item", [b"", b"x", b"\xff", b"null", b"[]", b'{"body": "x"}', b'{"properties": {}}', b"[" * 50_000]
)
def test_what_is_no_message_ends_no_consumer(channel, consumer, item, caplog):
    queue, until = consumer
    channel.client.lpush(queue, item)
    channel.basic_publish(channel.prepare_message("after"), "", queue)
    assert until(1) == [b"after"]
    assert "they are no message" in caplog.text


@pytest.mark.parametrize("which", ["queue", "unacked_key", "unacked_index_key"])
def test_a_key_of_the_wrong_type_is_set_aside_and_the_consumer_goes_on(channel, consumer, which):
    queue, until = consumer
    key = queue if which == "queue" else getattr(channel, which)
    # Not on the consumer's own connection, which waits for a message.
    other = redis.Redis.from_url(URL)
    other.delete(key)
    other.xadd(key, {"a": "b"})
    if which != "queue":
        own.mend(other, channel.types())
    else:
        give_up_at = time.monotonic() + 30
        while other.type(key) == b"stream" and time.monotonic() < give_up_at:
            with suppress(TimeoutError):
                channel.connection.drain_events(channel.connection.client, timeout=1)
    channel.basic_publish(channel.prepare_message("after"), "", queue)
    assert until(1) == [b"after"]
    aside = [name for name in other.keys("aside.*") if key.encode() in name]
    assert len(aside) == 1
    other.delete(*aside)
    other.close()


def test_what_is_overdue_is_put_back_under_a_lock_that_is_let_go(channel, taken, monkeypatch):
    monkeypatch.setattr(type(channel.qos), "visibility_timeout", -1)
    channel.client.set(channel.unacked_mutex_key, "another's", ex=30)
    channel.qos.restore_visible(interval=1)
    assert channel.client.hexists(channel.unacked_key, taken)
    channel.client.delete(channel.unacked_mutex_key)
    channel.qos.restore_visible(interval=1)
    assert not channel.client.hexists(channel.unacked_key, taken)
    assert not channel.client.exists(channel.unacked_mutex_key)


def test_a_lock_that_another_one_has_by_now_stays(channel):
    qos = channel.qos
    with qos._lock(channel.client) as held:
        assert held
        channel.client.set(channel.unacked_mutex_key, "another's", ex=30)
    assert channel.client.get(channel.unacked_mutex_key) == b"another's"
    channel.client.delete(channel.unacked_mutex_key)


def test_what_was_never_a_message_is_not_put_back_again_and_again(channel, monkeypatch):
    monkeypatch.setattr(type(channel.qos), "visibility_timeout", -1)
    for tag, text in (("bad", "no json"), ("worse", "[1]")):
        channel.client.hset(channel.unacked_key, tag, text)
        channel.client.zadd(channel.unacked_index_key, {tag: 1})
    channel.qos.restore_visible(interval=1)
    assert not channel.client.hexists(channel.unacked_key, "bad")
    assert not channel.client.hexists(channel.unacked_key, "worse")
    assert channel.client.zscore(channel.unacked_index_key, "worse") is None
