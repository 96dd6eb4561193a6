"""Mail: through a real SMTP server, again after a failure, never twice for good. No request ever fails for it."""

from __future__ import annotations

import dataclasses
import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import select, update

from server import alerts
from server.config import load_config
from server.messages import messages, outbox
from server.messages.mail import UnsentError, written
from server.messages.outbox import Outgoing
from server.messages.sender import Sender
from server.models import AlertKind, Mail, MailState, NotificationKind, User
from tests.doubles import mail_server


@pytest.fixture
def to_server(config):
    """The configuration for a mail server on loopback."""

    def call(port, **changes):
        given = {"mail": "smtp", "mail_host": "127.0.0.1", "mail_port": port, "mail_tls": "none", "mail_timeout_s": 1.0}
        return dataclasses.replace(config, public_url="https://ladder.example", **{**given, **changes})

    return call


def tell(database, *users, key="event:1", title="Grades are out", url="/courses/gpu/grades"):
    with database.transaction() as session:
        ids = [user.id for user in users]
        messages.notify(session, ids, NotificationKind.grades_published, course_id=None, title=title, url=url, key=key)


def rows(database):
    with database.reading() as session:
        found = session.scalars(select(Mail).order_by(Mail.id)).all()
        session.expunge_all()
        return found


def make_due(database):
    with database.transaction() as session:
        session.execute(update(Mail).values(next_at=datetime.now(UTC) - timedelta(seconds=1)))


def open_alerts(database):
    with database.reading() as session:
        return [(alert.kind, alert.subject) for alert in alerts.open_alerts(session)]


def test_a_mail_arrives_as_plain_text_with_its_link_and_a_way_out(database, people, to_server):
    tell(database, people.alice, title="Grades of “Größe” are out")
    with mail_server.served() as server:
        assert Sender(database, to_server(server.port)).step() == 1
    [mail], [row] = server.mails, rows(database)
    assert (mail["To"], mail["Subject"]) == ("alice@example.org", "Grades of “Größe” are out")
    assert mail["From"] == "Kernel Ladder <ladder@localhost>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Message-ID"] == f"<{row.message_id}@ladder.example>"
    assert mail["List-Unsubscribe"] == "<https://ladder.example/notifications/settings>"
    assert mail.get_content_type() == "text/plain"
    text = mail.get_content().replace("\r\n", "\n")
    assert "Grades of “Größe” are out." in text
    assert "\nhttps://ladder.example/courses/gpu/grades\n" in text
    assert "To stop mail about published grades:" in text
    assert (row.state, row.body, row.url, row.error) == (MailState.sent, "", "", "")


def test_a_mail_is_sent_once(database, people, to_server):
    tell(database, people.alice)
    with mail_server.served() as server:
        sender = Sender(database, to_server(server.port))
        assert [sender.step(), sender.step()] == [1, 0]
    assert len(server.mails) == 1


def test_two_senders_share_the_work(database, people):
    tell(database, people.alice, people.bob)
    at = datetime.now(UTC)
    with database.transaction() as session:
        first = outbox.take(session, at)
    with database.transaction() as session:
        assert (len(first), outbox.take(session, at)) == (2, [])


def test_what_somebody_took_and_never_sent_is_sent_with_the_same_id(database, people, to_server):
    tell(database, people.alice)
    with database.transaction() as session:
        [lost] = outbox.take(session, datetime.now(UTC))
    make_due(database)
    with mail_server.served() as server:
        assert Sender(database, to_server(server.port)).step() == 1
    assert server.mails[0]["Message-ID"].startswith(f"<{lost.message_id}@")
    # The first one comes back: what became of it is not its business any more.
    with database.transaction() as session:
        outbox.failed(session, lost, "too late", for_good=True, now=datetime.now(UTC))
    assert rows(database)[0].state is MailState.sent


def test_without_a_server_it_waits_and_staff_know_until_there_is_one(database, people, to_server):
    tell(database, people.alice, people.bob)
    nowhere = Sender(database, to_server(1))
    assert nowhere.step() == 0
    assert {(row.state, row.attempts) for row in rows(database)} == {(MailState.waiting, 1)}
    assert all(row.next_at > datetime.now(UTC) + timedelta(seconds=50) for row in rows(database))
    assert open_alerts(database) == [(AlertKind.mail_failed, outbox.SERVER)]
    assert nowhere.step() == 0, "nothing is due"
    make_due(database)
    with mail_server.served() as server:
        assert Sender(database, to_server(server.port)).step() == 2
    assert open_alerts(database) == []


def test_a_server_that_hangs_is_left_after_the_timeout(database, people, to_server):
    tell(database, people.alice)
    with mail_server.served() as server:
        server.hangs = True
        assert Sender(database, to_server(server.port, mail_timeout_s=0.3)).step() == 0
    [row] = rows(database)
    assert row.state is MailState.waiting
    assert "timed out" in row.error or "closed" in row.error


def test_an_address_that_is_refused_for_good_is_given_up_and_costs_the_others_nothing(database, people, to_server):
    tell(database, people.alice, people.bob, people.tom)
    with mail_server.served() as server:
        server.answers = {"alice@example.org": "550 no such mailbox", "bob@example.org": "451 not now"}
        assert Sender(database, to_server(server.port)).step() == 1
    states = {row.to.partition("@")[0]: (row.state, row.error) for row in rows(database)}
    assert states == {
        "alice": (MailState.failed, "550 no such mailbox"),
        "bob": (MailState.waiting, "451 not now"),
        "tom": (MailState.sent, ""),
    }
    assert open_alerts(database) == [(AlertKind.mail_failed, outbox.GIVEN_UP)]
    assert rows(database)[0].body == ""


def test_after_the_last_attempt_it_is_given_up(database, people, to_server):
    tell(database, people.alice)
    with database.transaction() as session:
        session.execute(update(Mail).values(attempts=outbox.MAX_ATTEMPTS - 1))
    Sender(database, to_server(1)).step()
    assert rows(database)[0].state is MailState.failed
    assert (AlertKind.mail_failed, outbox.GIVEN_UP) in open_alerts(database)


def test_the_pauses_grow_and_an_evening_without_a_server_costs_nothing():
    pauses = [outbox.pause_after(attempt) for attempt in range(1, outbox.MAX_ATTEMPTS)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (timedelta(minutes=1), timedelta(hours=1))
    assert sum(pauses, timedelta()) > timedelta(hours=6)


@pytest.mark.parametrize("at_once", [False, True])
def test_tls_and_a_log_in(database, people, to_server, tmp_path, at_once):
    tell(database, people.alice)
    certificate = _certificate(tmp_path)
    given = {
        "mail_tls": "tls" if at_once else "starttls",
        "mail_ca": certificate,
        "mail_user": "ladder",
        "mail_password": "right",
    }
    with mail_server.served(certificate=certificate, at_once=at_once, password=True) as server:
        assert Sender(database, to_server(server.port, **given)).step() == 1
    assert server.logins == [(b"ladder", b"right")]
    assert len(server.mails) == 1


def test_a_certificate_of_nobody_we_know_gets_no_mail_and_no_password(database, people, to_server, tmp_path):
    tell(database, people.alice)
    with mail_server.served(certificate=_certificate(tmp_path), password=True) as server:
        given = {"mail_tls": "starttls", "mail_user": "ladder", "mail_password": "right"}
        assert Sender(database, to_server(server.port, **given)).step() == 0
    assert (server.logins, server.mails) == ([], [])


def test_authorities_that_are_not_there_keep_mail_waiting_and_nothing_else(database, people, to_server, tmp_path):
    """The dispatcher makes a sender: one that cannot be made would keep everything from being graded."""
    sender = Sender(database, to_server(1, mail_tls="tls", mail_ca=tmp_path / "gone.pem"))
    tell(database, people.alice)
    assert sender.step() == 0
    assert rows(database)[0].state is MailState.waiting
    assert open_alerts(database) == [(AlertKind.mail_failed, outbox.SERVER)]
    with database.reading() as session:
        assert "gone.pem" in alerts.open_alerts(session)[0].message


def test_a_server_without_starttls_gets_no_password_in_clear(database, people, to_server):
    tell(database, people.alice)
    with mail_server.served() as server:
        given = {"mail_tls": "starttls", "mail_user": "ladder", "mail_password": "right"}
        assert Sender(database, to_server(server.port, **given)).step() == 0
    assert (server.logins, server.mails) == ([], [])
    assert "STARTTLS" in rows(database)[0].error


@pytest.mark.parametrize(
    "address", ["eve@example.org,alice@example.org", "a@b\r\nBcc: eve@example.org", "x@y>", "<a@b", "", "@", "a@b c"]
)
def test_no_address_becomes_two_or_a_header(database, people, to_server, address):
    with database.transaction() as session:
        user = session.get_one(User, people.alice.id)
        user.email = address
        messages.send_mail(session, user, subject="Hello", body="…")
    with mail_server.served() as server:
        Sender(database, to_server(server.port)).step()
    assert server.raw == []
    assert rows(database)[0].state is MailState.failed


def test_a_mail_that_nobody_foresaw_keeps_no_other_back(database, people, to_server, monkeypatch):
    tell(database, people.alice, people.bob)
    real = written

    def break_for_alice(item, config):
        if item.to.startswith("alice"):
            raise RuntimeError("nobody thought of this")
        return real(item, config)

    monkeypatch.setattr("server.messages.mail.written", break_for_alice)
    with mail_server.served() as server:
        assert Sender(database, to_server(server.port)).step() == 1
    alice, bob = rows(database)
    assert (alice.state, alice.error) == (MailState.waiting, "RuntimeError: nobody thought of this")
    assert bob.state is MailState.sent


def test_no_subject_becomes_a_header(config):
    mail = Outgoing(1, 1, 1, "alice@example.org", "a\r\nBcc: eve@example.org", "…", "", None, "id")
    with pytest.raises((UnsentError, ValueError)):
        written(mail, config)


def test_without_a_server_in_the_configuration_mail_goes_into_a_file_that_is_its_owners_alone(
    database, people, config, caplog
):
    with database.transaction() as session:
        user = session.get_one(User, people.alice.id)
        messages.send_mail(session, user, subject="A new password", body="Here.", url="/password/SECRET")
    with caplog.at_level("INFO"):
        assert Sender(database, config).step() == 1
    log = config.home / "mail.log"
    assert f"{config.public_url}/password/SECRET" in log.read_text()
    assert log.stat().st_mode & 0o077 == 0
    assert "SECRET" not in caplog.text
    assert rows(database)[0].url == ""


def test_a_sender_that_runs_sends_what_comes(database, people, to_server):
    with mail_server.served() as server:
        sender = Sender(database, to_server(server.port))
        sender.start()
        tell(database, people.alice)
        deadline = datetime.now(UTC) + timedelta(seconds=20)
        while not server.mails and datetime.now(UTC) < deadline:
            pass
        sender.stop()
    assert len(server.mails) == 1


def test_what_was_sent_long_ago_is_forgotten(database, people):
    tell(database, people.alice)
    with database.transaction() as session:
        outbox.forget_old(session, now=datetime.now(UTC) + outbox.KEPT * 2)
    assert len(rows(database)) == 1, "it still waits"
    with database.transaction() as session:
        session.execute(update(Mail).values(state=MailState.sent))
        outbox.forget_old(session, now=datetime.now(UTC) + outbox.KEPT * 2)
        messages.forget_old(session, now=datetime.now(UTC) + messages.KEPT * 2)
        assert messages.told(session, people.alice.id) == []
    assert rows(database) == []


@pytest.mark.parametrize(("name", "value"), [("LADDER_MAIL", "pigeon"), ("LADDER_MAIL_TLS", "maybe")])
def test_a_word_that_is_none_is_refused_with_those_that_are(name, value):
    with pytest.raises(ValueError, match=f"{name} must be one of"):
        load_config({name: value})


def test_the_password_may_stand_in_a_file(tmp_path):
    (tmp_path / "password").write_text("right\n")
    config = load_config({"LADDER_MAIL_PASSWORD_FILE": str(tmp_path / "password")})
    assert config.mail_password == "right"
    assert "right" not in repr(config)


def _certificate(folder: Path) -> Path:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    at = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(issuer_name=name, subject_name=name, public_key=key.public_key())
        .serial_number(1)
        .not_valid_before(at - timedelta(days=1))
        .not_valid_after(at + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "mail.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path
