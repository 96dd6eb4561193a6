"""The daemon: the one module that imports the `docker` package, and only when it is first spoken to.

Everything that Docker refuses is a `SandboxError` of ours. Each thread has a connection of its own, or takes over that
of one that has ended: there are never more than there were threads at the same time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from autograder.errors import SandboxError

_TIMEOUT_S = 60
_NOT_FOUND, _CONFLICT = 404, 409
_ENDED_BY_ITSELF = "is not running"
_TRIES, _AGAIN_S = 10, 0.02


@dataclass(frozen=True)
class Image:
    """What a runner's file system is made from, pinned by its id.

    Attributes:
        labels: `org.kernel-ladder.toolchain` says whether the toolchain is in it (`image`) or is this machine's
            (`host`), `org.kernel-ladder.python` where its Python is.
    """

    id: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """A container as Docker lists it."""

    id: str
    labels: dict[str, str]


class Engine:
    """The daemon that `DOCKER_HOST` names, or this machine's."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._clients: dict[threading.Thread, Any] = {}
        self._lock = threading.Lock()

    @property
    def _api(self) -> Any:
        client = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = self._left_over() or self._new()
            with self._lock:
                self._clients[threading.current_thread()] = client
        return client

    def _left_over(self) -> Any:
        with self._lock:
            ended = next((thread for thread in self._clients if not thread.is_alive()), None)
            return self._clients.pop(ended) if ended is not None else None

    def _new(self) -> Any:
        with _ours("reach Docker"):
            import docker  # noqa: PLC0415

            return docker.from_env(timeout=_TIMEOUT_S).api

    def version(self) -> str:
        """The daemon's version."""
        with _ours("ask Docker's version"):
            return str(self._api.version()["Version"])

    def filters_calls(self) -> bool:
        """Whether a container gets a system-call filter unless it asks for none."""
        with _ours("ask Docker about itself"):
            options = self._api.info().get("SecurityOptions") or []
        return any(option.startswith("name=seccomp") and "unconfined" not in option for option in options)

    def keeps_to_cores(self) -> bool:
        """Whether a container can be kept on some of the cores."""
        with _ours("ask Docker about itself"):
            return bool(self._api.info().get("CPUSet"))

    def image(self, name: str) -> Image:
        """The image of that name, digest or id."""
        with _ours(f"find the image {name}"):
            found = self._api.inspect_image(name)
        return Image(str(found["Id"]), dict((found.get("Config") or {}).get("Labels") or {}))

    def create(self, name: str, settings: dict[str, Any]) -> str:
        """Make a container; its id."""
        with _ours("make a container"):
            return str(self._api.create_container_from_config(settings, name)["Id"])

    def start(self, container: str) -> int:
        """Start it; its first process's id on this machine, 0 if that is over already."""
        with _ours("start a container"):
            self._api.start(container)
            return int(self._api.inspect_container(container)["State"]["Pid"])

    def update(self, container: str, **limits: Any) -> None:
        """Change limits of a container that runs."""
        with _ours("change a container's limits"):
            self._api.update_container(container, **limits)

    def state(self, container: str) -> dict[str, Any]:
        """How it is, or how it ended; nothing if it is gone."""
        found: list[dict[str, Any]] = []
        with _ours("look at a container", passing=(_NOT_FOUND,)):
            found.append(self._api.inspect_container(container)["State"])
        return found[0] if found else {}

    def printed(self, container: str) -> str:
        """The end of what its first process has printed."""
        found: list[bytes] = []
        with _ours("read a container's output", passing=(_NOT_FOUND,)):
            found.append(self._api.logs(container, tail=20))
        return b"".join(found).decode("utf-8", "replace")

    def remove(self, container: str) -> None:
        """Kill it if it runs, and remove it; that it is gone, or going, is well.

        One that ends by itself at that very moment could neither be killed nor was it over yet: Docker wants to be
        asked again.
        """
        for _ in range(_TRIES - 1):
            try:
                self._remove(container)
            except SandboxError as error:
                if _ENDED_BY_ITSELF not in str(error):
                    raise
                time.sleep(_AGAIN_S)
            else:
                return
        self._remove(container)

    def _remove(self, container: str) -> None:
        with _ours("remove a container", passing=(_NOT_FOUND, _CONFLICT)):
            self._api.remove_container(container, v=True, force=True)

    def labelled(self, label: str) -> list[Found]:
        """All containers with that label, whatever their state."""
        with _ours("list containers"):
            return [
                Found(str(entry["Id"]), dict(entry["Labels"]))
                for entry in self._api.containers(all=True, filters={"label": label})
            ]

    def close(self) -> None:
        """Hang up."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        self._local = threading.local()


@contextmanager
def _ours(what: str, passing: tuple[int, ...] = ()) -> Iterator[None]:
    """Whatever goes wrong here is ours; statuses in `passing` are passed over."""
    try:
        from docker import errors  # noqa: PLC0415
        from requests import RequestException  # noqa: PLC0415
    except ImportError:
        raise SandboxError("the package docker is not installed (pip install 'kernel-ladder[node]')") from None
    try:
        yield
    except errors.APIError as error:
        if error.status_code not in passing:
            raise SandboxError(f"could not {what}: {error.explanation or error}") from None
    except (errors.DockerException, RequestException) as error:
        raise SandboxError(f"could not {what}: {error}") from None
