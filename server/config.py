"""Configuration: read once from the environment, at the top, into a frozen object that is passed down.

Every variable is `LADDER_` and the field's name in capitals; README.md lists them, and a test compares.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def _shared(name: str) -> Path:
    """Where data files lie: in the repository, or under the prefix that the wheel was installed into."""
    inside = REPOSITORY / name
    return inside if inside.is_dir() else Path(sys.prefix) / "share" / "kernel-ladder" / name


@dataclass(frozen=True)
class Config:
    """Where everything is.

    Attributes:
        home: folder of what this installation makes: database, broker folders, logs, secrets.
        database_url: SQLAlchemy URL; the default is SQLite in `home`.
        broker_url: kombu URL; the default is the filesystem transport in `home`.
        nodes_broker_url: where nodes on other machines reach the broker, without a password; empty if they cannot.
        assignments, reference: folders that `ladder admin sync-assignments` reads.
        web: folder with `templates/` and `static/`.
        public_url: how browsers reach the web tier; cookies are `Secure` when it is https.
        session_days: how long a login lasts.
        token_days, token_days_most: how long a token for the command line lives unless its owner says, and at most.
        lease_s: how long an attempt lives without a heartbeat.
        attempt_deadline_s: how long an attempt may take in all.
        max_attempts: after so many attempts without a result a submission has failed.
        artefact_days: how long files that attempts left are kept.
        poll_s: how often the dispatcher looks for work, and the web tier for changes that somebody watches.
        run_quota_per_minute, submit_quota_per_minute: per student; login attempts per address and minute likewise.
        log_format: `text` or `json`.
        metrics_token: who has it may read `/metrics`; without one there is none.
        confirm_s: how often the dispatcher looks for what is to be graded once more; 0: it never does.
        receipt_key: file of the private key that signs receipts; made where there is none.
        mail: `smtp`, or `console`, which writes mail to `home/mail.log` instead of sending it.
        mail_from: who mail is from, `Kernel Ladder <ladder@example.org>`.
        mail_host, mail_port: the mail server; port 0: the usual one for `mail_tls`.
        mail_tls: `starttls`, `tls` (from the first byte), or `none`.
        mail_ca: file of the authorities that the mail server's certificate is checked against; default: the system's.
        mail_user, mail_password: how to log in at the mail server; without a user nobody logs in.
        mail_timeout_s: how long the mail server may take to answer.
        oidc: file that names identity providers people may log in with (`docs/access.md`); none without it.
    """

    home: Path
    database_url: str
    broker_url: str
    assignments: Path
    reference: Path
    web: Path
    nodes_broker_url: str = ""
    public_url: str = "http://127.0.0.1:8000"
    session_days: float = 14.0
    token_days: int = 90
    token_days_most: int = 365
    lease_s: float = 30.0
    attempt_deadline_s: float = 600.0
    max_attempts: int = 3
    artefact_days: float = 90.0
    poll_s: float = 0.1
    run_quota_per_minute: int = 20
    submit_quota_per_minute: int = 10
    login_quota_per_minute: int = 10
    log_format: str = "text"
    metrics_token: str = field(default="", repr=False)
    receipt_key: Path = Path()
    confirm_s: float = 60.0
    mail: str = "console"
    mail_from: str = "Kernel Ladder <ladder@localhost>"
    mail_host: str = "localhost"
    mail_port: int = 0
    mail_tls: str = "starttls"
    mail_ca: Path = Path()
    mail_user: str = ""
    mail_password: str = field(default="", repr=False)
    mail_timeout_s: float = 10.0
    oidc: Path = Path()


def load_config(environ: Mapping[str, str] = os.environ) -> Config:
    """Read the environment.

    Raises:
        ValueError: a variable cannot be read as its type; the message names it.
    """
    home = Path(environ.get("LADDER_HOME", REPOSITORY / "var")).resolve()
    defaults: dict[str, object] = {
        "home": home,
        "database_url": f"sqlite:///{home / 'ladder.sqlite'}",
        "broker_url": f"filesystem://{home / 'broker'}",
        "assignments": _shared("assignments"),
        "reference": REPOSITORY / "reference",
        "web": _shared("web"),
        "receipt_key": home / "receipt-key.pem",
    }
    kinds = {"Path": Path, "str": str, "int": int, "float": float}
    values: dict[str, object] = {}
    for item in fields(Config):
        text = _given(environ, f"LADDER_{item.name.upper()}")
        if item.name == "home" or text is None:
            values[item.name] = defaults.get(item.name, item.default)
            continue
        try:
            values[item.name] = kinds[str(item.type)](text)
        except ValueError:
            raise ValueError(f"LADDER_{item.name.upper()} has to be {item.type}, it is {text!r}") from None
        if text not in _WORDS.get(item.name, (text,)):
            raise ValueError(
                f"LADDER_{item.name.upper()} has to be one of {', '.join(_WORDS[item.name])}, it is {text!r}"
            )
    return Config(**values)  # type: ignore[arg-type]  # the loop above gave each field its own type


_WORDS = {"mail": ("console", "smtp"), "mail_tls": ("starttls", "tls", "none")}
"""What a variable may say where it is not free."""
_SECRETS = {"LADDER_DATABASE_URL", "LADDER_BROKER_URL", "LADDER_METRICS_TOKEN", "LADDER_MAIL_PASSWORD"}
"""The URLs hold passwords."""


def _given(environ: Mapping[str, str], name: str) -> str | None:
    """What a variable says; a secret may stand in the file that `<name>_FILE` names instead."""
    path = environ.get(f"{name}_FILE") if name in _SECRETS else None
    if name in environ or path is None:
        return environ.get(name)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{name}_FILE names {path}, which cannot be read: {error.strerror}") from None
