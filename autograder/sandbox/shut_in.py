"""The way from the zygote to a runner, walked before a byte of the student's is read.

    zygote ── supervisor ── init ── runner

The *supervisor* is ours: it adopts orphans, tells the judge how the runner ended, and cleans up when the judge has let
go of it or is gone. *init* is ours too: the first process of the runner's namespaces, whose end is the end of all of
them. The *runner* gives up every right and then loads the submission.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from autograder import codec
from autograder.sandbox import kernel, removal, tree
from autograder.sandbox.plan import Plan, Report

NOFILE = 256


def supervise(plan: Plan, channel: int, log: int, status: socket.socket, serve: Callable[[socket.socket], None]) -> NoReturn:
    """Be the supervisor: start init below, wait for its end, wait for the judge, clean up; never returns."""
    try:
        _die_with_parent(signal.SIGTERM)
        signal.signal(signal.SIGTERM, lambda *_: _end(plan, status))
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        init = _fork(lambda: _be_init(plan, channel, log, status, serve))
        os.close(channel)
        os.close(log)
        _tell(status, Report("started", pid=init), os.pidfd_open(init))
        _, waited = os.waitpid(init, 0)
        _tell(status, _ended(waited))
        status.recv(1)
    except OSError as error:
        _tell(status, Report("error", message=str(error)))
    finally:
        _end(plan, status)


def _end(plan: Plan, status: socket.socket) -> NoReturn:
    """Nothing of the runner outlives this."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(OSError):
        tree.kill(os.getpid())
        removal.remove(plan.folder)
        status.close()
    os._exit(0)


def _be_init(plan: Plan, channel: int, log: int, status: socket.socket, serve: Callable[[socket.socket], None]) -> None:
    _die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    runner = _fork(lambda: _be_runner(plan, channel, log, serve))
    os.close(channel)
    os.close(log)
    while True:
        pid, waited = os.waitpid(-1, 0)
        if pid == runner:
            break
    tree.kill(os.getpid())
    _tell(status, _ended(waited))


def _be_runner(plan: Plan, channel: int, log: int, serve: Callable[[socket.socket], None]) -> None:
    os.setsid()
    _place_descriptors(channel, log)
    _limit(plan)
    _become(plan)
    os.chdir(plan.folder)
    os.environ.update(HOME=plan.folder, TMPDIR=plan.folder)
    serve(socket.socket(fileno=3))


def _place_descriptors(channel: int, log: int) -> None:
    """0 is empty, 1 and 2 are the log, 3 is the channel; there is no other descriptor."""
    null = os.open("/dev/null", os.O_RDONLY)
    high = [os.dup(descriptor) for descriptor in (null, log, log, channel)]
    for place, descriptor in enumerate(high):
        os.dup2(descriptor, place, inheritable=place < 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))


def _limit(plan: Plan) -> None:
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, NOFILE),
        (resource.RLIMIT_FSIZE, plan.file_bytes),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(what, (most, most))


def _become(plan: Plan) -> None:
    if plan.uid is not None:
        os.setgroups([])
        os.setresgid(plan.uid, plan.uid, plan.uid)
        resource.setrlimit(resource.RLIMIT_NPROC, (plan.processes, plan.processes))
        os.setresuid(plan.uid, plan.uid, plan.uid)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)


def _die_with_parent(number: signal.Signals) -> None:
    parent = os.getppid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def _fork(body: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        body()
        os._exit(0)
    finally:
        os._exit(120)


def _ended(waited: int) -> Report:
    if os.WIFSIGNALED(waited):
        return Report("ended", signal=os.WTERMSIG(waited))
    return Report("ended", code=os.WEXITSTATUS(waited))


def _tell(status: socket.socket, report: Report, *descriptors: int) -> None:
    with suppress(OSError):
        socket.send_fds(status, [codec.dumps(report).encode()], list(descriptors))
    for descriptor in descriptors:
        os.close(descriptor)
