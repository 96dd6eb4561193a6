"""The Docker sandbox: starts containers, keeps some waiting, and finds out what they are kept from."""

from __future__ import annotations

import os
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder import codec
from autograder.contract import Lane, Language
from autograder.errors import ContractError, SandboxError
from autograder.sandbox import Promise, Purpose, RunnerLimits, Side
from autograder.sandbox.docker import inside
from autograder.sandbox.docker.config import DockerConfig, load_config
from autograder.sandbox.docker.container import Container, Making
from autograder.sandbox.docker.cores import ANY, Cores, by_the_machine, numbers
from autograder.sandbox.docker.engine import Engine
from autograder.sandbox.docker.pool import Pool
from autograder.sandbox.docker.promises import kept
from autograder.sandbox.docker.runner import DockerRunner
from autograder.sandbox.docker.settings import TOOLCHAIN, Kind
from autograder.sandbox.docker.sweep import owner, sweep

_MEMINFO = Path("/proc/meminfo")
_WARM_S = 120.0
_SAY_S = 10.0
_TRIAL = RunnerLimits(memory_bytes=64 * 2**20, processes=8, output_bytes=2**16, tmp_bytes=2**20)


def left_bytes(meminfo: Path = _MEMINFO) -> int:
    """The machine's memory that could be had without swapping, by the kernel's estimate; none where it does not say."""
    lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
    return int(lines.get("MemAvailable", "0 kB").split()[0]) * 1024


class DockerSandbox:
    """Starts each runner in a container of its own.

    Args:
        config: what the node's owner decided; read from the environment if it is not given.
        without: promises that are not kept; tests switch one off to show what it stops.
        changes: of Docker's `HostConfig`; tests take a defence away.
    """

    def __init__(
        self,
        config: DockerConfig | None = None,
        *,
        without: frozenset[Promise] = frozenset(),
        changes: dict[str, Any] | None = None,
    ) -> None:
        self._engine = Engine()
        self.config = self._placed(config or load_config())
        self._without = without
        self._runners: list[DockerRunner] = []
        # Who starts runners may be several threads of one grading.
        self._starting = threading.Lock()
        image = self._engine.image(self.config.image)
        self._making = Making(self._engine, image, self.config, owner(), without, changes or {})
        sweep(self._engine, self.config.folder)
        self._pool = Pool(self._warm, self.config.pool)
        self.facts = {
            "container image": image.id,
            "container toolchain": image.labels.get(TOOLCHAIN, "host"),
            "docker": self._engine.version(),
            "cores": _told(self.config.cores),
        }
        try:
            self.promises = self._promises() - without
        except BaseException:
            self.close()
            raise

    def _placed(self, config: DockerConfig) -> DockerConfig:
        """Keep this process, which is the judge's, on its cores, and say where everybody else is kept."""
        if config.cores == ANY and self._engine.keeps_to_cores():
            config = replace(config, cores=by_the_machine())
        if config.cores.judge:
            try:
                os.sched_setaffinity(0, numbers(config.cores.judge))
            except OSError as error:
                raise SandboxError(f"the judge cannot be kept on cores {config.cores.judge}: {error}") from None
        return config

    def start(
        self,
        limits: RunnerLimits,
        language: Language,
        lane: Lane = Lane.cpu,
        *,
        side: Side = Side.submission,
        purpose: Purpose = Purpose.call,
    ) -> DockerRunner:
        """Start a runner in a container that has its toolchain imported already, if one waits.

        Raises:
            SandboxError: it could not be started.
        """
        runner = DockerRunner(self._pool.take(_kind(limits, language, lane, purpose)), side, self._without)
        with self._starting:
            self._runners = [other for other in self._runners if not other.closed]
            self._runners.append(runner)
        return runner

    def prewarm(
        self, limits: RunnerLimits, language: Language, lane: Lane = Lane.cpu, *, purpose: Purpose = Purpose.call
    ) -> None:
        """Have containers like this made, of those that wait."""
        self._pool.prewarm(_kind(limits, language, lane, purpose))

    def warm_count(
        self, limits: RunnerLimits, language: Language, lane: Lane = Lane.cpu, *, purpose: Purpose = Purpose.call
    ) -> int:
        """How many containers like this wait, and could all take what they may of the memory that is left."""
        return min(self._pool.warm_count(_kind(limits, language, lane, purpose)), left_bytes() // limits.memory_bytes)

    def pause_background_work(self) -> AbstractContextManager[None]:
        """No container is begun that nobody waits for."""
        return self._pool.pause_background_work()

    def waiting(self) -> list[Container]:
        """Containers that wait for a submission."""
        return self._pool.waiting()

    def _warm(self, kind: Kind, background: bool) -> Container:
        container = Container(self._making, kind, background=background)
        try:
            container.warm(time.monotonic() + _WARM_S)
        except BaseException:
            container.close()
            raise
        return container

    def _promises(self) -> frozenset[Promise]:
        """What is kept, by what a runner of ours sees from inside and what its control groups say."""
        kind = Kind(inside.TRIAL, Lane.cpu, Purpose.call, _TRIAL)
        runner = DockerRunner(self._warm(kind, False), Side.submission, self._without)
        try:
            runner.channel.settimeout(_SAY_S)
            view = codec.loads(inside.View, runner.channel.recv(1 << 16))
            return kept(view, runner.container, filtered=self._engine.filters_calls())
        except (OSError, ContractError) as error:
            raise SandboxError(f"a container could not be tried: {error} It printed: {runner.log()}") from None
        finally:
            runner.close()

    def close(self) -> None:
        """End everything it started."""
        self._pool.close()
        for runner in self._runners:
            runner.close()
        self._runners.clear()
        self._engine.close()


def _kind(limits: RunnerLimits, language: Language, lane: Lane, purpose: Purpose) -> Kind:
    """Only who makes calls has the lane's device."""
    return Kind(language, purpose.lane(lane), purpose, limits)


def _told(cores: Cores) -> str:
    """Who has which, in words."""
    said = {"judge": cores.judge, "submission": cores.submission, "reference": cores.reference, "waiting": cores.warm}
    return "; ".join(f"{who} {which or 'any'}" for who, which in said.items())
