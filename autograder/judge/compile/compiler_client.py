"""Questions to runners that compile or read, and their answers, which are taken for no more than claims."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from autograder.assignment import Assignment
from autograder.compile_checks.messages import Compile, Precompile, Read
from autograder.contract import GradeRequest
from autograder.errors import ContractError
from autograder.judge.protocol import memfd
from autograder.judge.protocol.failure import from_exit
from autograder.judge.protocol.own_time import Wait
from autograder.profiling.asking import Ask
from autograder.protocol import MAX_PACKET
from autograder.sandbox import Runner, RunnerLimits
from autograder.wire_format import decode, encode

LIMITS = RunnerLimits(memory_bytes=6 * 2**30, processes=256, output_bytes=2**20, tmp_bytes=512 * 2**20)
"""Of a runner that compiles, perhaps on all cores at once: triton and ptxas need more than most kernels do."""
SOMETHING_ELSE = "The compiler's process gave an unexpected answer."
_LOOK_S = 0.02

Said = TypeVar("Said")


class CompilerExitedError(Exception):
    """A runner did not say what it was asked for; the text says why, for the student."""


def arguments_of(assignment: Assignment) -> tuple[str, ...]:
    """The entry's, in order."""
    return tuple(argument.name for argument in assignment.arguments)


def source_of(request: GradeRequest) -> bytes:
    """As compilers get it: some editors begin a file with a byte order mark, which is no part of it."""
    return request.source.removeprefix("\ufeff").encode()


def ask_with_source(runner: Runner, request: GradeRequest, ask: Compile | Precompile, others: Iterable[int]) -> None:
    """Send a question whose first descriptor is the source.

    Raises:
        CompilerExitedError: the runner is gone.
    """
    text = memfd.of_bytes("source", source_of(request))
    try:
        send(runner, ask, [text, *others])
    finally:
        os.close(text)


def send(runner: Runner, ask: Ask | Compile | Precompile | Read, descriptors: list[int]) -> None:
    """Send a question.

    Raises:
        CompilerExitedError: the runner is gone.
    """
    try:
        socket.send_fds(runner.channel, [encode(ask)], descriptors)
    except OSError:
        raise CompilerExitedError("The compiler's process ended before it began.") from None


def packet_of(
    runner: Runner, wait: Wait, given_up: Callable[[], bool] = lambda: False, doing: str = "compiling"
) -> bytes:
    """The next packet of a runner's.

    Args:
        wait: the time that it has, perhaps for several packets.
        given_up: whether nobody wants it any more.
        doing: what it does, for the student.

    Raises:
        CompilerExitedError: there is none.
    """
    poll = select.poll()
    poll.register(runner.channel, select.POLLIN)
    while not (given_up() or wait.is_over()):
        if poll.poll(1000 * _LOOK_S):
            packet = runner.channel.recv(MAX_PACKET + 1)
            if packet:
                return packet
            # Whoever has the other end may send nothing, or hang up and stay, as often as it likes.
            time.sleep(_LOOK_S)
        if (ending := runner.poll()) is not None:
            raise CompilerExitedError(from_exit(ending, doing).message)
    raise CompilerExitedError(f"{doing.capitalize()} did not end within {wait.limit_s:.3g} s and was stopped.")


def understood(packet: bytes, *wanted: type[Said]) -> Said:
    """What a packet says.

    Raises:
        CompilerExitedError: it is none of what was wanted.
    """
    try:
        return decode(packet, *wanted)
    except ContractError:
        raise CompilerExitedError(SOMETHING_ELSE) from None
