"""The first process of a container: `python -m autograder.runner contained SOCKET LANGUAGE LANE PURPOSE [WITHOUT …]`.

Trusted, without secrets. It connects to the judge, imports the toolchain and waits, perhaps for long; then the judge
sends the runner's end of its channel and the pipe for its output, and it forks the one runner of this container. From
then on it buries orphans, says how the runner ended, and ends when the judge lets go of it: that ends the container,
which is the end of everything in it.

`trial` instead of a language: the runner says what it sees from inside, and no toolchain is needed.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
from contextlib import suppress
from typing import NoReturn

from autograder.contract import Lane, Language
from autograder.sandbox import Promise, Purpose, kernel, seccomp, shut_in
from autograder.sandbox.docker import inside
from autograder.sandbox.namespaces import TMP
from autograder.sandbox.plan import Report

_DESCRIPTORS = 2
_PACKET = 64


def main(path: str, language: str, lane: Lane, purpose: Purpose, without: tuple[Promise, ...] = ()) -> NoReturn:
    """Be the first process until the judge hangs up.

    Args:
        path: of the judge's socket.
        without: promises that are not to be kept. Tests switch one off to show what it stops.
    """
    # The first process of a namespace gets only those signals from inside that it has a handler for: none.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line.connect(path)
    serve = inside.serve if language == inside.TRIAL else _warmed(purpose, Language(language), lane)
    gc.collect()
    gc.freeze()
    if Promise.syscall_filter not in without:
        _filter_calls(lane, purpose, network=Promise.no_network in without)
    shut_in.tell(line, Report("warm"))
    lent, descriptors, _, _ = socket.recv_fds(line, _PACKET, _DESCRIPTORS)
    if not lent:
        os._exit(0)
    channel, log = descriptors
    runner = shut_in.fork(lambda: _be_runner(line, channel, log, serve))
    os.close(channel)
    os.close(log)
    threading.Thread(target=_end_with, args=(line,), daemon=True).start()
    waited = shut_in.wait(runner)
    _end_what_it_started()
    shut_in.tell(line, shut_in.ended(waited))
    while True:
        signal.pause()


def _warmed(purpose: Purpose, language: Language, lane: Lane) -> shut_in.Serve:
    # A trial needs no toolchain.
    from autograder.runner import purposes  # noqa: PLC0415

    return purposes.warmed(purpose, language, lane)


def _filter_calls(lane: Lane, purpose: Purpose, *, network: bool) -> None:
    """On top of the container's own filter, and for this process too: nothing in here has less of it."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    profiler = purpose is Purpose.profile
    seccomp.install(network=network, signals_to=None, gpu=lane is not Lane.cpu, profiler=profiler)


def _end_with(line: socket.socket) -> None:
    """Wait until the judge has hung up, or is gone."""
    with suppress(OSError):
        line.recv(1)
    os._exit(0)


def _end_what_it_started() -> None:
    """Nothing outlives the runner."""
    if os.getpid() != 1:
        # Not in a namespace of its own, where this would be everybody: a test's. The judge ends the control group.
        return
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _be_runner(line: socket.socket, channel: int, log: int, serve: shut_in.Serve) -> None:
    os.setsid()
    shut_in.place_descriptors(channel, log, line.detach()).close()
    # Its own file for that belongs to root while it is not dumpable.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    shut_in.go_first()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    os.chdir(TMP)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    serve(socket.socket(fileno=shut_in.CHANNEL))
