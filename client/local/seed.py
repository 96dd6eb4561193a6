"""What an empty installation needs before it can grade, by the commands that staff type.

They run as processes of their own: this package does not import the server.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from client.commands.staff import load
from client.errors import OursError
from client.local.home import Home, write_private

COURSE = "gpu-demo"
NODE = "local"
PEOPLE = {
    "alice@example.org": "student",
    "bob@example.org": "student",
    "carol@example.org": "student",
    "tom@example.org": "TA",
    "ines@example.org": "instructor",
}


@dataclass(frozen=True)
class Accounts:
    """The demo course's accounts; they share one password."""

    password: str


def prepare(home: Home, environ: Mapping[str, str]) -> Accounts | None:
    """Bring the database up to date, seed the demo course where there is none, and let the embedded node in.

    Returns the demo accounts, `None` where this home has a course of its own instead.
    """
    admin(environ, "migrate")
    accounts = _seed(home, environ)
    # A new key each time: nothing but this worker uses it, and what an earlier one left behind is worth nothing.
    home.node_key.unlink(missing_ok=True)
    key = load("broker.identity", "worker").NodeKey.generate()
    key.save(home.node_key)
    identity = home.folder / "node-local.identity"
    identity.write_text(json.dumps(dataclasses.asdict(key.identity)) + "\n", encoding="utf-8")
    admin(environ, "create-node", NODE, "--identity", str(identity), "--lanes", _lanes(environ))
    return accounts


def _lanes(environ: Mapping[str, str]) -> str:
    said = environ.get("LADDER_LANES", "cpu")
    return "all" if said == "auto" else said


def _seed(home: Home, environ: Mapping[str, str]) -> Accounts | None:
    if home.password.is_file():
        admin(environ, "sync-assignments", COURSE)
        return Accounts(home.password.read_text(encoding="utf-8").strip())
    password = environ.get("LADDER_DEMO_PASSWORD") or secrets.token_urlsafe(9)
    said = admin({**environ, "LADDER_DEMO_PASSWORD": password}, "seed-demo", "--if-empty")
    if "Made an account" not in said:
        return None
    write_private(home.password, password + "\n")
    return Accounts(password)


def admin(environ: Mapping[str, str], *arguments: str) -> str:
    """Run `ladder admin …`; returns what it said.

    Raises:
        OursError: it failed.
    """
    command = [sys.executable, "-P", "-m", "client", "admin", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        raise OursError(f"`ladder admin {' '.join(arguments)}` failed:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout
