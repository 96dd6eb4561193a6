"""Folders of attempts, and which attempts this node has claimed before.

    work/claims/<attempt>      exists once the attempt was claimed; holds its fence while it is unfinished
    work/unsaid/<attempt>      what came of an attempt and could not be sent before the worker was stopped
    work/attempts/<attempt>/   request.json, bundle/, and what the judge writes

A claim is a file that can be made only once, so that a task which the broker delivers again is dropped, even after a
restart.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from autograder import codec
from autograder.assignment import unpack
from autograder.contract import AttemptFailure, AttemptResult, GradeRequest, Kind
from autograder.errors import ContractError
from worker.node_errors import WorkerError

logger = logging.getLogger(__name__)

KEPT_CLAIMS_S = 7 * 86_400.0
_SAID: Mapping[str, type[AttemptResult | AttemptFailure]] = {"result": AttemptResult, "failure": AttemptFailure}
_PUBLIC_ID = re.compile(r"[0-9A-Z]{26}")


class Attempts:
    """The node's folder of attempts and claims."""

    def __init__(self, work: Path, *, keep: bool) -> None:
        self._claims = work / "claims"
        self._unsaid = work / "unsaid"
        self._folders = work / "attempts"
        self._keep = keep
        for folder in (work, self._claims, self._unsaid, self._folders):
            # Sources, hidden cases and staff solutions: the folder is its owner's alone.
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def claim(self, attempt: str, fence: int) -> bool:
        """Claim it; false if it was claimed before.

        Raises:
            WorkerError: this is no attempt's id, and so no name for a file.
        """
        if not _PUBLIC_ID.fullmatch(attempt):
            raise WorkerError(f"{attempt[:100]!r} is no attempt's id")
        try:
            with (self._claims / attempt).open("x", encoding="utf-8") as file:
                file.write(str(fence))
        except FileExistsError:
            return False
        return True

    def finished(self, attempt: str) -> None:
        """Its result is on its way: after a restart there is nothing to say about it."""
        try:
            (self._claims / attempt).write_text("", encoding="utf-8")
        except OSError as error:
            # What is then said about it changes nothing: it ended.
            logger.error("the end of attempt %s could not be noted: %s", attempt, error)  # noqa: TRY400  (the trace says nothing more)

    def unfinished(self) -> list[tuple[str, int]]:
        """Attempt and fence of what a worker that was killed left unfinished; their folders are removed."""
        found = []
        for path in sorted(self._claims.iterdir()):
            if fence := path.read_bytes():
                # A power cut may have left anything; without its fence nothing can be said of it, and its lease ends.
                if fence.isdigit():
                    found.append((path.name, int(fence)))
                else:
                    self.finished(path.name)
                self._remove(self._folders / path.name)
            elif time.time() - path.stat().st_mtime > KEPT_CLAIMS_S:
                path.unlink()
        return found

    def keep_unsaid(self, kind: Kind, message: AttemptResult | AttemptFailure) -> None:
        """Keep what came of an attempt for the next worker to say; a disk that is full keeps nothing."""
        try:
            (self._unsaid / message.attempt).write_text(f"{kind}\n{codec.dumps(message)}", encoding="utf-8")
            self.finished(message.attempt)
        except OSError as error:
            logger.error("the %s of attempt %s could not be kept: %s", kind, message.attempt, error)  # noqa: TRY400  (the trace says nothing more)

    def unsaid(self) -> Iterator[tuple[Kind, AttemptResult | AttemptFailure]]:
        """What was kept, oldest first; what cannot be read any more is dropped."""
        for path in sorted(self._unsaid.iterdir()):
            name, _, text = path.read_text(encoding="utf-8", errors="replace").partition("\n")
            try:
                yield Kind(name), codec.loads(_SAID[name], text)
            except (ContractError, ValueError, KeyError) as error:
                logger.error("dropped what was kept of attempt %s: %r", path.name, error)  # noqa: TRY400  (the same)
                path.unlink()

    def said(self, attempt: str) -> None:
        """What was kept is sent."""
        (self._unsaid / attempt).unlink(missing_ok=True)

    @contextmanager
    def staged(self, attempt: str, request: GradeRequest, bundle: bytes) -> Iterator[Path]:
        """A folder that the judge grades, and that can be graded again by hand; removed at the end unless kept."""
        folder = self._folders / attempt
        folder.mkdir(mode=0o700)
        try:
            (folder / "request.json").write_text(codec.dumps(request), encoding="utf-8")
            (folder / "bundle").mkdir()
            unpack(bundle, folder / "bundle")
            yield folder
        finally:
            self._remove(folder)

    def _remove(self, folder: Path) -> None:
        if not self._keep:
            shutil.rmtree(folder, ignore_errors=True)
