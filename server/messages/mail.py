"""A mail as text, and the two ways to send one: by SMTP, or into a file for whoever runs a server at home."""

from __future__ import annotations

import logging
import smtplib
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, parseaddr
from pathlib import Path
from urllib.parse import urlsplit

from server.config import Config
from server.messages.kinds import KINDS
from server.messages.outbox import Outgoing

logger = logging.getLogger(__name__)

SETTINGS = "/notifications/settings"
"""Where a person says what they want by mail."""
_PORTS = {"none": 25, "starttls": 587, "tls": 465}
_FINAL = 500
"""From here on an SMTP server says that it will never take it."""


class UnsentError(Exception):
    """This mail has not left; `for_good` if it never will."""

    def __init__(self, reason: str, *, for_good: bool) -> None:
        super().__init__(reason)
        self.for_good = for_good


class NoServerError(Exception):
    """Nothing can be sent now."""


Deliver = Callable[[EmailMessage, str], None]
"""Send a mail to an address. Raises `UnsentError` if this one has not left, `NoServerError` if none would."""


def post_of(config: Config) -> SmtpPost | ConsolePost:
    """How this installation sends mail."""
    return SmtpPost(config) if config.mail == "smtp" else ConsolePost(config.home / "mail.log")


def written(mail: Outgoing, config: Config) -> EmailMessage:
    """The mail as it leaves: plain text with the whole link, and where to say that one wants no more of this kind.

    Raises:
        UnsentError: the address cannot stand in a mail's head.
    """
    message = EmailMessage(policy=SMTP)
    message["From"] = config.mail_from
    message["To"] = _address(mail.to)
    message["Subject"] = mail.subject
    message["Date"] = formatdate()
    message["Message-ID"] = f"<{mail.message_id}@{_domain(config)}>"
    # Out-of-office programs do not answer it.
    message["Auto-Submitted"] = "auto-generated"
    if mail.kind is not None:
        message["List-Unsubscribe"] = f"<{config.public_url}{SETTINGS}>"
    message.set_content("\n\n".join(_paragraphs(mail, config)) + "\n")
    return message


class ConsolePost:
    """Writes mail into a file that only its owner can read: a mail may hold the link to a new password."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
        """The file."""
        yield self._write

    def _write(self, message: EmailMessage, to: str) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            with self._path.open("ab") as file:
                file.write(message.as_bytes(policy=SMTP.clone(linesep="\n")) + b"\n")
        except OSError as error:
            raise NoServerError(f"{self._path} cannot be written: {error.strerror}") from None
        logger.info("a mail to %s was written to %s: no mail server is configured", to, self._path)


class SmtpPost:
    """Sends mail through a server."""

    def __init__(self, config: Config) -> None:
        self._config = config

    @contextmanager
    def opened(self) -> Iterator[Deliver]:
        """One connection for the mails that are sent within.

        Raises:
            NoServerError: there is none, or it does not take us.
        """
        try:
            server = self._connected()
        except (OSError, smtplib.SMTPException) as error:
            raise NoServerError(_said(error)) from None
        try:
            yield lambda message, to: self._deliver(server, message, to)
        finally:
            with suppress(OSError, smtplib.SMTPException):
                server.quit()

    def _connected(self) -> smtplib.SMTP:
        config = self._config
        port = config.mail_port or _PORTS[config.mail_tls]
        # Read for each connection: a file that is not there keeps mail waiting and nothing else, and a new one counts.
        tls = _authorities(config.mail_ca)
        if config.mail_tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(config.mail_host, port, timeout=config.mail_timeout_s, context=tls)
        else:
            server = smtplib.SMTP(config.mail_host, port, timeout=config.mail_timeout_s)
        try:
            if config.mail_tls == "starttls":
                # Raises where the server offers none: a password must not go in clear because somebody cut it out.
                server.starttls(context=tls)
            if config.mail_user:
                server.login(config.mail_user, config.mail_password)
        except BaseException:
            server.close()
            raise
        return server

    def _deliver(self, server: smtplib.SMTP, message: EmailMessage, to: str) -> None:
        sender = parseaddr(self._config.mail_from)[1]
        try:
            server.send_message(message, from_addr=sender, to_addrs=[to])
        except smtplib.SMTPRecipientsRefused as error:
            code, text = error.recipients[to]
            raise UnsentError(f"{code} {_text(text)}", for_good=code >= _FINAL) from None
        except smtplib.SMTPDataError as error:
            raise UnsentError(_said(error), for_good=error.smtp_code >= _FINAL) from None
        except smtplib.SMTPNotSupportedError as error:
            # Its address needs an extension that the server does not have.
            raise UnsentError(_said(error), for_good=True) from None
        except (OSError, smtplib.SMTPException) as error:
            raise NoServerError(_said(error)) from None


def _paragraphs(mail: Outgoing, config: Config) -> Iterator[str]:
    yield mail.body
    if mail.url:
        yield f"{config.public_url}{mail.url}"
    footer = f"-- \nKernel Ladder, {config.public_url}"
    if mail.kind is not None:
        label = KINDS[mail.kind].label.lower()
        footer += f"\nTo stop mail about {label}: {config.public_url}{SETTINGS}"
    yield footer


def _address(text: str) -> Address:
    try:
        return Address(addr_spec=text)
    except (ValueError, LookupError, MessageError) as error:
        raise UnsentError(f"the address cannot be written to: {error}", for_good=True) from None


def _domain(config: Config) -> str:
    return urlsplit(config.public_url).hostname or "localhost"


def _authorities(path: Path) -> ssl.SSLContext:
    """Whom a mail server's certificate is checked against."""
    try:
        return ssl.create_default_context(cafile=None if path == Path() else str(path))
    except OSError as error:
        raise OSError(f"LADDER_MAIL_CA names {path}, which cannot be read: {error.strerror or error}") from None


def _said(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    return f"{type(error).__name__}: {error}"


def _text(answer: bytes | str) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
