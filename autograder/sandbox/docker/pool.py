"""Containers that wait: started ahead, imports done, no GPU touched, for the one submission that each will serve.

A few threads keep them: they make what is missing of the kinds that were asked for last, and replace what has died.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autograder.contract import Lane
from autograder.errors import SandboxError
from autograder.sandbox import Purpose
from autograder.sandbox.docker.container import Container
from autograder.sandbox.docker.settings import Kind

logger = logging.getLogger(__name__)

_KINDS = 8
"""So many kinds are kept, a rung takes three; the one that was asked for longest ago goes first."""
_FEW = 3
_COMPILING = 4
"""Of those that compile: a check takes three, the measurement after it one."""
_LOOK_S = 2.0
_REST_S = 10.0
"""After a container that could not be made."""
_LONG_S = 0.5
"""A warm one takes a few milliseconds; who reads of longer waits may want more that wait, or more cores for them."""
_MOST_KEEPERS = 6
_CORES_PER_KEEPER = 3
"""Importing takes a core; the other cores are for whoever is graded meanwhile."""

Make = Callable[[Kind, bool], Container]
"""Makes a container of a kind and waits until it is warm; whether nobody waits for it."""


class Pool:
    """Keeps containers waiting, and gives each away once.

    Args:
        size: how many of a kind that makes calls on a GPU, of which one submission takes several; fewer of others.
        keepers: how many are made side by side; by the number of cores if it is not given.
    """

    def __init__(self, make: Make, size: int, keepers: int | None = None) -> None:
        self._make = make
        self._size = size
        self._waiting: OrderedDict[Kind, list[Container]] = OrderedDict()
        self._in_hand = Counter[Kind]()
        self._awaited = Counter[Kind]()
        self._changed = threading.Condition()
        self._closed = False
        self._quiet = 0
        count = keepers or max(1, min(_MOST_KEEPERS, (os.cpu_count() or 1) // _CORES_PER_KEEPER))
        self._keepers = [
            threading.Thread(target=self._keep, name=f"docker-pool-{number}", daemon=True)
            for number in range(count if size else 0)
        ]
        for keeper in self._keepers:
            keeper.start()

    def take(self, kind: Kind) -> Container:
        """A warm container: one that waits, one that is being made for nobody else, or else a new one."""
        began = time.monotonic()
        with self._changed:
            self._want(kind)
            self._changed.notify_all()
            self._awaited[kind] += 1
            self._changed.wait_for(lambda: self._waiting[kind] or self._in_hand[kind] < self._awaited[kind])
            self._awaited[kind] -= 1
            container = self._first_alive(kind)
            self._changed.notify_all()
        container = container or self._make(kind, False)
        if (waited_s := time.monotonic() - began) > _LONG_S:
            logger.warning(
                "waited %.2f s for a container of %s, %s, %s", waited_s, kind.language, kind.lane, kind.purpose
            )
        return container

    def prewarm(self, kind: Kind) -> None:
        """Have containers of this kind wait from now on; nobody waits for them yet."""
        with self._changed:
            self._want(kind)
            self._changed.notify_all()

    @contextmanager
    def pause_background_work(self) -> Iterator[None]:
        """No keeper begins another while this lasts; who needs one that is not there makes it."""
        with self._changed:
            self._quiet += 1
        try:
            yield
        finally:
            with self._changed:
                self._quiet -= 1
                self._changed.notify_all()

    def warm_count(self, kind: Kind) -> int:
        """How many of a kind wait."""
        with self._changed:
            return len(self._waiting.get(kind, ()))

    def waiting(self) -> list[Container]:
        """Those that wait now."""
        with self._changed:
            return [container for containers in self._waiting.values() for container in containers]

    def _want(self, kind: Kind) -> None:
        self._waiting.setdefault(kind, [])
        self._waiting.move_to_end(kind)

    def _first_alive(self, kind: Kind) -> Container | None:
        while self._waiting[kind]:
            container = self._waiting[kind].pop(0)
            if container.alive():
                return container
            container.close()
        return None

    def _keep(self) -> None:
        while True:
            with self._changed:
                while (kind := None if self._quiet else self._missing()) is None and not self._closed:
                    self._changed.wait(_LOOK_S)
                if kind is None or self._closed:
                    return
                self._in_hand[kind] += 1
                unwanted = self._unwanted()
            for container in unwanted:
                container.close()
            self._make_one(kind)

    def _make_one(self, kind: Kind) -> None:
        container: Container | None = None
        try:
            container = self._make(kind, True)
        except SandboxError as error:
            logger.warning("no container could be made to wait: %s", error)
        with self._changed:
            self._in_hand[kind] -= 1
            wanted = container is not None and not self._closed and kind in self._waiting
            if container is not None and wanted:
                self._waiting[kind].append(container)
            self._changed.notify_all()
            if container is None:
                self._changed.wait_for(lambda: self._closed, _REST_S)
        if container is not None and not wanted:
            container.close()

    def _missing(self) -> Kind | None:
        """The kind that lacks the largest part beside those that somebody waits for, the last wanted first; or none."""
        for containers in self._waiting.values():
            for container in [one for one in containers if not one.alive()]:
                containers.remove(container)
                container.close()
        there = {kind: len(self._waiting[kind]) + self._in_hand[kind] for kind in reversed(self._waiting)}
        missing = [kind for kind, count in there.items() if count < self._wanted(kind)]
        return min(missing, key=lambda kind: (there[kind] - self._awaited[kind]) / self._wanted(kind), default=None)

    def _wanted(self, kind: Kind) -> int:
        if kind.purpose is Purpose.call and kind.lane is not Lane.cpu:
            return self._size
        return min(self._size, _COMPILING if kind.purpose is Purpose.compile else _FEW)

    def _unwanted(self) -> list[Container]:
        """What waits in vain."""
        forgotten = [kind for kind in self._waiting if not self._awaited[kind]][: max(0, len(self._waiting) - _KINDS)]
        return [container for kind in forgotten for container in self._waiting.pop(kind)]

    def close(self) -> None:
        """End all that wait, and the keepers."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for keeper in self._keepers:
            keeper.join()
        for containers in self._waiting.values():
            for container in containers:
                container.close()
        self._waiting.clear()
