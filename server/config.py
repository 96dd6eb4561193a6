"""Configuration: read once from the environment, at the top, into a frozen object that is passed down.

Every variable is `LADDER_` and the field's name in capitals; docs/configuration.md lists them, and a test compares.
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
        migrations_url: URL of the role that owns the tables, where that is another; the application's then owns none.
        statement_timeout_s: how long PostgreSQL works on one statement of the running server; 0: as long as it takes.
        broker_url: kombu URL; the default is the filesystem transport in `home`.
        nodes_broker_url: where nodes on other machines reach the broker, without a password; empty if they cannot.
        assignments, reference: folders that `ladder admin sync-assignments` reads.
        web: folder with `templates/` and `static/`.
        public_url: how browsers reach the web tier; cookies are `Secure` when it is https.
        docs_url, source_url: of the documentation and of the source code, linked on the front page; empty: no link.
        session_days: how long a login lasts.
        token_days, token_days_most: how long a token for the command line lives unless its owner says, and at most.
        staff_second_factor: `required`: staff log in elsewhere or with a second factor; `optional`: they may.
        second_factor_key: file of the key that encrypts second factors in the database; made where there is none.
        lease_s: how long an attempt lives without a heartbeat.
        attempt_deadline_s: how long an attempt may take in all.
        max_attempts: after so many attempts without a result a submission has failed.
        artefact_days: how long files that attempts left are kept.
        poll_s: how often the dispatcher looks for work, and the web tier for changes that somebody watches.
        profiles_per_day: that a student may ask for in 24 hours in one course.
        run_quota_per_minute, submit_quota_per_minute: per student; login attempts per address and minute likewise.
        person_requests_per_s, person_requests_at_once, person_streams: of one person; 0: any number.
        network_requests_per_s, network_requests_at_once, network_streams: of one network address.
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
    migrations_url: str = field(default="", repr=False)
    statement_timeout_s: float = 60.0
    nodes_broker_url: str = ""
    public_url: str = "http://127.0.0.1:8000"
    docs_url: str = ""
    source_url: str = ""
    session_days: float = 14.0
    token_days: int = 90
    token_days_most: int = 365
    staff_second_factor: str = "optional"
    second_factor_key: Path = Path()
    lease_s: float = 30.0
    attempt_deadline_s: float = 600.0
    max_attempts: int = 3
    artefact_days: float = 90.0
    poll_s: float = 0.1
    run_quota_per_minute: int = 20
    submit_quota_per_minute: int = 10
    profiles_per_day: int = 20
    login_quota_per_minute: int = 10
    person_requests_per_s: float = 20.0
    person_requests_at_once: int = 40
    person_streams: int = 30
    network_requests_per_s: float = 100.0
    network_requests_at_once: int = 400
    network_streams: int = 1000
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
        ValueError: a variable cannot be read as its type, or cannot be meant; the message names it.
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
        "second_factor_key": home / "second-factor.key",
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
            raise ValueError(f"LADDER_{item.name.upper()} must be {item.type}, but is {text!r}") from None
        if item.name in _LEAST and not float(text) >= _LEAST[item.name]:
            raise ValueError(f"LADDER_{item.name.upper()} must be {_LEAST[item.name]} or more, but is {text}")
        if item.name in _LINKS and text and not text.startswith(("https://", "http://")):
            raise ValueError(f"LADDER_{item.name.upper()} must begin with https:// or http://, but is {text!r}")
        if text not in _WORDS.get(item.name, (text,)):
            raise ValueError(
                f"LADDER_{item.name.upper()} has to be one of {', '.join(_WORDS[item.name])}, it is {text!r}"
            )
    return Config(**values)  # type: ignore[arg-type]  # the loop above gave each field its own type


_WORDS = {
    "mail": ("console", "smtp"),
    "mail_tls": ("starttls", "tls", "none"),
    "staff_second_factor": ("optional", "required"),
}
"""What a variable may say where it is not free."""
_LINKS = ("docs_url", "source_url")
"""What pages link to."""
_LEAST = {
    **dict.fromkeys(("token_days", "token_days_most"), 1),
    **dict.fromkeys(("person_requests_per_s", "person_requests_at_once", "person_streams", "statement_timeout_s"), 0),
    **dict.fromkeys(("network_requests_per_s", "network_requests_at_once", "network_streams"), 0),
}
"""What a number may not be below: a token that is over when it is made, or a limit that lets nobody in."""
_SECRETS = {
    "LADDER_DATABASE_URL",
    "LADDER_MIGRATIONS_URL",
    "LADDER_BROKER_URL",
    "LADDER_METRICS_TOKEN",
    "LADDER_MAIL_PASSWORD",
}
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
