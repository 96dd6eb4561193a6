"""Where the server's address and the token are kept: one file in the user's configuration folder, for them alone.

`LADDER_SERVER` and `LADDER_TOKEN` come before the file; with both set, nothing is read from disk.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from client.errors import ReachError, UsageError, writing


@dataclass(frozen=True)
class Account:
    """A server and the token that it gave."""

    server: str
    token: str


def credentials_path() -> Path:
    """The file; its folder depends on the system."""
    return Path(click.get_app_dir("kernel-ladder")) / "credentials.json"


def load_account(environ: Mapping[str, str] = os.environ) -> Account:
    """Read the environment, then the file.

    Raises:
        ReachError: nobody is logged in.
        UsageError: the file cannot be read.
    """
    stored = _stored()
    server = environ.get("LADDER_SERVER") or stored.get("server", "")
    # A token belongs to the server that gave it; another server never sees it.
    same = not environ.get("LADDER_SERVER") or address_of(server) == stored.get("server")
    token = environ.get("LADDER_TOKEN") or (stored.get("token", "") if same else "")
    if not server or not token:
        raise ReachError("you are not logged in. Run `ladder login SERVER`, or set LADDER_SERVER and LADDER_TOKEN.")
    return Account(address_of(server), _sendable(token))


def save_account(account: Account) -> Path:
    """Write the file with mode 0600; it never exists with another."""
    path = credentials_path()
    with writing(path):
        _write(path, account)
    return path


def _write(path: Path, account: Account) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(Account(address_of(account.server), account.token)), file)
    draft.replace(path)


def forget_account() -> bool:
    """Remove the file; say whether there was one."""
    path = credentials_path()
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


def _sendable(token: str) -> str:
    """The token as a header can carry it; what is wrong with another is said without showing it."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise UsageError("the token in LADDER_TOKEN or in the token file is malformed. Log in again, or set another.")
    return token


def address_of(server: str) -> str:
    """What somebody called the server, as requests are sent there: by https where they did not say."""
    server = server if "://" in server else f"https://{server}"
    return server.rstrip("/")


def _stored() -> dict[str, str]:
    path = credentials_path()
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = None
    if not isinstance(data, dict):
        raise UsageError(f"{path} cannot be read. Remove it and log in again.")
    return {key: value for key, value in data.items() if isinstance(value, str)}
