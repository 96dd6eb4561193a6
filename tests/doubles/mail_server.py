"""A mail server on loopback that remembers what it took, and refuses or forgets what it is told to."""

from __future__ import annotations

import asyncio
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


@dataclass
class MailServer:
    """What it took, and how it behaves.

    Attributes:
        answers: address → the answer to a mail to it, such as `550 no such mailbox`.
        hangs: it never answers to a mail's content.
    """

    port: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    raw: list[tuple[list[str], bytes]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)

    @property
    def mails(self) -> list[EmailMessage]:
        """Everything that it took."""
        return [message_from_bytes(data, policy=policy.default) for _to, data in self.raw]

    async def handle_RCPT(self, _server, _session, envelope, address, _options) -> str:  # noqa: N802  # aiosmtpd's name
        """Take a receiver, or say why not."""
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope) -> str:  # noqa: N802  # aiosmtpd's name
        """Take a mail."""
        if self.hangs:
            await asyncio.sleep(3600)
        self.raw.append((list(envelope.rcpt_tos), envelope.content))
        return "250 OK"

    def authenticate(self, _server, _session, _envelope, _mechanism, data) -> AuthResult:
        """Let in whoever says `right`."""
        assert isinstance(data, LoginPassword)
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"right", handled=False)


@contextmanager
def served(*, certificate: Path | None = None, at_once: bool = False, password: bool = False) -> Iterator[MailServer]:
    """A server for the time of the block.

    Args:
        certificate: a PEM file with key and certificate: it speaks TLS.
        at_once: TLS from the first byte; otherwise by STARTTLS.
        password: it takes mail from those who log in only.
    """
    mail_server, loop = MailServer(), asyncio.new_event_loop()
    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)

    def protocol() -> SMTP:
        asks = {"authenticator": mail_server.authenticate, "auth_required": True} if password else {}
        with warnings.catch_warnings():
            # It does not see that it is inside TLS already, and warns of passwords in clear.
            warnings.simplefilter("ignore")
            return SMTP(
                mail_server, hostname="localhost", loop=loop, tls_context=None if at_once else tls,
                require_starttls=tls is not None and not at_once, auth_require_tls=not at_once, **asks,
            )  # fmt: skip

    async def listen() -> asyncio.Server:
        return await loop.create_server(protocol, "127.0.0.1", 0, ssl=tls if at_once else None)

    listener = loop.run_until_complete(listen())
    mail_server.port = listener.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield mail_server
    finally:
        asyncio.run_coroutine_threadsafe(_end(listener), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(listener: asyncio.Server) -> None:
    listener.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
