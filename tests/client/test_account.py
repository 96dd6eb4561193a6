from __future__ import annotations

import stat

import pytest

from client.account import Account, credentials_path, load_account, save_account
from client.api import is_this_machine
from client.errors import ReachError, UsageError


def test_the_environment_comes_before_the_file() -> None:
    save_account(Account("http://one", "token of one"))
    assert load_account({"LADDER_SERVER": "http://two/", "LADDER_TOKEN": "two"}) == Account("http://two", "two")
    assert load_account({"LADDER_TOKEN": "other"}) == Account("http://one", "other")


def test_a_token_is_never_sent_to_another_server() -> None:
    save_account(Account("http://one", "token of one"))
    assert load_account({"LADDER_SERVER": "http://one/"}) == Account("http://one", "token of one")
    with pytest.raises(ReachError, match="you are not logged in"):
        load_account({"LADDER_SERVER": "http://two"})


def test_a_server_without_a_scheme_is_reached_by_https() -> None:
    assert (
        load_account({"LADDER_SERVER": "ladder.example.org", "LADDER_TOKEN": "x"}).server
        == "https://ladder.example.org"
    )


def test_a_file_that_was_open_to_others_is_closed_by_the_next_login() -> None:
    save_account(Account("http://one", "x"))
    credentials_path().chmod(0o644)
    save_account(Account("http://one", "y"))
    assert stat.S_IMODE(credentials_path().stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_broken_file_is_named(text: str) -> None:
    save_account(Account("http://one", "x"))
    credentials_path().write_text(text)
    with pytest.raises(UsageError, match=r"credentials\.json"):
        load_account({})


@pytest.mark.parametrize(
    ("server", "here"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://localhost", True),
        ("http://[::1]:8000", True),
        ("https://ladder.example.org", False),
        ("http://localhost.example.org", False),
        ("http://10.0.0.1", False),
        ("http://[", False),
    ],
)
def test_a_proxy_is_for_other_machines_only(server: str, here: bool) -> None:
    assert is_this_machine(server) is here
