"""Values that are read once and kept in mind, because what they follow from never changes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """So many values by a key that says all about them, such as a content hash; the oldest goes first."""

    def __init__(self, most: int) -> None:
        self._most, self._values, self._lock = most, dict[str, T](), Lock()

    def peek(self, key: str) -> T | None:
        """The value of this key, if it is kept."""
        return self._values.get(key)

    def get(self, key: str, read: Callable[[], T]) -> T:
        """The value of this key; `read` makes it the first time."""
        found = self._values.get(key)
        if found is None:
            # Not under the lock: it may ask the database.
            found = read()
            with self._lock:
                self._values[key] = found
                while len(self._values) > self._most:
                    del self._values[next(iter(self._values))]
        return found
