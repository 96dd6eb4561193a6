"""The zygote: trusted, without secrets, imports the toolchain once and forks a runner per request.

It reads plans from the judge's socket (descriptors with them: the runner's channel, the pipe for its output, the
supervisor's line to the judge), runs no student code, and ends with everything below it when the judge goes away.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
from contextlib import suppress

from autograder import codec
from autograder.contract import Lane, Language
from autograder.runner import purposes
from autograder.sandbox import Purpose, kernel, shut_in, tree
from autograder.sandbox.plan import Plan

MAX_REQUEST = 64 * 1024
_DESCRIPTORS = 3
_LOOK_S = 1.0


def main(language: Language, lane: Lane, control: socket.socket, purpose: Purpose = Purpose.call) -> None:
    """Serve until the judge closes `control` or dies."""
    parent = os.getppid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    serve = purposes.warmed(purpose, language, lane)
    gc.collect()
    gc.freeze()
    looked = select.poll()
    looked.register(control, select.POLLIN)
    while os.getppid() == parent:
        readable = looked.poll(1000 * _LOOK_S)
        _reap()
        if readable and not _serve(control, serve):
            break
    _end()


def _serve(control: socket.socket, serve: purposes.Serve) -> bool:
    """Fork one runner; whether there may be more."""
    request, descriptors, _, _ = socket.recv_fds(control, MAX_REQUEST, _DESCRIPTORS)
    if not request:
        return False
    channel, log, status = descriptors
    plan = codec.loads(Plan, request)
    pid = os.fork()
    if pid == 0:
        control.close()
        shut_in.supervise(plan, channel, log, socket.socket(fileno=status), serve)
    for descriptor in descriptors:
        os.close(descriptor)
    return True


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end() -> None:
    """Have every supervisor end its runner and clean up, and wait for them."""
    for pid in tree.children(os.getpid()):
        tree.send(pid, signal.SIGTERM)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    os._exit(0)
