"""The judge's side of one runner: load a source, make calls, wait with a deadline, believe nothing.

The runner is frozen whenever the judge is not waiting for it. Nothing that it says is worth more than a wake-up, a log
or a claim; what breaks the protocol is a verdict about the submission, never an error of ours.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, TypeVar

from autograder.assignment import Limits
from autograder.contract import Launch, Verdict
from autograder.errors import ContractError, NotStoppedError, SandboxError
from autograder.judge.defences import Defences
from autograder.judge.protocol import memfd
from autograder.judge.protocol.batch_buffer import BatchMemory
from autograder.judge.protocol.buffers import SharedTensor, Snapshot
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import (
    Failure,
    clean,
    from_exit,
    from_raised,
    not_stopped,
    out_of_time,
    out_of_total,
    violation,
)
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.own_time import BACKSTOP, Wait
from autograder.judge.protocol.shared_words import Nonces, SharedWord
from autograder.protocol import (
    MAX_PACKET,
    ORDERS,
    RUNNER_SAYS,
    Arm,
    Armed,
    Call,
    FromJudge,
    FromRunner,
    Load,
    Loaded,
    Pack,
    Packed,
    Raised,
    Ran,
    Ready,
    Released,
    Returned,
    Reveal,
)
from autograder.sandbox import Runner
from autograder.wire_format import decode, encode

MAX_INLINE_CHARS = MAX_PACKET // 16
"""Characters of a source that fit a packet even with 12 bytes each; a longer one travels as a descriptor."""

MAX_NAMES = 64
"""How many launches, operations or versions of a runner's are kept."""

MAX_NAME = 200
"""How many characters of each of their names."""

PACK_BYTES = 64 * 2**20
"""Of what compilers made, at most."""

COPIES = 2
"""Of a batch's outputs before it, of which the shortest counts."""

Said = TypeVar("Said")
Given = ParamSpec("Given")
Value = TypeVar("Value")

_READY_S = 60.0
"""By the wall's clock: a runner that does not start is an error of ours, and no verdict."""
_SHOWN = 1000
"""Characters of what a runner printed that stand in an error of ours."""
_SEND_S = 5.0
"""By the wall's clock: there is room for a packet at once, however busy the machine is, unless nobody takes any."""
_LOOK_S = 0.02
"""How often the limits that are watched rather than set are looked at."""
_AWAKE_S = 0.0015
"""Between the thaw and t0 of a batch: it waits for the descriptors when the clock starts, like the null runner."""
_RELEASE_S = 5.0
_GONE_S = 5.0
"""How long a runner that has closed its channel may take to be gone, in its own time."""
_STOPPED_S = 5.0
"""How long one may take to be stopped, in its own time."""

_LONGER = 1.1
"""A wait that lasted so many times its limit is said to have used processor time, not to have taken so long."""

_ENDED = Failure(Verdict.runtime_error, "The judge ended the runner.")
"""What a thread is told whose runner another one has closed; it is nobody's result."""


@dataclass(frozen=True)
class CallReply:
    """A call that ended: what stood in memory then, and how long it took.

    Attributes:
        sealed_us: from the release to the complete snapshot, by the judge's clock.
        event_us, launches, operations, written, ran, busy_us, waited_for, counters: what the runner claims.
    """

    snapshots: tuple[Snapshot, ...]
    sealed_us: float
    event_us: float
    launches: tuple[Launch, ...]
    operations: dict[str, int]
    written: tuple[str, ...]
    ran: tuple[Ran, ...] = ()
    busy_us: float = 0.0
    waited_for: tuple[Ran, ...] = ()
    counters: dict[str, int] = field(default_factory=dict)


class Budget:
    """What is left of a submission's own running time; the judge's work does not count. Its runners share it.

    Attributes:
        total_s, left_s: in all, and now, in the submission's own time (`owntime`).
        backstop_s: what is left by the wall's clock.
    """

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self.left_s = total_s
        self.backstop_s = BACKSTOP * total_s
        self._lock = threading.Lock()

    def spend(self, seconds: float) -> None:
        """Take off what has passed."""
        with self._lock:
            self.left_s -= seconds
            self.backstop_s -= seconds

    def refund(self, seconds: float) -> None:
        """Put back what of it was not the submission's own."""
        with self._lock:
            self.left_s += seconds

    def ask_again(self) -> None:
        """The backstop begins anew: somebody is asked again."""
        with self._lock:
            self.backstop_s = BACKSTOP * self.total_s

    def refund_up_to(self, left_s: float) -> None:
        """Let so much be left, if less is."""
        with self._lock:
            self.left_s = max(self.left_s, left_s)


@dataclass(frozen=True)
class BatchReply:
    """A batch that ended.

    Attributes:
        snapshots: of the outputs, by call.
        sealed_us: from the release of all inputs to the complete snapshots of all outputs, by the judge's clock.
        copy_us: such snapshots of the same memory by themselves, right before, the shortest of `COPIES`; 0 of a batch
            that is not timed.
        event_us: what the runner claims for all calls together.
    """

    snapshots: tuple[tuple[Snapshot, ...], ...]
    sealed_us: float
    copy_us: float
    event_us: float


def _in_use(
    method: Callable[Concatenate[RunnerClient, Given], Value],
) -> Callable[Concatenate[RunnerClient, Given], Value]:
    """Whoever closes it meanwhile waits: numbers of descriptors that are in use must not become somebody else's."""

    @functools.wraps(method)
    def used(self: RunnerClient, /, *arguments: Given.args, **options: Given.kwargs) -> Value:
        with self._using:
            try:
                return method(self, *arguments, **options)
            finally:
                self._refund_waits()

    return used


class RunnerClient:
    """One runner and what is said with it; one thread at a time. Any may close it: whoever waits is told at once.

    Attributes:
        versions: of the toolchain, as the runner named them before it had seen a byte of the student's.
    """

    def __init__(
        self, runner: Runner, limits: Limits, budget: Budget, defences: Defences, device: Device = HOST
    ) -> None:
        self._runner = runner
        self._device = device
        self._limits = limits
        self._budget = budget
        self._defences = defences
        self._channel = runner.channel
        self._channel.settimeout(_SEND_S)
        self._poll = select.poll()
        self._poll.register(self._channel, select.POLLIN)
        self._nonces = Nonces(random=defences.nonce)
        self._judge_word = SharedWord(judge_writes=True)
        self._runner_word = SharedWord(judge_writes=False)
        self._source: str | None = None
        self._broken: Failure | None = None
        self._loaded = False
        self._owes_cache = False
        self._using = threading.RLock()
        self._closing = False
        self._unrefunded: list[Wait] = []
        self.versions: dict[str, str] = {}

    @_in_use
    def hello(self) -> None:
        """Wait until the toolchain is there; `SandboxError` if it is not."""
        answer = self._receive(Ready, 0, Wait(self._runner, _READY_S, backstop_s=_READY_S), "starting")
        if isinstance(answer, Ready):
            self.versions = {name: clean(version, MAX_NAME) for name, version in _named(answer.versions).items()}
        else:
            printed = self.log()[-_SHOWN:].strip()
            self.close()
            reason = answer.message if isinstance(answer, Failure) else "it took too long"
            raise SandboxError(f"a runner did not start: {reason} It printed: {printed or 'nothing'}")

    @property
    def orders(self) -> int:
        """In how many orders threads take turns, from call to call: several where g++ compiles for an emulator."""
        return ORDERS if "g++" in self.versions else 1

    @_in_use
    def load(self, load: Load, packs: Sequence[int] = ()) -> Failure | None:
        """Have the source executed; what went wrong, if anything.

        Args:
            packs: descriptors of what other runners of this source have packed; closed here.
        """
        if self._closing:
            memfd.close(packs)
            return _ENDED
        self._source = load.source
        descriptors = [-1, -1, *packs]
        try:
            message, own = self._with_source(dataclasses.replace(load, packs=len(packs)))
            descriptors = [*own, *packs]
            wait = self._wait(self._limits.import_s)
            sent = self._send(message, descriptors, "loading")
        finally:
            memfd.close(descriptors[2:])
        answer = sent or self._answer(Loaded, 0, wait, "loading")
        failed = answer if isinstance(answer, Failure) else self._limits_kept("loading")
        self._loaded = failed is None
        return failed

    def export_cache(self, patience_s: float) -> int | None:
        """Have what compilers made of the source packed; a descriptor of it, the caller's, if there is any in time.

        Not a word about it is believed, and nothing is held against whoever has none. Nor is anybody waited for who is
        at work still: another thread's, with a runner that is late.
        """
        if not self._using.acquire(blocking=False):
            return None
        try:
            if not self._loaded or self._broken or self._closing or patience_s <= 0:
                return None
            return self._export_cache(patience_s)
        finally:
            self._using.release()

    def _export_cache(self, patience_s: float) -> int | None:
        descriptor, packed = memfd.of_fixed_size("pack", PACK_BYTES), False
        try:
            # By the wall's clock: who is late has no pack, and nothing else comes of it.
            wait = Wait(self._runner, patience_s, backstop_s=patience_s)
            self._owes_cache = True
            answer = self._send(Pack(), [descriptor], "packing") or self._answer(Packed, 0, wait, "packing")
            packed = isinstance(answer, Packed)
            self._owes_cache = not packed
        finally:
            if not packed:
                os.close(descriptor)
        if packed:
            return descriptor
        # Who is late, or says something else, is no further than that: it may be the one that is called next.
        if self._broken is None and self._runner.poll() is None:
            self._stopped("packing")
        return None

    @_in_use
    def call(
        self,
        tensors: Sequence[SharedTensor],
        scalars: dict[str, int | float],
        *,
        function: str = "",
        record: bool = True,
        trace: bool = False,
        count: bool = False,
        cold: bool = True,
    ) -> CallReply | Failure:
        """Make one call: fill, seal, reveal, wait, freeze, copy.

        The interval begins when nothing of the filling is left to do, and ends when the outputs' copy is complete.
        Inputs are copied after it: what stands in them says nothing about the speed.

        Args:
            cold: with nothing in the caches, on a quiet device; a call whose time nobody reads needs neither.
        """
        if self._broken:
            return self._broken
        nonce = self._nonces.next()
        for tensor in tensors:
            tensor.fill()
            tensor.seal(size=self._defences.seals, writing=self._defences.private_inputs and not tensor.spec.writable)
        wait = self._wait(self._limits.call_s)
        self._prepare_device(cold=cold)
        message = Call(nonce, tuple(tensor.spec for tensor in tensors), scalars, record, trace, function, count)
        start = wait.begin()
        self._judge_word.write(nonce)
        failed = self._send(message, [tensor.descriptor for tensor in tensors], "the call")
        if not self._defences.reveal_at_t0:
            time.sleep(self._defences.early_reveal_s)
            start = wait.begin()
        answer = failed or self._answer(Returned, nonce, wait, "the call")
        if not isinstance(answer, Returned):
            return answer if isinstance(answer, Failure) else violation("The control channel was written to.")
        if not self._defences.snapshot:
            self._runner.thaw()
            time.sleep(self._defences.late_read_s)
        outputs = {id(tensor): tensor.snapshot() for tensor in tensors if tensor.spec.writable}
        self._device.synchronize()
        sealed_us = (time.monotonic() - start) * 1e6
        snapshots = tuple(outputs.get(id(tensor)) or tensor.snapshot() for tensor in tensors)
        # While it lets go of its memory it may write it again: what is believed was copied while it was frozen.
        finished = self._finished(answer, snapshots, sealed_us)
        if failed := self._limits_kept("the call"):
            return failed
        self._let_go(nonce)
        return finished

    @_in_use
    def batch(
        self,
        memory: BatchMemory,
        scalars: dict[str, int | float],
        *,
        cold: bool = True,
    ) -> BatchReply | Failure:
        """Make several calls as one exchange: fill, seal, arm, reveal, wait, copy, freeze.

        The runner is awake when the interval begins, and goes on while the copies are made: whatever it does then
        takes time that is counted.

        Args:
            memory: of all calls; what was drawn for each is revealed with its inputs.
            scalars: the same for all calls.
            cold: with nothing in the caches, on a quiet device; a batch whose time nobody reads needs neither.
        """
        if self._broken:
            return self._broken
        nonce = self._nonces.next()
        memory.fill()
        copy_us = self._copying(memory) if cold else 0.0
        arm = Arm(nonce, memory.calls, memory.specs, scalars, memory.calls_per_buffer, memory.function)
        failed = self._armed(arm, [buffer.memory.descriptor for buffer in memory.outputs])
        if failed is not None:
            return failed
        wait = self._wait(self._limits.call_s)
        self._prepare_device(cold=cold)
        reveal, descriptors = (
            encode(Reveal(nonce, memory.drawn)),
            [buffer.memory.descriptor for buffer in memory.inputs],
        )
        self._runner.thaw()
        time.sleep(_AWAKE_S)
        start = wait.begin()
        self._judge_word.write(nonce)
        try:
            socket.send_fds(self._channel, [reveal], descriptors)
        except OSError:
            return self._gone("a batch of calls")
        answer = self._awaited(Returned, nonce, wait, "a batch of calls", spin=True)
        if not isinstance(answer, Returned):
            failed = answer if isinstance(answer, Failure) else violation("The control channel was written to.")
            return self._stopped("a batch of calls") or failed
        memory.copy_outputs()
        self._device.synchronize()
        sealed_us = (time.monotonic() - start) * 1e6
        event_us = self._event_us()
        self._broken = self._released(nonce)
        failed = self._stopped("a batch of calls") or self._limits_kept("a batch of calls")
        return failed or BatchReply(memory.snapshots(), sealed_us, copy_us, event_us)

    def _copying(self, memory: BatchMemory) -> float:
        """How long the outputs' copies take before anybody has that memory: it differs with where memory lies.

        Not while the filling's work, or anybody's, is in the way; one that a submission sees to is, which is why no
        more is taken off for it than a null's copies take.
        """
        taken = []
        if self._defences.cold:
            self._device.wait_until_idle()
        for _ in range(COPIES):
            self._device.synchronize()
            start = time.monotonic()
            memory.copy_outputs()
            self._device.synchronize()
            taken.append((time.monotonic() - start) * 1e6)
        return min(taken)

    def _let_go(self, nonce: int) -> None:
        """Thaw the runner until a call's memory is free: what it frees later, it frees in a call that is timed.

        The call stands whatever becomes of it; a runner that breaks the protocol then has no further call.
        """
        self._runner.thaw()
        self._broken = self._released(nonce)
        if not (self._broken and self._broken.ended):
            self._stopped("letting go of memory")

    def _released(self, nonce: int) -> Failure | None:
        """Wait until the runner says that it has; it has had its answer in, so this is nobody's measured time."""
        # The runner goes on already: what it does before the first look is nobody's measured time either.
        wait = Wait(self._runner, _RELEASE_S)
        answer = self._receive(Released, nonce, wait, "letting go of memory")
        self._spend(wait)
        if answer is None:
            return self._late(wait, "letting go of memory")
        return answer if isinstance(answer, Failure) else None

    def _prepare_device(self, *, cold: bool) -> None:
        """Have nothing left to do, and if it is to be cold nothing in the caches."""
        if cold and self._defences.cold:
            self._device.flush_l2()
        self._device.synchronize()

    def _armed(self, arm: Arm, descriptors: list[int]) -> Failure | None:
        """Have the runner map the outputs."""
        wait = self._wait(self._limits.call_s)
        failed = self._send(arm, descriptors, "a batch of calls")
        answer = failed or self._answer(Armed, arm.nonce, wait, "a batch of calls")
        return answer if isinstance(answer, Failure) else None

    @_in_use
    def pin_core(self, turn: int) -> None:
        """Have the runner, which is stopped, go on on one of its cores after the other, by turn; on any for turn 0.

        Whoever closes it meanwhile waits for the sandbox.
        """
        if not self._closing:
            self._runner.pin_core(turn)

    @property
    def closed(self) -> bool:
        """Whether it was ended by the judge."""
        return self._closing

    def alive(self) -> bool:
        """Whether the runner is still there."""
        return self._runner.poll() is None

    def log(self) -> str:
        """What the runner has printed."""
        return self._runner.log()

    def close(self) -> None:
        """End the runner and let go of what was shared with it; may be called again."""
        self._closing = True
        with self._using:
            self._broken = self._broken or _ENDED
            try:
                self._runner.close()
            finally:
                self._judge_word.close()
                self._runner_word.close()

    def _with_source(self, load: Load) -> tuple[Load, list[int]]:
        """The message and its descriptors; a long source is one of them."""
        descriptors = [self._judge_word.descriptor, self._runner_word.descriptor]
        if len(load.source) + len(load.adapter) <= MAX_INLINE_CHARS:
            return load, descriptors
        data = load.source.encode()
        descriptor = memfd.of_bytes("source", data)
        return dataclasses.replace(load, source="", source_bytes=len(data)), [*descriptors, descriptor]

    def _send(self, message: FromJudge, descriptors: list[int], during: str) -> Failure | None:
        """Say something with descriptors, and let the runner go."""
        try:
            socket.send_fds(self._channel, [encode(message)], descriptors)
        except OSError:
            return self._gone(during)
        self._runner.thaw()
        return None

    def _answer(self, wanted: type[FromRunner], nonce: int, wait: Wait, during: str) -> FromRunner | Failure:
        """Wait for the answer to what was said, then stop the runner."""
        answer = self._awaited(wanted, nonce, wait, during)
        if isinstance(answer, Failure) and answer.ended:
            self._loaded = False
            return answer
        return self._stopped(during) or answer

    def _stopped(self, during: str) -> Failure | None:
        """Stop the runner, for which it has no more time than for its calls; one that goes on has no further call.

        It is no error of ours: whoever could make it one would be graded again for it.
        """
        start = time.monotonic()
        wait: Wait | None = None
        try:
            while not self._froze():
                # It has been a second: nobody is timed any more.
                wait = wait or Wait(self._runner, _STOPPED_S)
                if wait.is_over():
                    self._broken = not_stopped(during, starved=wait.own().own_s < _STOPPED_S)
                    return self._broken
        finally:
            self._budget.spend(time.monotonic() - start)
        return None

    def _froze(self) -> bool:
        """Whether the runner could be stopped, in the time that the sandbox takes for it."""
        try:
            self._runner.freeze()
        except NotStoppedError:
            return False
        return True

    def _wait(self, limit_s: float) -> Wait:
        """A wait for the runner, within its limit and the budget."""
        if not self._defences.deadlines:
            most_s = self._defences.off_deadline_s
            return Wait(self._runner, most_s, backstop_s=most_s)
        return Wait(self._runner, limit_s, left_s=self._budget.left_s, backstop_s=self._budget.backstop_s)

    def _awaited(
        self, wanted: type[FromRunner], nonce: int, wait: Wait, during: str, *, spin: bool = False
    ) -> FromRunner | Failure:
        """Wait for the answer to what was said."""
        answer = self._receive(wanted, nonce, wait, during, spin=spin)
        self._spend(wait)
        return self._late(wait, during) if answer is None else answer

    def _spend(self, wait: Wait) -> None:
        """Charge all that has passed; what was not the submission's own is put back when nobody is timed."""
        self._budget.spend(wait.end())
        self._unrefunded.append(wait)

    def _refund_waits(self) -> None:
        """Put back what others took. Of a short wait that is little, and not looked for."""
        waits, self._unrefunded = self._unrefunded, []
        for wait in waits:
            if wait.wall_s > _LOOK_S:
                self._budget.refund(wait.wall_s - wait.own().own_s)

    def _late(self, wait: Wait, during: str) -> Failure:
        """Out of time: the limit's, the budget's, or only the backstop's."""
        took = wait.own()
        starved = took.own_s < wait.limit_s
        if wait.is_cut(starved=starved):
            return out_of_total(self._budget.total_s, starved=starved)
        if starved:
            return out_of_time(during, wait.backstop_s, starved=True)
        used = took.wall_s > _LONGER * wait.limit_s and took.processor_s >= wait.limit_s
        return out_of_time(during, wait.limit_s, used=used)

    def _receive(
        self, wanted: type[FromRunner], nonce: int, wait: Wait, during: str, *, spin: bool = False
    ) -> FromRunner | Failure | None:
        """The awaited packet, what went wrong instead, or `None` out of time; `spin` looks instead of sleeping.

        What has been said by now is in time: the judge may be late itself.
        """
        looked = time.monotonic()
        while not self._closing:
            if not self._poll.poll(0 if spin else 1000 * min(wait.left_s or _LOOK_S, _LOOK_S)):
                if spin and time.monotonic() < looked + _LOOK_S:
                    continue
                if failed := self._limits_kept(during):
                    return failed
                if wait.is_over():
                    return None
                looked = time.monotonic()
                continue
            packet = self._packet(during)
            answer = packet if isinstance(packet, Failure) else self._understood(packet, wanted, nonce)
            if answer is not None or wait.is_over():
                return answer
        return _ENDED

    def _packet(self, during: str) -> bytes | Failure:
        """The packet that is there, or what has become of the runner if its channel is closed."""
        try:
            packet = self._channel.recv(MAX_PACKET + 1)
        except OSError:
            packet = b""
        return packet or self._gone(during)

    def _understood(self, packet: bytes, wanted: type[FromRunner], nonce: int) -> FromRunner | Failure | None:
        """What a packet means here; `None` for one that is passed over, which only happens in a test."""
        try:
            said = decode(packet, *RUNNER_SAYS)
        except ContractError:
            said = None
        if isinstance(said, Raised) and said.nonce == nonce:
            return from_raised(said, self._source, loading=wanted is Loaded)
        if isinstance(said, wanted) and self._is_over(said, nonce):
            return said
        if isinstance(said, Packed) and self._owes_cache:
            self._owes_cache = False  # Too late to be of use, and no offence.
            return None
        if not self._defences.packets:
            return None
        return violation("The control channel was written to by something other than the runner.")

    def _is_over(self, said: FromRunner | FromJudge, nonce: int) -> bool:
        """Whether the runner's own word agrees that the call is over."""
        if isinstance(said, Armed | Released):
            return self._nonces.answered(nonce, said.nonce)
        if not isinstance(said, Returned):
            return True
        return self._nonces.answered(nonce, said.nonce) and self._nonces.answered(nonce, self._runner_word.read()[0])

    def _gone(self, during: str) -> Failure:
        """The channel is closed: how did the runner end, or is it only hiding? Frozen it could not finish ending."""
        self._runner.thaw()
        wait = Wait(self._runner, _GONE_S)
        while (ending := self._runner.poll()) is None and not self._closing and not wait.is_over():
            time.sleep(_LOOK_S / 4)
        if ending is None and self._closing:
            return _ENDED
        if ending is None:
            failed = violation(f"The control channel was closed during {during}.")
            return dataclasses.replace(failed, starved=wait.own().own_s < _GONE_S)
        return from_exit(ending, during)

    def _limits_kept(self, during: str) -> Failure | None:
        """Have the sandbox look at the limits that it watches."""
        ending = self._runner.poll()
        return from_exit(ending, during) if ending is not None else None

    def _event_us(self) -> float:
        """What the runner's clock says: a nanosecond at least, as one that says 0 among others would void them all."""
        return max(self._runner_word.read()[1], 1) / 1e3

    def _finished(self, answer: Returned, snapshots: tuple[Snapshot, ...], sealed_us: float) -> CallReply:
        launches = tuple(
            Launch(clean(launch.kernel, MAX_NAME), launch.grid[:3], launch.calls)
            for launch in answer.launches[:MAX_NAMES]
        )
        operations = _named(answer.operations)
        return CallReply(
            snapshots,
            sealed_us,
            self._event_us(),
            launches,
            operations,
            answer.written[:MAX_NAMES],
            ran=_ran(answer.ran),
            busy_us=answer.busy_ns / 1e3,
            waited_for=_ran(answer.waited_for),
            counters=_named(answer.counters),
        )


def _ran(said: Sequence[Ran]) -> tuple[Ran, ...]:
    """The first of what a runner names, cut and without control characters."""
    return tuple(Ran(clean(one.name, MAX_NAME), one.calls, one.ns) for one in said[:MAX_NAMES])


def _named(said: Mapping[str, Said]) -> dict[str, Said]:
    """The first of a runner's names, cut and without control characters."""
    return {clean(name, MAX_NAME): value for name, value in list(said.items())[:MAX_NAMES]}
