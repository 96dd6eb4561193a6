"""Configuration: read once from the environment, at the top, into a frozen object that is passed down.

Every variable is `LADDER_` and the field's name in capitals. What each means stands beside its field, from where
`python -m scripts.reference` writes the tables of docs/configuration.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

REPOSITORY = Path(__file__).resolve().parent.parent


class Part(StrEnum):
    """The tables that settings stand in."""

    app = "App"
    sign_on = "Sign-on"
    mail = "Mail"
    limits = "Limits"


@dataclass(frozen=True)
class Setting:
    """What is known of one variable.

    Attributes:
        meaning: Markdown, as a cell of the table; links are relative to `docs/`.
        default: the default in words, where the value itself does not say it.
        least: a number below this is refused.
        words: anything else is refused; empty: any text.
        is_link: of a page; only http and https.
        is_secret: the value may stand in the file that `<name>_FILE` names.
    """

    part: Part
    meaning: str
    default: str = ""
    least: float | None = None
    words: tuple[str, ...] = ()
    is_link: bool = False
    is_secret: bool = False


def _shared(name: str) -> Path:
    """Where data files lie: in the repository, or under the prefix that the wheel was installed into."""
    inside = REPOSITORY / name
    return inside if inside.is_dir() else Path(sys.prefix) / "share" / "kernel-ladder" / name


@dataclass(frozen=True)
class Config:
    """Every setting of web tier, dispatcher, recorder and `ladder admin`."""

    home: Annotated[
        Path,
        Setting(
            Part.app,
            "folder for everything an installation creates: database, queue, logs, keys",
            default="`var/` in the checkout",
        ),
    ]
    database_url: Annotated[
        str, Setting(Part.app, "SQLAlchemy URL of the database", default="SQLite in the home folder", is_secret=True)
    ]
    broker_url: Annotated[
        str, Setting(Part.app, "kombu URL of the message broker", default="files in the home folder", is_secret=True)
    ]
    assignments: Annotated[
        Path,
        Setting(
            Part.app,
            "folder of assignments that `ladder admin sync-assignments` and the tools for authors read",
            default="the checkout's folders",
        ),
    ]
    reference: Annotated[
        Path,
        Setting(
            Part.app,
            "folder of the staff's half of the assignments, for the same",
            default="the checkout's folders",
        ),
    ]
    web: Annotated[Path, Setting(Part.app, "folder with `templates/` and `static/`", default="the checkout's `web/`")]
    migrations_url: Annotated[
        str,
        Setting(
            Part.app,
            "the same by the role that owns the tables; only `ladder admin migrate` needs it ([deploy](deploy.md))",
            default="the database URL",
            is_secret=True,
        ),
    ] = field(default="", repr=False)
    statement_timeout_s: Annotated[
        float, Setting(Part.app, "longest PostgreSQL statement of the running server, seconds; 0: no limit", least=0)
    ] = 60.0
    nodes_broker_url: Annotated[
        str,
        Setting(
            Part.app,
            "address of the broker for nodes on other machines, without a password",
            default="none: no node can join",
        ),
    ] = ""
    public_url: Annotated[str, Setting(Part.app, "address that browsers use; with `https` cookies are `Secure`")] = (
        "http://127.0.0.1:8000"
    )
    docs_url: Annotated[
        str, Setting(Part.app, "address of the documentation, linked on the front page", default="none", is_link=True)
    ] = ""
    source_url: Annotated[
        str, Setting(Part.app, "address of the source code, linked on the front page", default="none", is_link=True)
    ] = ""
    poll_s: Annotated[
        float, Setting(Part.app, "how often the dispatcher looks for work, and the web tier for changes, seconds")
    ] = 0.1
    lease_s: Annotated[float, Setting(Part.app, "lifetime of an attempt without a heartbeat, seconds")] = 30.0
    attempt_deadline_s: Annotated[
        float,
        Setting(Part.app, "longest attempt, seconds; a manifest may give a submission at most 300 of them (`total_s`)"),
    ] = 600.0
    max_attempts: Annotated[
        int,
        Setting(Part.app, "attempts without a result after which a submission has failed, at no cost to the student"),
    ] = 3
    confirm_s: Annotated[
        float,
        Setting(
            Part.app,
            "how often the dispatcher looks for results to confirm, seconds; 0: never ([scores](scores.md#confirmed))",
        ),
    ] = 60.0
    artefact_days: Annotated[float, Setting(Part.app, "days for which files that attempts left are kept")] = 90.0
    receipt_key: Annotated[
        Path,
        Setting(
            Part.app,
            "file of the private key that signs receipts; created if missing ([receipts](receipts.md#the-key))",
            default="`receipt-key.pem` in the home folder",
        ),
    ] = Path()
    log_format: Annotated[str, Setting(Part.app, "`text` or `json`; workers read it too")] = "text"
    metrics_token: Annotated[
        str,
        Setting(
            Part.app, "bearer token that Prometheus sends for `/metrics`", default="none: no `/metrics`", is_secret=True
        ),
    ] = field(default="", repr=False)
    session_days: Annotated[float, Setting(Part.sign_on, "lifetime of a browser login, days")] = 14.0
    token_days: Annotated[
        int, Setting(Part.sign_on, "lifetime of a command-line token if its owner chooses none, days", least=1)
    ] = 90
    token_days_most: Annotated[
        int, Setting(Part.sign_on, "longest lifetime that an owner may choose, days", least=1)
    ] = 365
    oidc: Annotated[
        Path,
        Setting(
            Part.sign_on,
            "file that names OpenID Connect identity providers ([access](access.md#log-in-elsewhere-openid-connect))",
            default="none",
        ),
    ] = Path()
    staff_second_factor: Annotated[
        str,
        Setting(
            Part.sign_on,
            "`required`: staff need a second factor or single sign-on ([access](access.md#second-factor))",
            words=("optional", "required"),
        ),
    ] = "optional"
    second_factor_key: Annotated[
        Path,
        Setting(
            Part.sign_on,
            "file of the key that encrypts second-factor secrets; created if missing, the same on every host",
            default="`second-factor.key` in the home folder",
        ),
    ] = Path()
    mail: Annotated[
        str,
        Setting(
            Part.mail,
            "`smtp` sends mail; `console` writes it to `mail.log` in the home folder",
            words=("console", "smtp"),
        ),
    ] = "console"
    mail_from: Annotated[str, Setting(Part.mail, "sender of all mail")] = "Kernel Ladder <ladder@localhost>"
    mail_host: Annotated[str, Setting(Part.mail, "mail server")] = "localhost"
    mail_port: Annotated[int, Setting(Part.mail, "its port; 0: 587, 465 or 25, depending on `LADDER_MAIL_TLS`")] = 0
    mail_tls: Annotated[
        str, Setting(Part.mail, "`starttls`, `tls` (from the first byte) or `none`", words=("starttls", "tls", "none"))
    ] = "starttls"
    mail_ca: Annotated[
        Path, Setting(Part.mail, "file of the authorities that may sign its certificate", default="the system's")
    ] = Path()
    mail_user: Annotated[str, Setting(Part.mail, "user name at the mail server", default="none: no login")] = ""
    mail_password: Annotated[str, Setting(Part.mail, "password at the mail server", default="none", is_secret=True)] = (
        field(default="", repr=False)
    )
    mail_timeout_s: Annotated[float, Setting(Part.mail, "longest wait for an answer of the mail server, seconds")] = (
        10.0
    )
    profiles_per_day: Annotated[
        int, Setting(Part.limits, "[profiles and sanitizer runs](profiling.md) of one student and course in 24 hours")
    ] = 20
    run_quota_per_minute: Annotated[int, Setting(Part.limits, "practice runs of one student in a minute")] = 20
    submit_quota_per_minute: Annotated[int, Setting(Part.limits, "submissions of one student in a minute")] = 10
    login_quota_per_hour: Annotated[
        int,
        Setting(
            Part.limits,
            "failed log-ins in an hour of one e-mail address from one network before it waits; a network: ten times",
        ),
    ] = 10
    person_requests_per_s: Annotated[
        float, Setting(Part.limits, "requests of one person in a second; ten seconds' worth may come at once", least=0)
    ] = 20.0
    person_requests_at_once: Annotated[
        int, Setting(Part.limits, "requests of one person that are answered at the same time", least=0)
    ] = 40
    person_streams: Annotated[int, Setting(Part.limits, "open live pages of one person", least=0)] = 30
    network_requests_per_s: Annotated[
        float, Setting(Part.limits, "requests in a second from one IPv4 address or one IPv6 /64", least=0)
    ] = 100.0
    network_requests_at_once: Annotated[
        int, Setting(Part.limits, "requests from one network that are answered at the same time", least=0)
    ] = 400
    network_streams: Annotated[int, Setting(Part.limits, "open live pages of one network", least=0)] = 1000


def settings() -> Iterator[tuple[str, type, Setting]]:
    """Name, type and record of every field, in order."""
    hints = get_type_hints(Config, include_extras=True)
    for item in fields(Config):
        kind, setting = get_args(hints[item.name])
        yield item.name, kind, setting


def variable(name: str) -> str:
    """The environment variable of a field."""
    return f"LADDER_{name.upper()}"


def load_config(environ: Mapping[str, str] = os.environ) -> Config:
    """Read the environment.

    Raises:
        ValueError: a variable cannot be read as its type, or cannot be meant; the message names it.
    """
    home = Path(environ.get("LADDER_HOME", REPOSITORY / "var")).resolve()
    values: dict[str, Any] = {
        "home": home,
        "database_url": f"sqlite:///{home / 'ladder.sqlite'}",
        "broker_url": f"filesystem://{home / 'broker'}",
        "assignments": _shared("assignments"),
        "reference": REPOSITORY / "reference",
        "web": _shared("web"),
        "receipt_key": home / "receipt-key.pem",
        "second_factor_key": home / "second-factor.key",
    }
    for name, kind, setting in settings():
        text = _given(environ, name, setting)
        if name != "home" and text is not None:
            values[name] = _read(name, kind, setting, text)
    return Config(**values)


def _read(name: str, kind: type, setting: Setting, text: str) -> object:
    try:
        value: object = kind(text)
    except ValueError:
        raise ValueError(f"{variable(name)} must be {kind.__name__}, but is {text!r}") from None
    if setting.least is not None and not float(text) >= setting.least:
        raise ValueError(f"{variable(name)} must be {setting.least:g} or more, but is {text}")
    if setting.is_link and text and not text.startswith(("https://", "http://")):
        raise ValueError(f"{variable(name)} must begin with https:// or http://, but is {text!r}")
    if setting.words and text not in setting.words:
        raise ValueError(f"{variable(name)} must be one of {', '.join(setting.words)}, but is {text!r}")
    return value


def _given(environ: Mapping[str, str], name: str, setting: Setting) -> str | None:
    """What a variable says; a secret may stand in the file that `<name>_FILE` names instead."""
    own = variable(name)
    path = environ.get(f"{own}_FILE") if setting.is_secret else None
    if own in environ or path is None:
        return environ.get(own)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{own}_FILE names {path}, which cannot be read: {error.strerror}") from None
