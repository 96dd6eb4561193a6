from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
import time
from pathlib import Path
from queue import Empty

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import codec
from autograder.contract import AttemptFailure, Claim, Envelope, Kind, NodeReport
from autograder.errors import ContractError
from broker.app import RECORD, RESULTS, make_app, send, serve
from broker.envelope import seal, unseal
from broker.identity import Credentials, ForgedError, Identity, NodeKey, Sender, check_consent

KEY = NodeKey.generate()
PUBLIC = KEY.identity.public_key
CLAIM = Claim("01ARZ3NDEKTSV4RRFFQ69G5FAV", 1, 0.5)


@pytest.fixture
def url(tmp_path):
    return f"filesystem://{tmp_path / 'broker'}"


@pytest.fixture
def channel(url):
    with make_app("test", url).connection_for_read() as connection:
        yield connection.channel()


def messages(tmp_path):
    return sorted(path.name for path in (tmp_path / "broker" / "messages").iterdir())


# --- envelopes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Kind.node, NodeReport((), 1, draining=False, facts={"ü": "☃"}, at=1.5)),
        (Kind.claimed, CLAIM),
        (Kind.heartbeat, CLAIM),
        (Kind.failure, AttemptFailure("a", 2, 'quotes " and\nlines')),
    ],
)
def test_what_is_sealed_comes_out_again(kind, message):
    assert unseal(codec.loads(Envelope, seal(Sender("anvil", KEY), kind, message)), PUBLIC) == message


@given(st.sampled_from(["node", "kind", "body", "signature"]), st.text(min_size=1, max_size=8))
def test_nothing_in_an_envelope_can_be_changed(part, text):
    sealed = codec.loads(Envelope, seal(Sender("anvil", KEY), Kind.claimed, CLAIM))
    changed = Kind.heartbeat if part == "kind" else getattr(sealed, part) + text
    forged = dataclasses.replace(sealed, **{part: changed})
    with pytest.raises(ContractError, match="signature"):
        unseal(forged, PUBLIC)


def test_another_nodes_key_does_not_open_it():
    sealed = codec.loads(Envelope, seal(Sender("anvil", KEY), Kind.claimed, CLAIM))
    with pytest.raises(ContractError, match="signature"):
        unseal(sealed, NodeKey.generate().identity.public_key)


def test_parts_cannot_change_places():
    """The name, the kind and the body are told apart by what no name and no kind can hold."""
    one = codec.loads(Envelope, seal(Sender("anvil", KEY), Kind.claimed, CLAIM))
    moved = Envelope("anvil\nclaimed", Kind.claimed, one.stamp, one.body, one.signature)
    with pytest.raises(ContractError, match="signature"):
        unseal(moved, PUBLIC)


@pytest.mark.parametrize("change", [{"session": 1}, {"number": 2}, {"at": 1.5}])
def test_a_message_cannot_be_made_another_one_by_its_stamp(change):
    sealed = codec.loads(Envelope, seal(Sender("anvil", KEY), Kind.claimed, CLAIM))
    with pytest.raises(ForgedError):
        unseal(dataclasses.replace(sealed, stamp=dataclasses.replace(sealed.stamp, **change)), PUBLIC)


def test_no_two_messages_have_the_same_stamp():
    senders = [Sender("anvil", KEY) for _ in range(3)]
    stamps = [sender.envelope(Kind.claimed, "").stamp for sender in senders for _ in range(5)]
    assert len({(stamp.session, stamp.number) for stamp in stamps}) == 15
    assert [stamp.number for stamp in stamps[:5]] == [1, 2, 3, 4, 5]


# --- identity --------------------------------------------------------------------------------------------------------


def test_a_key_is_kept_and_its_password_follows_from_it(tmp_path):
    KEY.save(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o400
    again = NodeKey.load(tmp_path / "key")
    assert (again.identity, again.broker_password) == (KEY.identity, KEY.broker_password)
    assert NodeKey.generate().broker_password != KEY.broker_password
    with pytest.raises(FileExistsError):
        NodeKey.generate().save(tmp_path / "key")


def test_what_the_server_keeps_of_a_node_signs_nothing_and_lets_nobody_in():
    known = f"{KEY.identity.public_key} {KEY.identity.broker_hash}"
    assert KEY.broker_password not in known
    assert hashlib.sha256(KEY.broker_password.encode()).hexdigest() == KEY.identity.broker_hash


@pytest.mark.parametrize("wrong", [Identity("", "0" * 64), Identity("x" * 44, "0" * 64), Identity(PUBLIC, "0" * 63)])
def test_what_is_nobodys_identity_is_refused(wrong):
    with pytest.raises(ContractError):
        wrong.check()


def test_a_request_is_signed_as_a_whole():
    said = Sender("anvil", KEY).authorization("PUT", "/a?fence=1", b"data").removeprefix("Ladder-Node ")
    credentials = Credentials.parse(said)
    credentials.check(PUBLIC, "PUT", "/a?fence=1", b"data")
    for method, target, content in (("GET", "/a?fence=1", b"data"), ("PUT", "/a", b"data"), ("PUT", "/a?fence=1", b"")):
        with pytest.raises(ForgedError):
            credentials.check(PUBLIC, method, target, content)
    with pytest.raises(ForgedError):
        dataclasses.replace(credentials, node="anvil2").check(PUBLIC, "PUT", "/a?fence=1", b"data")


@given(st.text(max_size=300))
def test_credentials_that_are_none_are_refused_in_one_way(text):
    with pytest.raises(ContractError):
        Credentials.parse(text)


def test_a_message_is_no_request_and_no_consent():
    """The same key signs them; each says which it is."""
    envelope = Sender("anvil", KEY).envelope(Kind.claimed, "body")
    consent = KEY.consent("anvil", PUBLIC)
    for signature in (consent, envelope.signature):
        with pytest.raises(ForgedError):
            Credentials("anvil", envelope.stamp, signature).check(PUBLIC, "claimed", "body", b"")
    with pytest.raises(ForgedError):
        check_consent(PUBLIC, envelope.signature, "anvil", PUBLIC)
    check_consent(PUBLIC, consent, "anvil", PUBLIC)


def test_a_message_that_the_recorder_would_refuse_is_not_sent():
    with pytest.raises(ContractError, match="may have"):
        seal(Sender("anvil", KEY), Kind.failure, AttemptFailure("a", 1, "x" * 3_000_000))


# --- the folder ------------------------------------------------------------------------------------------------------


def test_a_message_goes_through_the_folder_and_leaves_nothing(url, tmp_path):
    app = make_app("test", url)
    send(app, RECORD, RESULTS, "text")
    assert [name.partition(".")[2] for name in messages(tmp_path)] == ["results.msg"]
    with app.connection_for_read() as connection:
        queue = connection.SimpleQueue("results")
        message = queue.get(timeout=1)
        message.ack()
        queue.close()
    assert message.payload[1] == {"envelope": "text"}
    assert messages(tmp_path) == []
    assert list((tmp_path / "broker" / "control").iterdir()) == []


def test_messages_are_read_in_the_order_they_were_written(channel):
    for number in range(50):
        channel._put("results", {"number": number})
    assert [channel._get("results")["number"] for _ in range(50)] == list(range(50))
    with pytest.raises(Empty):
        channel._get("results")


def test_queues_whose_names_begin_alike_do_not_mix(channel):
    channel._put("grade.anvil", {"number": 1})
    for other in ("grade", "anvil", "grade.anvil2", "grade.anv"):
        with pytest.raises(Empty):
            channel._get(other)
    assert channel._get("grade.anvil") == {"number": 1}


def test_a_message_is_invisible_until_it_is_whole(channel, tmp_path, monkeypatch):
    """A reader that meets a half-written message would lose it, and die."""
    seen = []

    def rename(path, target):
        seen.append((messages(tmp_path), path.read_bytes()))
        with pytest.raises(Empty):
            channel._get("results")
        os.rename(path, target)  # noqa: PTH104  (Path.rename is what is watched)

    monkeypatch.setattr(Path, "rename", rename)
    channel._put("results", {"number": 1})
    ((names, data),) = seen
    assert names[0].startswith(".")
    assert data == b'{"number": 1}'
    assert channel._get("results") == {"number": 1}


def test_many_readers_get_every_message_once(url):
    written, read = 200, []
    app = make_app("test", url)

    def reader():
        with app.connection_for_read() as connection:
            channel = connection.channel()
            give_up_at = time.monotonic() + 30
            while len(read) < written and time.monotonic() < give_up_at:
                try:
                    read.append(channel._get("results")["number"])
                except Empty:
                    time.sleep(0.001)

    readers = [threading.Thread(target=reader) for _ in range(4)]
    for thread in readers:
        thread.start()
    with app.connection_for_write() as connection:
        channel = connection.channel()
        for number in range(written):
            channel._put("results", {"number": number})
    for thread in readers:
        thread.join()
    assert sorted(read) == list(range(written))


def test_a_file_that_is_no_message_is_dropped_and_the_next_one_read(channel, tmp_path, caplog):
    (tmp_path / "broker" / "messages" / "00_x.results.msg").write_bytes(b"\xff{")
    channel._put("results", {"number": 1})
    assert channel._get("results") == {"number": 1}
    assert "it is not JSON" in caplog.text


def test_the_folder_is_its_owners_alone(url, tmp_path):
    make_app("test", url)
    assert {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "broker").iterdir()} == {"0o700"}


# --- the application -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broker", ["folder", "redis://localhost:6379/15"])
def test_only_json_is_accepted_and_nothing_is_retried_by_the_broker(url, broker):
    settings = make_app("test", url if broker == "folder" else broker).conf
    assert settings.accept_content == ["json"]
    assert settings.task_serializer == settings.result_serializer == "json"
    assert settings.result_backend is None
    assert settings.task_publish_retry is False
    assert settings.worker_prefetch_multiplier == 1


def test_the_consumed_queue_is_known_before_the_first_message_is_sent(url):
    app = make_app("test", url, queue="grade.anvil")
    send(app, RECORD, RESULTS, "a report sent before consuming begins")
    assert list(app.amqp.queues.consume_from) == ["grade.anvil"]


def test_two_applications_of_one_process_do_not_share_their_tasks(url):
    one, other = make_app("one", url), make_app("other", url)

    def keep(envelope):
        return envelope

    def negate(envelope):
        return -envelope

    serve(one, "record", keep, acks_late=True)
    serve(other, "record", negate, acks_late=False)
    assert (one.tasks["record"].run(1), other.tasks["record"].run(1)) == (1, -1)
    assert (one.tasks["record"].acks_late, other.tasks["record"].acks_late) == (True, False)
