"""Containers that wait: started ahead, imports done, no GPU touched, for the one submission that each will serve.

One thread keeps them: it makes what is missing of the kinds that were asked for last, and replaces what has died.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from autograder.errors import SandboxError
from autograder.sandbox.docker.container import Container
from autograder.sandbox.docker.settings import Kind

logger = logging.getLogger(__name__)

_KINDS = 4
"""So many kinds are kept; the one that was asked for longest ago goes first."""
_LOOK_S = 2.0
_REST_S = 10.0
"""After a container that could not be made."""

Make = Callable[[Kind, bool], Container]
"""Makes a container of a kind and waits until it is warm; whether nobody waits for it."""


class Pool:
    """Keeps `size` containers of each kind waiting, and gives each away once."""

    def __init__(self, make: Make, size: int) -> None:
        self._make = make
        self._size = size
        self._waiting: OrderedDict[Kind, list[Container]] = OrderedDict()
        self._in_hand: Kind | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._keeper = threading.Thread(target=self._keep, name="docker-pool", daemon=True)
        if size:
            self._keeper.start()

    def take(self, kind: Kind) -> Container:
        """A warm container: one that waits, the one that is being made, or else a new one."""
        with self._changed:
            self._want(kind)
            self._changed.wait_for(lambda: self._waiting[kind] or self._in_hand != kind)
            container = self._first_alive(kind)
            self._changed.notify_all()
        return container or self._make(kind, False)

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
                self._in_hand = None
                self._changed.notify_all()
                while (kind := self._missing()) is None and not self._closed:
                    self._changed.wait(_LOOK_S)
                if kind is None or self._closed:
                    return
                self._in_hand = kind
                unwanted = self._unwanted()
            for container in unwanted:
                container.close()
            self._make_one(kind)

    def _make_one(self, kind: Kind) -> None:
        try:
            container = self._make(kind, True)
        except SandboxError as error:
            logger.warning("no container could be made to wait: %s", error)
            with self._changed:
                self._in_hand = None
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._closed, _REST_S)
            return
        with self._changed:
            closed = self._closed or kind not in self._waiting
            if not closed:
                self._waiting[kind].append(container)
            self._changed.notify_all()
        if closed:
            container.close()

    def _missing(self) -> Kind | None:
        """A kind of which there are too few, the last wanted first; the dead are taken out."""
        for kind in reversed(self._waiting):
            for container in [one for one in self._waiting[kind] if not one.alive()]:
                self._waiting[kind].remove(container)
                container.close()
            if len(self._waiting[kind]) < self._size:
                return kind
        return None

    def _unwanted(self) -> list[Container]:
        """What waits in vain."""
        found: list[Container] = []
        while len(self._waiting) > _KINDS:
            found += self._waiting.popitem(last=False)[1]
        return found

    def close(self) -> None:
        """End all that wait, and the keeper."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._keeper.is_alive():
            self._keeper.join()
        for containers in self._waiting.values():
            for container in containers:
                container.close()
        self._waiting.clear()
