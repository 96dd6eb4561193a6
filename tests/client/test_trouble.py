"""What goes wrong around a command ends in a sentence and the right exit status, and shows no secret."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autograder.signing import SigningKey
from client.account import Account, credentials_path
from client.api import Api
from client.commands import account
from client.commands.grading import status_of_submission
from client.errors import NoAnswerError, OursError, ReachError, UsageError
from client.main import main

Ladder = Callable[..., Result]
LOGIN = ("--email", "alice@example.org", "--password-stdin")


@contextmanager
def _answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers, one per connection; its address, and what it heard."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    heard.append(connection.recv(2**16))
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
        thread.join(5)


def _answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _ends_in_a_sentence(done: Result, status: int) -> str:
    assert isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.parametrize("server", ["http://host:abc", "http://\x00"])
def test_an_address_that_is_none_is_said_to_be_none(ladder: Ladder, server: str) -> None:
    assert "is not an address" in _ends_in_a_sentence(ladder("login", server, *LOGIN, text="x\n"), 2)


def test_a_server_that_sends_elsewhere_is_not_our_fault(ladder: Ladder) -> None:
    moved = _answer("308 Permanent Redirect", b"", "location: https://ladder.example.edu/api/v1/tokens")
    with _answering(moved) as (server, _):
        said = _ends_in_a_sentence(ladder("login", server, *LOGIN, text="x\n"), 4)
    assert "ladder login https://ladder.example.edu" in said
    assert "our fault" not in said


@pytest.mark.parametrize("token", ["sécret-token", "secret\u2028token"])
def test_a_token_that_is_none_is_not_shown(ladder: Ladder, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("LADDER_SERVER", "http://127.0.0.1:1")
    monkeypatch.setenv("LADDER_TOKEN", token)
    said = _ends_in_a_sentence(ladder("list"), 2)
    assert "LADDER_TOKEN" in said
    assert token not in said


def test_a_line_break_after_a_token_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with _answering(_answer("200 OK", b"[]")) as (server, heard):
        monkeypatch.setenv("LADDER_SERVER", server)
        monkeypatch.setenv("LADDER_TOKEN", "secret\n")
        done = CliRunner().invoke(main, ["list", "--course", "a", "--json"])
    assert done.exit_code == 0, done.output
    assert b"Bearer secret\r\n" in heard[0]


@pytest.mark.parametrize("status", ["502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"])
def test_a_submission_that_a_proxy_answers_is_sent_again(monkeypatch: pytest.MonkeyPatch, status: str) -> None:
    monkeypatch.setattr("client.api.AGAIN_S", 0.0)
    with (
        _answering(_answer(status), _answer("201 Created", b"{}")) as (server, heard),
        Api(Account(server, "x")) as api,
    ):
        assert api.submit("c", "vector_add", {"source": "x"}) == {}
    keys = [re.findall(rb"(?i)idempotency-key: (\w+)", request) for request in heard]
    assert keys[0] == keys[1] != []


@pytest.mark.parametrize("answers", [(b"", "502 Bad Gateway"), ("504 Gateway Timeout", "502 Bad Gateway")])
def test_a_submission_that_a_proxy_answers_twice_is_said_to_be_in_doubt(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[bytes | str, ...]
) -> None:
    monkeypatch.setattr("client.api.AGAIN_S", 0.0)
    sent = [answer if isinstance(answer, bytes) else _answer(answer) for answer in answers]
    with (
        _answering(*sent) as (server, _),
        Api(Account(server, "x")) as api,
        pytest.raises((OursError, ReachError), match="check with `ladder status vector_add`"),
    ):
        api.submit("c", "vector_add", {"source": "x"})


def test_who_stops_a_submission_on_its_way_hears_that_it_may_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    with Api(Account("http://127.0.0.1:1", "x")) as api:
        monkeypatch.setattr(api._http, "request", stopped)
        with pytest.raises(NoAnswerError, match="check with `ladder status vector_add`"):
            api.submit("c", "vector_add", {"source": "x"})


def test_what_the_server_says_does_not_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"message": "no \x1b]0;owned\x07\x1b[2Jsuch course"}).encode()
    with _answering(_answer("404 Not Found", said)) as (server, _):
        monkeypatch.setenv("LADDER_SERVER", server)
        monkeypatch.setenv("LADDER_TOKEN", "x")
        done = CliRunner().invoke(main, ["list", "--course", "a"], color=True)
    assert done.exit_code == 2
    assert "\x1b" not in done.output


def test_a_submission_that_was_cancelled_is_nobodys_failure() -> None:
    assert status_of_submission({"state": "cancelled", "verdict": None}) == 1
    assert status_of_submission({"state": "failed", "verdict": None}) == 3


def test_where_nothing_can_be_written_a_command_says_so(alice: str, ladder: Ladder, tmp_path: Path) -> None:
    Path("in_the_way").write_text("")
    for command in (["get", "vector_add", "in_the_way/below"], ["get", "vector_add", f"{tmp_path}/{'x' * 300}"]):
        assert "cannot be written" in _ends_in_a_sentence(ladder(*command), 2)
    Path("full").mkdir()
    Path("full/vector_add.py").mkdir()
    assert "vector_add.py" in _ends_in_a_sentence(ladder("get", "vector_add", "full"), 2)


def test_a_login_that_cannot_be_kept_says_so(server: str, ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path("file").resolve()))
    done = ladder("login", server, *LOGIN, text="a long enough password\n")
    assert f"{credentials_path().parent} cannot be written" in _ends_in_a_sentence(done, 2)


def test_a_receipt_that_cannot_be_written_is_a_sentence(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"copy": "student", "signature": {"key": "a"}}
    monkeypatch.setattr(Api, "receipt", lambda *_: document)
    monkeypatch.setenv("LADDER_SERVER", "http://127.0.0.1:1")
    monkeypatch.setenv("LADDER_TOKEN", "x")
    done = ladder("receipt", "get", "X", "--output", "nowhere/x.json")
    assert "nowhere/x.json cannot be written" in _ends_in_a_sentence(done, 2)


def test_a_home_that_cannot_be_made_is_a_sentence(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("file").write_text("")
    monkeypatch.setenv("LADDER_HOME", str(Path("file/home").resolve()))
    assert "file/home cannot be written" in _ends_in_a_sentence(ladder("up"), 2)


def test_a_port_in_other_digits_is_none() -> None:
    from client.local.up import choose_port  # noqa: PLC0415  # the rest needs no server

    with pytest.raises(UsageError, match="LADDER_PORT has to be"):
        choose_port({"LADDER_PORT": "²"})


def _node(folder: Path, **settings: str) -> list[str]:
    folder.mkdir()
    (folder / "node.env").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return ["--folder", str(folder)]


def test_a_node_whose_settings_cannot_be_read_says_which(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _node(Path("node"), LADDER_NODE_NAME="a", LADDER_NODE_KEY_FILE="a.key", LADDER_LANES="abacus")
    SigningKey.generate().save(Path("a.key"))
    monkeypatch.setattr("client.commands.node._require_promises", lambda *_: None)
    for variable in ("LADDER_NODE_NAME", "LADDER_NODE_KEY_FILE", "LADDER_LANES"):
        monkeypatch.setenv(variable, "")
    assert "LADDER_LANES has to be" in _ends_in_a_sentence(ladder("node", "check", *folder), 2)


def test_a_sandbox_that_cannot_begin_says_why(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    from autograder.errors import SandboxError  # noqa: PLC0415

    def broken(_name: str) -> None:
        raise SandboxError("could not reach Docker")

    monkeypatch.setattr("client.commands.node._driver", broken)
    assert "could not reach Docker" in _ends_in_a_sentence(ladder("node", "check", "--folder", "none"), 3)


@pytest.mark.parametrize(
    ("server", "more", "told"),
    [("https://h:abc", [], "is not an address"), ("https://127.0.0.1:1", ["--ca", "no.pem"], "no.pem")],
)
def test_joining_with_what_is_no_address_or_no_certificate_says_so(
    ladder: Ladder, server: str, more: list[str], told: str
) -> None:
    Path("no.pem").write_text("not a certificate\n")
    done = ladder("node", "join", server, "--name", "a", "--code", "c", "--folder", "node", *more)
    assert told in _ends_in_a_sentence(done, 2)


def test_joining_keeps_the_node_that_is_there(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _node(Path("node"), LADDER_NODE_NAME="gpu-1")
    exchanged: list[str] = []
    monkeypatch.setattr("client.commands.node._exchange", lambda *_: exchanged.append("code"))
    done = ladder("node", "join", "https://h", "--name", "gpu-2", "--code", "c", *folder)
    assert "gpu-1" in _ends_in_a_sentence(done, 2)
    assert "--folder" in done.output
    assert exchanged == []


def test_a_report_of_a_stranger_does_not_steer_the_terminal(ladder: Ladder) -> None:
    report = {"lane": "cpu\x1b[1A\x1b[2K", "made_at": "\x1b]0;x\x07", "accepted": True}
    Path("report.json").write_text(json.dumps(SigningKey.generate().sign(report)))
    done = CliRunner().invoke(main, ["node", "verify-report", "report.json"], color=True)
    assert "accepted" in done.output
    assert "\x1b" not in done.output


@pytest.mark.parametrize(
    ("address", "readable"),
    [
        ("http://course.example.org", True),
        ("HTTP://10.0.0.7:8000", True),
        ("http://[2001:db8::1]:8000", True),
        ("https://course.example.org", False),
        ("http://127.0.0.1:8000", False),
        ("http://[::1]:8000", False),
        ("http://localhost:8000", False),
        ("http://course.localhost", False),
        ("http://[", False),
    ],
)
def test_who_sends_a_password_in_clear_to_another_machine_is_told(address: str, readable: bool) -> None:
    assert account._is_readable_by_others(address) is readable


def test_they_are_told_before_they_type_it(ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreached(*_: object) -> None:
        raise ReachError("not in this test.")

    monkeypatch.setattr(Api, "create_token", unreached)
    done = ladder("login", "http://course.example.org", text="alice@example.org\nx\n")
    assert done.output.index("is not encrypted") < done.output.index("Password")
