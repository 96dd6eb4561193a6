"""What is broken, one function for each kind: it begins, waits, ends what it began, and says what it hit."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import redis

from broker.app import RESULTS, grade_queue, said_queue
from tests.chaos.clocks import set_clock
from tests.chaos.plan import Fault
from tests.chaos.stage import Stage
from tests.chaos.supervisor import Program, send

T = TypeVar("T")
FAR_S = 3600.0
LONGEST_AWAY_S = 4.0
Held = tuple[float, bytes, bytes]
"""When a message goes back, to which queue, and the message."""
DELAY_S = 0.15
PATIENCE_S = 20.0
"""How long a fault waits for a process that it can hit: runners come and go."""


@dataclass(frozen=True)
class Injected:
    """A fault that came; `skipped` says why it could not.

    Attributes:
        began_s, ended_s: from the beginning of the run.
        began_at, ended_at: seconds since 1970.
    """

    kind: str
    what: str
    began_at: float
    ended_at: float
    skipped: str = ""


Break = Callable[[Stage, Fault], str]


class SkippedError(Exception):
    """There is nothing now that this could hit."""


def _pick(fault: Fault, among: Sequence[T]) -> T:
    if not among:
        raise SkippedError("there was none at that moment")
    return among[min(int(fault.pick * len(among)), len(among) - 1)]


def _signal(stage: Stage, fault: Fault, targets: Callable[[Program], Sequence[int]], role: str) -> str:
    """Send what the kind's first half says to one of the processes that `targets` finds below programs of a role."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not (found := [(program, pid) for program in stage.supervisor.of(role) for pid in targets(program)]):
        if time.monotonic() > give_up_at:
            raise SkippedError(f"there was none for {PATIENCE_S:g} s")
        time.sleep(0.05)
    program, pid = _pick(fault, found)
    if fault.kind.startswith("kill"):
        send(pid, signal.SIGKILL)
        return program.name
    send(pid, signal.SIGSTOP)
    time.sleep(fault.seconds)
    send(pid, signal.SIGCONT)
    return program.name


def _of_role(role: str) -> Break:
    return lambda stage, fault: _signal(stage, fault, lambda program: [program.pid] if program.pid else [], role)


def _judge(stage: Stage, fault: Fault) -> str:
    return _signal(stage, fault, lambda program: [judge] if (judge := program.judge()) else [], "worker")


def _runner(stage: Stage, fault: Fault) -> str:
    return _signal(stage, fault, lambda program: program.runners() if program.real else [], "worker")


def _flush(stage: Stage, _fault: Fault) -> str:
    with stage.redis.client() as client:
        client.flushall()
    return "every message"


def _redis(number: signal.Signals) -> Break:
    def restart(stage: Stage, fault: Fault) -> str:
        stage.redis.restart(number, min(fault.seconds, LONGEST_AWAY_S))
        return number.name

    return restart


def _postgres(mode: str) -> Break:
    def restart(stage: Stage, fault: Fault) -> str:
        stage.postgres.restart(mode, min(fault.seconds, LONGEST_AWAY_S))
        return mode

    return restart


def _cut(stage: Stage, fault: Fault) -> str:
    route = _pick(fault, stage.routes.all())
    return f"{route.name} ({stage.proxy.cut(route)})"


def _refuse(stage: Stage, fault: Fault) -> str:
    """Throw everybody out, and let nobody in for a while."""
    route = _pick(fault, stage.routes.all())
    stage.proxy.refuse(route, refuses=True)
    stage.proxy.cut(route)
    time.sleep(fault.seconds)
    stage.proxy.refuse(route, refuses=False)
    return route.name


def _half_open(stage: Stage, fault: Fault) -> str:
    route = _pick(fault, stage.routes.all())
    stage.proxy.hang(route, hangs=True)
    time.sleep(fault.seconds)
    stage.proxy.hang(route, hangs=False)
    if fault.pick * 100 % 2 < 1:
        # What was said into the void is answered by a reset; the other half of the time it arrives late.
        stage.proxy.cut(route)
    return route.name


def _delay(stage: Stage, fault: Fault) -> str:
    route = _pick(fault, stage.routes.all())
    stage.proxy.delay(route, DELAY_S)
    time.sleep(fault.seconds)
    stage.proxy.delay(route, 0.0)
    return route.name


def _disk(stage: Stage, fault: Fault) -> str:
    program = _pick(fault, [program for program in stage.supervisor.programs if program.small_disk])
    try:
        with program.filling.open("wb") as file:
            while True:
                file.write(bytes(2**16))
                file.flush()
    except OSError:
        time.sleep(fault.seconds)
    finally:
        program.filling.unlink(missing_ok=True)
    return program.name


def _clock(ahead_s: float) -> Break:
    def jump(stage: Stage, fault: Fault) -> str:
        program = _pick(fault, [program for program in stage.supervisor.programs if program.clock is not None])
        assert program.clock is not None
        # A small step is as bad as a large one, in another way.
        by_s = ahead_s if fault.pick * 100 % 2 < 1 else ahead_s / 60
        set_clock(program.clock, by_s)
        time.sleep(fault.seconds)
        set_clock(program.clock, 0)
        return f"{program.name} by {by_s:+.0f} s"

    return jump


class _Meddler:
    """Takes messages out of two queues, beside those who consume them, and puts each back otherwise, once."""

    def __init__(self, client: redis.Redis, queues: Sequence[str], verb: str, chance: random.Random) -> None:
        self._client = client
        self._queues = list(queues)
        self._verb = verb
        self._chance = chance
        self._held: list[Held] = []
        self._met: set[bytes] = set()

    def run(self, seconds: float) -> str:
        """Do it for a while; says what was met."""
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                if (item := self._client.brpop(self._queues, timeout=1)) is not None:
                    self._meet(*item)
                self._put_back(time.monotonic())
            self._put_back(float("inf"))
        except redis.RedisError:
            return f"{len(self._met)}, until Redis went away"
        return f"{len(self._met)} of {' and '.join(self._queues)}"

    def _meet(self, queue: bytes, message: bytes) -> None:
        now = time.monotonic()
        if message in self._met:
            # One of those that were put back: it goes to somebody else this time.
            self._client.lpush(queue, message)
            time.sleep(0.02)
            return
        self._met.add(message)
        if self._verb == "duplicate":
            self._client.lpush(queue, *[message] * self._chance.randint(2, 4))
        elif self._verb == "delay":
            self._held.append((now + self._chance.uniform(0.5, 8), queue, message))
        elif self._verb == "reorder":
            self._held.append((now + 0.3, queue, message))

    def _put_back(self, now: float) -> None:
        due = [item for item in self._held if item[0] <= now]
        self._held = [item for item in self._held if item[0] > now]
        self._chance.shuffle(due)
        for _, queue, message in due:
            self._client.lpush(queue, message)


def _messages(stage: Stage, fault: Fault) -> str:
    node = _pick(fault, stage.supervisor.of("worker")).name
    queues = [RESULTS, said_queue(node), grade_queue(node)]
    with stage.redis.client() as client:
        return _Meddler(client, queues, fault.kind.partition(".")[2], random.Random(fault.pick)).run(fault.seconds)


ROLES = ("web", "dispatcher", "recorder", "worker")
KINDS: dict[str, Break] = {
    **{f"{verb}.{role}": _of_role(role) for verb in ("kill", "stop") for role in ROLES},
    **{f"{verb}.judge": _judge for verb in ("kill", "stop")},
    **{f"{verb}.runner": _runner for verb in ("kill", "stop")},
    "redis.flush": _flush,
    "redis.restart": _redis(signal.SIGTERM),
    "redis.kill": _redis(signal.SIGKILL),
    "postgres.fast": _postgres("fast"),
    "postgres.immediate": _postgres("immediate"),
    "net.cut": _cut,
    "net.refuse": _refuse,
    "net.half_open": _half_open,
    "net.delay": _delay,
    "disk.full": _disk,
    "messages.duplicate": _messages,
    "messages.delay": _messages,
    "messages.reorder": _messages,
    "messages.drop": _messages,
    "clock.forward": _clock(FAR_S),
    "clock.back": _clock(-FAR_S),
}  # fmt: skip
_ALONE = ("redis", "postgres")
"""Kinds that must not come while another of theirs is under way."""


class Injector:
    """Lets the faults of a plan come, each in a thread of its own."""

    def __init__(self, stage: Stage, faults: Sequence[Fault]) -> None:
        self._stage = stage
        self._faults = faults
        self._locks = {name: threading.Lock() for name in _ALONE}
        self._missing = stage.missing
        self.injected: list[Injected] = []

    def run(self) -> None:
        """Inject everything; returns when the last one has ended."""
        began = time.monotonic()
        with ThreadPoolExecutor(len(self._faults) or 1, thread_name_prefix="fault") as pool:
            futures = [pool.submit(self._inject, fault, began) for fault in self._faults]
            for future in futures:
                future.result()

    def _inject(self, fault: Fault, began: float) -> None:
        time.sleep(max(0.0, began + fault.at_s - time.monotonic()))
        lock = self._locks.get(fault.kind.partition(".")[0], threading.Lock())
        with lock:
            at = time.time()
            what, skipped = "", self._missing.get(fault.kind, "")
            if not skipped:
                try:
                    what = KINDS[fault.kind](self._stage, fault)
                except SkippedError as error:
                    skipped = str(error)
            self.injected.append(Injected(fault.kind, what, at, time.time(), skipped))
