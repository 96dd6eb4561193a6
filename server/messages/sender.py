"""Takes the mail that is due, sends it and writes down what became of it, from a thread of its own.

A mail server that hangs keeps nothing else waiting, and what goes wrong here fails no request: mail is told to the
outbox, and this is the only place that talks to a mail server.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from server import alerts
from server.config import Config
from server.db import Database, now
from server.messages import mail, outbox
from server.messages.outbox import Outgoing
from server.models import AlertKind

logger = logging.getLogger(__name__)

EVERY_S = 2.0
LEAVE_S = 10.0


class Sender:
    """Sends what is due; every call of `step` is one look at the outbox."""

    def __init__(self, database: Database, config: Config) -> None:
        self._database = database
        self._config = config
        self._post = mail.post_of(config)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mail", daemon=True)

    def start(self) -> None:
        """Send from now on, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more; what is under way is sent again by the next one if this process ends before it is through."""
        self._stopped.set()
        self._thread.join(LEAVE_S)

    def step(self) -> int:
        """Send what is due, one batch; how many mails left."""
        with self._database.reading() as session:
            if not outbox.is_due(session, now(session)):
                return 0
        with self._database.transaction() as session:
            mails = outbox.take(session, now(session))
        return self._send(mails) if mails else 0

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                sent = self.step()
            except Exception:
                # Around the job: the next look may find a database that answers.
                logger.exception("mail was not sent")
                sent = 0
            if not sent:
                self._stopped.wait(EVERY_S)

    def _send(self, mails: Sequence[Outgoing]) -> int:
        waiting, left = list(mails), 0
        try:
            with self._post.opened() as deliver:
                while waiting:
                    left += self._send_one(waiting[0], deliver)
                    waiting.pop(0)
        except mail.NoServerError as error:
            self._no_server(waiting, str(error))
            return left
        self._record(lambda session, at: alerts.resolve(session, AlertKind.mail_failed, outbox.SERVER, at))
        return left

    def _send_one(self, item: Outgoing, deliver: mail.Deliver) -> int:
        try:
            deliver(mail.written(item, self._config), item.to)
        except mail.NoServerError:
            raise
        except mail.UnsentError as error:
            self._failed(item, str(error), for_good=error.for_good)
            return 0
        except Exception as error:
            # Around one mail: one that nobody foresaw must not come first for ever and keep all others back.
            logger.exception("mail %d was not sent", item.id)
            self._failed(item, f"{type(error).__name__}: {error}", for_good=False)
            return 0
        self._record(lambda session, at: outbox.sent(session, item, at))
        return 1

    def _failed(self, item: Outgoing, reason: str, *, for_good: bool) -> None:
        self._record(lambda session, at: outbox.failed(session, item, reason, for_good=for_good, now=at))

    def _no_server(self, mails: Sequence[Outgoing], reason: str) -> None:
        logger.warning("no mail can be sent: %s", reason)

        def write(session: Session, at: datetime) -> None:
            for item in mails:
                outbox.failed(session, item, reason, for_good=False, now=at)
            message = f"No mail can be sent: {reason}. It is tried again; mail is dropped after seven hours."
            alerts.raise_alert(session, AlertKind.mail_failed, outbox.SERVER, message, at)

        self._record(write)

    def _record(self, write: Callable[[Session, datetime], object]) -> None:
        try:
            with self._database.transaction() as session:
                write(session, now(session))
        except SQLAlchemyError:
            # Its lease ends, and it is sent again: twice rather than never.
            logger.exception("what became of a mail was not written down")
