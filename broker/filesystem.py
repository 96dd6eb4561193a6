"""The broker of the embedded form: kombu's filesystem transport with its two hot methods replaced.

As shipped, a message becomes visible before it is written (a reader that meets half of it dies, and the message is
gone), is read by way of the machine's common temporary folder, and two messages of one millisecond change places. Here
a message appears whole under a name that sorts by time, never leaves its folder, and belongs to whoever removes it.
"""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """Messages are files, named `<nanoseconds>_<random>.<queue>.msg`."""

    supports_fanout = False

    # kombu's own base classes disagree on the name of the second argument.
    def _put(self, queue: str, payload: dict[str, Any], **_kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{time.time_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        # A leading dot: no queue's name, so that no consumer looks at it before it is whole.
        unfinished = folder / f".{name}"
        unfinished.write_bytes(json.dumps(payload).encode())
        unfinished.rename(folder / name)

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ARG002  (kombu's signature)
        folder = Path(self.data_folder_in)
        for name in sorted(name for name in os.listdir(folder) if name.partition(".")[2] == f"{queue}.msg"):  # noqa: PTH208  (names only; the folder may hold thousands)
            if (message := _take(folder / name)) is not None:
                return message
        raise Empty


def _take(path: Path) -> dict[str, Any] | None:
    """Read and remove a message; `None` where another consumer was faster, or where it is no message."""
    try:
        data = path.read_bytes()
        path.unlink()
    except FileNotFoundError:
        return None
    try:
        message = json.loads(data)
    except ValueError:
        logger.error("dropped %s: it is not JSON", path.name)  # noqa: TRY400  (the trace says nothing more)
        return None
    return message if isinstance(message, dict) else None


class Transport(filesystem.Transport):
    """Named by dotted path in `broker.app`."""

    Channel = Channel
