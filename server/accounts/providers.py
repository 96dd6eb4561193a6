"""Identity providers that people may log in with: read once, from the file that `LADDER_OIDC` names.

[[provider]]
slug = "university"                     # in addresses
name = "State University"               # on the button
issuer = "https://login.example.edu"
client_id = "kernel-ladder"
client_secret_file = "university.secret"   # beside this file; without it a public client
domains = ["example.edu"]               # whose addresses are taken; none: every one that the provider verified
links_by_email = false                  # an account with the same, verified address is theirs
makes_accounts = false                  # who has none gets one
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_KEYS = {
    "slug": str, "name": str, "issuer": str, "client_id": str, "client_secret_file": str, "domains": list,
    "links_by_email": bool, "makes_accounts": bool,
}  # fmt: skip
_REQUIRED = ("slug", "name", "issuer", "client_id")


@dataclass(frozen=True)
class Provider:
    """One identity provider, and what it is trusted with.

    Attributes:
        slug: its name in addresses.
        name: its name for people.
        domains: whose e-mail addresses are taken from it; none: all that it verified.
        links_by_email: whether it may say by a verified address alone whose account somebody logs in to.
        makes_accounts: whether somebody without an account gets one.
    """

    slug: str
    name: str
    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    domains: tuple[str, ...] = ()
    links_by_email: bool = False
    makes_accounts: bool = False

    def takes(self, email: str) -> bool:
        """Whether it may speak for this address."""
        return not self.domains or email.rpartition("@")[2] in self.domains


def load_providers(path: Path) -> tuple[Provider, ...]:
    """What the file says; none without a file.

    Raises:
        ValueError: it cannot be read, or says something that cannot be meant; the message names the provider.
    """
    if path == Path():
        return ()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"LADDER_OIDC names {path}, which cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    if set(table) - {"provider"} or not isinstance(table.get("provider", []), list):
        raise ValueError(f"{path} has one kind of table, [[provider]]")
    found = tuple(_provider(item, path) for item in table.get("provider", []))
    for what in ("slug", "issuer"):
        if len({getattr(item, what) for item in found}) < len(found):
            raise ValueError(f"{path} has the same {what} twice")
    return found


def is_guarded(url: str) -> bool:
    """Whether nobody on the way can read or change what is said there: https, or this machine."""
    parts = urlsplit(url)
    return (parts.scheme == "https" and bool(parts.netloc)) or (parts.scheme == "http" and parts.hostname in _LOOPBACK)


def _provider(item: Mapping[str, Any], path: Path) -> Provider:
    name = f"{path}, provider {item.get('slug', '?')!r}"
    wrong = [key for key, value in item.items() if not isinstance(value, _KEYS.get(key, ()))]
    missing = [key for key in _REQUIRED if not item.get(key)]
    if wrong or missing:
        raise ValueError(f"{name}: {', '.join(wrong)} cannot be taken; {', '.join(missing)} has to be there")
    if not _SLUG.fullmatch(item["slug"]):
        raise ValueError(f"{name}: a slug has 1 to 40 of a-z, 0-9 and -")
    if not is_guarded(item["issuer"]):
        raise ValueError(f"{name}: an issuer is reached by https")
    return Provider(
        slug=item["slug"],
        name=item["name"],
        issuer=item["issuer"],
        client_id=item["client_id"],
        client_secret=_secret(path, item.get("client_secret_file", ""), name),
        domains=tuple(str(domain).strip().lower() for domain in item.get("domains", [])),
        links_by_email=item.get("links_by_email", False),
        makes_accounts=item.get("makes_accounts", False),
    )


def _secret(path: Path, file: str, name: str) -> str:
    if not file:
        return ""
    try:
        return (path.parent / file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{name}: {file} cannot be read: {error.strerror}") from None
