"""A consumer on Redis whose acknowledgement fails goes on consuming."""

from __future__ import annotations

import secrets

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
