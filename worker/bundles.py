"""Assignment files by content hash: fetched for an attempt that the node holds, verified, kept."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from autograder.assignment import content_hash
from autograder.contract import GradeTask
from worker.node_errors import BundleError, HandedBackError
from worker.server import Signature

logger = logging.getLogger(__name__)

MAX_BUNDLE_BYTES = 64 * 2**20
KEPT = 32
"""So many bundles are kept, the ones used last."""
PAUSE_S = 1.0
TIMEOUT_S = 20.0

_HASH = re.compile(r"sha256:([0-9a-f]{64})")


class Bundles:
    """The node's store of bundles.

    Args:
        wait: sleeps between two tries; what it raises ends them.
    """

    def __init__(
        self, folder: Path, server_url: str, signature: Signature, *, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._folder = folder
        self._url = f"{server_url}/api/v1/attempts"
        self._signature = signature
        self._wait = wait
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def get(self, task: GradeTask, *, patience_s: float) -> bytes:
        """The bundle of this attempt; a server that does not answer is asked again for `patience_s`.

        Raises:
            BundleError: it cannot be had, or is not what its name says.
            HandedBackError: the server did not answer all the time, which is no fault of whoever asks.
        """
        bundle = task.request.bundle
        match = _HASH.fullmatch(bundle)
        if match is None:
            raise BundleError(f"{bundle[:100]!r} is no content hash")
        path = self._folder / f"{match[1]}.tar"
        data = _kept(path, bundle)
        if data is None:
            data = self._fetch(task, time.monotonic() + patience_s)
            self._keep(path, data)
        return data

    def _fetch(self, task: GradeTask, give_up_at: float) -> bytes:
        bundle = task.request.bundle
        while True:
            try:
                data = self._download(task)
            except httpx.TransportError as error:
                if time.monotonic() >= give_up_at:
                    raise HandedBackError(f"the server did not answer: {error!r}") from None
                logger.warning("the server does not answer, asking again: %r", error)
                self._wait(PAUSE_S)
                continue
            if content_hash(data) != bundle:
                raise BundleError(f"the server did not send {bundle}")
            return data

    def _download(self, task: GradeTask) -> bytes:
        bundle, url = task.request.bundle, f"{self._url}/{task.attempt}/bundle"
        asked = httpx.stream("GET", url, params={"fence": task.fence}, auth=self._signature, timeout=TIMEOUT_S)
        with asked as response:
            if response.is_server_error:
                raise httpx.RemoteProtocolError(f"status {response.status_code}")
            if response.status_code != httpx.codes.OK:
                raise BundleError(f"the server answered {response.status_code} for {bundle}")
            data = bytearray()
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > MAX_BUNDLE_BYTES:
                    raise BundleError(f"{bundle} has more than {MAX_BUNDLE_BYTES} bytes")
            return bytes(data)

    def _keep(self, path: Path, data: bytes) -> None:
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            unfinished.write_bytes(data)
            unfinished.rename(path)
        finally:
            # A disk that was full must not stay so because of what was begun.
            unfinished.unlink(missing_ok=True)
        by_use = sorted(self._folder.glob("*.tar"), key=lambda kept: kept.stat().st_mtime, reverse=True)
        for old in by_use[KEPT:]:
            old.unlink(missing_ok=True)


def _kept(path: Path, bundle: str) -> bytes | None:
    """The bundle from the store; verified, because a disk may have lost the end of it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if content_hash(data) != bundle:
        return None
    os.utime(path)
    return data
