"""The copy of their data that somebody asks for, as one archive that is made while it is sent."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

from anyio import CancelScope, to_thread
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from sqlalchemy.orm import Session
from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response

from autograder.receipts import Receipt, issue
from server import db
from server.db import Database
from server.exports import exports
from server.grading import receipt_keys
from server.http.attachments import attachment
from server.http.identity import Someone
from server.http.work import config_of, database_of
from server.pages.rendering import Slot, write

router = APIRouter(include_in_schema=False)


@router.post("/account/export", dependencies=[Slot])
def export(request: Request, who: Someone) -> Response:
    """Send everything that there is of whoever asks; one copy at a time."""
    key = receipt_keys.key_of(config_of(request))

    def act(session: Session) -> None:
        exports.begin(session, who.user, db.now(session))
        if not receipt_keys.is_known(session, key):
            receipt_keys.keep(session, key, now=db.now(session))

    def sign(receipt: Receipt) -> Any:
        return issue(receipt, key)

    write(request, act)
    name = f"kernel-ladder-{datetime.now(UTC):%Y-%m-%d}.zip"
    return StreamingResponse(
        _sent(database_of(request), who.user.id, sign),
        media_type="application/zip",
        headers=attachment(name),
    )


class _Pipe(io.RawIOBase):
    """Takes what the archive writes and gives it away at once; what cannot be sought is written in order."""

    def __init__(self) -> None:
        super().__init__()
        self._written = bytearray()

    def writable(self) -> bool:
        """It is only written to."""
        return True

    def write(self, data: Any) -> int:
        """Take some bytes."""
        self._written += data
        return len(data)

    def taken(self) -> bytes:
        """What was written since the last time."""
        data = bytes(self._written)
        self._written.clear()
        return data


async def _sent(database: Database, user_id: int, sign: exports.Sign) -> AsyncIterator[bytes]:
    """The archive, made in threads; when it ends, or its reader has gone away, another one can be made."""
    try:
        async for part in iterate_in_threadpool(_archive(database, user_id, sign)):
            yield part
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(_end, database, user_id)


def _archive(database: Database, user_id: int, sign: exports.Sign) -> Iterator[bytes]:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in exports.files(database.reading, user_id, sign):
            archive.writestr(file.name, file.content)
            yield pipe.taken()
    yield pipe.taken()


def _end(database: Database, user_id: int) -> None:
    with database.transaction() as session:
        exports.end(session, user_id, db.now(session))
