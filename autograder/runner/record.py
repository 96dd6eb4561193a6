"""What a recorded call did: kernels launched and library operations, each counted, capped in number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from autograder.runner.report import cut

MOST = 64
_MOST_NAME = 200


class Record:
    """The record of one call; `paused` while the interpreter handles arguments, whose copies are not the student's."""

    def __init__(self) -> None:
        self.recording = False
        self.paused = False
        self._launches: dict[tuple[str, tuple[int, ...]], int] = {}
        self._operations: dict[str, int] = {}

    def clear(self) -> None:
        """Forget the last call."""
        self._launches = {}
        self._operations = {}

    def launched(self, kernel: str, grid: tuple[int, ...]) -> None:
        """Count one launch."""
        _count(self._launches, (cut(kernel, _MOST_NAME), grid))

    def operated(self, name: str) -> None:
        """Count one library operation."""
        if self.recording and not self.paused:
            _count(self._operations, name)

    def seen(self) -> dict[str, Any]:
        """As in `protocol.Returned`."""
        launches = [
            {"kernel": kernel, "grid": list(grid), "calls": calls} for (kernel, grid), calls in self._launches.items()
        ]
        return {"launches": launches, "operations": dict(self._operations)}


def _count(counts: dict[Any, int], key: Any) -> None:
    if key in counts or len(counts) < MOST:
        counts[key] = counts.get(key, 0) + 1


class OperationRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operation that torch dispatches while it is entered."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: otherwise the first operation imports torch's compiler, which takes seconds and is not used here."""
        return False

    def __init__(self, record: Record) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._record = record

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Count and go on."""
        self._record.operated(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))
