"""The way from the zygote to a runner, walked before a byte of the student's is read.

    zygote ── supervisor ── init ── runner

The *supervisor* is ours and lives outside: it adopts orphans, tells the judge how the runner ended, and cleans up when
the judge has let go of it or is gone. *init* is ours too: the first process of the runner's namespaces, whose end is
the end of all of them. The *runner* gives up every right and then loads the submission.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from autograder import codec
from autograder.sandbox import Promise, cgroups, kernel, landlock, limits, namespaces, removal, seccomp, tree
from autograder.sandbox.plan import Namespaces, Plan, Report

Serve = Callable[[socket.socket], None]

_OURS = 2
"""Supervisor and init count among a namespace's processes."""
_FAILED = 120
CHANNEL, _STATUS = 3, 4
_SCORE = Path("/proc/self/oom_score_adj")


def supervise(plan: Plan, channel: int, log: int, status: socket.socket, serve: Serve) -> NoReturn:
    """Be the supervisor: start init below, wait for its end, wait for the judge, clean up; never returns.

    Args:
        channel, log: descriptors of the runner's end of its channel and of the pipe that takes its output.
        status: the line to the judge; it is told `Report`s, and hangs up when it is done with the runner.
        serve: what the runner does with its channel once it is shut in.
    """
    Supervisor(plan, status).run(channel, log, serve)


class Supervisor:
    """Ours, outside of the runner's namespaces and control groups."""

    def __init__(self, plan: Plan, status: socket.socket) -> None:
        self._plan = plan
        self._status = status
        self._init = 0

    def run(self, channel: int, log: int, serve: Serve) -> NoReturn:
        """Start init, wait for its end and for the judge, clean up."""
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, lambda *_: self._end())
            _die_with_parent(signal.SIGTERM)
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
            _prepare_namespaces(self._plan)
            self._init = fork(lambda: _be_init(self._plan, channel, log, self._status, serve))
            os.close(channel)
            os.close(log)
            tell(self._status, Report("started", pid=self._init), os.pidfd_open(self._init))
            _, waited = os.waitpid(self._init, 0)
            self._init = 0
            tell(self._status, ended(waited))
            self._status.recv(1)
        except OSError as error:
            tell(self._status, Report("error", message=str(error)))
        finally:
            self._end()

    def _end(self) -> NoReturn:
        """Nothing of the runner outlives this."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            if self._plan.keeps(Promise.whole_tree):
                self._kill()
                cgroups.end(self._plan.cgroups)
            removal.remove(self._plan.folder)
        finally:
            os._exit(0)

    def _kill(self) -> None:
        if self._init:
            tree.send(self._init, signal.SIGKILL)
        cgroups.kill(self._plan.cgroups)
        if not self._plan.pid_namespace:
            tree.kill(os.getpid())
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def _prepare_namespaces(plan: Plan) -> None:
    """What has to be done before init is forked: its process namespace is for this process's children."""
    if plan.features.namespaces is Namespaces.user and (plan.pid_namespace or plan.new_root):
        namespaces.become_user_namespace()
    if plan.pid_namespace:
        kernel.unshare(kernel.CLONE_NEWPID)


def _be_init(plan: Plan, channel: int, log: int, status: socket.socket, serve: Serve) -> None:
    with telling(status):
        _die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        cgroups.enter(plan.cgroups)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        _limit_data(plan)
        _enter_namespaces(plan)
        runner = fork(lambda: _be_runner(plan, channel, log, status, serve))
        os.close(channel)
        os.close(log)
    tell(status, ended(wait(runner)))
    if not plan.pid_namespace and plan.keeps(Promise.whole_tree):
        tree.kill(os.getpid())


def wait(runner: int) -> int:
    """Bury orphans until the runner has ended; how it did."""
    while True:
        pid, waited = os.waitpid(-1, 0)
        if pid == runner:
            return waited


def _enter_namespaces(plan: Plan) -> None:
    if plan.features.namespaces is Namespaces.none:
        return
    network = kernel.CLONE_NEWNET if plan.keeps(Promise.no_network) else 0
    files = kernel.CLONE_NEWNS if plan.new_root else 0
    kernel.unshare(kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP | network | files)
    socket.sethostname("runner")
    if plan.new_root:
        uid = os.getuid() if plan.uid is None else plan.uid
        namespaces.enter_new_root(plan.folder, plan.readable, plan.devices, uid, plan.tmp_bytes)


def _be_runner(plan: Plan, channel: int, log: int, status: socket.socket, serve: Serve) -> None:
    own = namespaces.TMP if plan.new_root else plan.folder
    line = place_descriptors(channel, log, status.detach())
    with telling(line):
        os.setsid()
        os.chdir(own)
        os.environ.update(HOME=own, TMPDIR=own)
        _forget_where_files_went()
        _limit(plan)
        _give_up_rights(plan, own)
    line.close()
    serve(socket.socket(fileno=CHANNEL))


def _forget_where_files_went() -> None:
    """A toolchain that made a temporary file while it was imported has settled where: not in this runner's folder."""
    if (module := sys.modules.get("tempfile")) is not None:
        vars(module)["tempdir"] = None


def place_descriptors(channel: int, log: int, status: int) -> socket.socket:
    """0 is empty, 1 and 2 are the log, 3 is the channel; the status line is closed before a student's byte is read."""
    null = os.open("/dev/null", os.O_RDONLY)
    for place, descriptor in enumerate([os.dup(descriptor) for descriptor in (null, log, log, channel, status)]):
        os.dup2(descriptor, place, inheritable=place < CHANNEL)
    os.closerange(_STATUS + 1, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=_STATUS)


def _limit(plan: Plan) -> None:
    table = limits.of_a_runner(plan.tmp_bytes)
    # Where it is 0 already it has to be raised, which not everybody may.
    with suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (table["core"], table["core"]))
    for name, most in table.items():
        _lower(getattr(resource, f"RLIMIT_{name.upper()}"), most)


def _limit_data(plan: Plan) -> None:
    """Before the old `/proc` is gone, and a new one may not be had."""
    if plan.data_bytes:
        _lower(resource.RLIMIT_DATA, kernel.data_bytes() + plan.data_bytes)


def _lower(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (allowed, allowed))


def _limit_processes(plan: Plan) -> None:
    """Count per user: exact where the user, or the user in its namespace, has no other processes."""
    if not plan.keeps(Promise.process_limit):
        return
    if plan.uid is not None:
        most = plan.processes
    elif plan.features.nproc_by_namespace and plan.pid_namespace:
        most = plan.processes + _OURS
    elif os.getuid() and not plan.pid_namespace:
        # All that this user has counts: no promise, but a fork bomb meets it soon.
        most = plan.processes + tree.threads_of(os.getuid())
    else:
        return
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _give_up_rights(plan: Plan, own: str) -> None:
    """Close the doors from the widest to the narrowest."""
    go_first()
    _become_nobody(plan)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if plan.features.landlock:
        _restrict_files(plan, own)
    if plan.features.seccomp and plan.keeps(Promise.syscall_filter):
        alone = plan.pid_namespace or plan.features.landlock >= landlock.ABI_SCOPE
        free = alone or not plan.keeps(Promise.private_processes)
        seccomp.install(
            network=not plan.keeps(Promise.no_network),
            signals_to=None if free else os.getpid(),
            gpu=bool(plan.devices),
            profiler=plan.profiler,
        )


def go_first() -> None:
    """If memory runs out, this process goes before anything of ours."""
    with suppress(OSError):
        _SCORE.write_text("1000")


def _become_nobody(plan: Plan) -> None:
    if plan.uid is not None:
        os.setgroups([])
        os.setresgid(plan.uid, plan.uid, plan.uid)
    _limit_processes(plan)
    kernel.drop_bounding_set()
    if plan.uid is not None:
        os.setresuid(plan.uid, plan.uid, plan.uid)
    kernel.drop_capabilities()


def _restrict_files(plan: Plan, own: str) -> None:
    landlock.restrict(
        plan.features.landlock,
        # Outside of a new root, `/proc` shows everybody's processes.
        readable=(*plan.readable, "/proc") if plan.new_root else plan.readable,
        writable=(own,),
        devices=namespaces.DEVICES,
        gpu=plan.devices,
        files=plan.keeps(Promise.private_files),
        network=not plan.keeps(Promise.no_network),
        signals=not plan.keeps(Promise.private_processes),
    )


def _die_with_parent(number: signal.Signals) -> None:
    parent = os.getppid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(_FAILED)


def fork(body: Callable[[], None]) -> int:
    """Start a child that does this and nothing else; its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        body()
        os._exit(0)
    except Exception:  # noqa: BLE001 -- a child of a fork must not return into its parent's code.
        traceback.print_exc()
    finally:
        os._exit(_FAILED)


@contextmanager
def telling(status: socket.socket) -> Iterator[None]:
    """If the kernel refuses something that was promised, there is no runner, and the judge is told why."""
    try:
        yield
    except OSError as error:
        tell(status, Report("error", message=str(error)))
        os._exit(_FAILED)


def ended(waited: int) -> Report:
    """How a process ended, from what waiting for it gave."""
    if os.WIFSIGNALED(waited):
        return Report("ended", signal=os.WTERMSIG(waited))
    return Report("ended", code=os.WEXITSTATUS(waited))


def tell(status: socket.socket, report: Report, *descriptors: int) -> None:
    """Say something to the judge, who may be gone; the descriptors go with it and are closed here."""
    with suppress(OSError):
        socket.send_fds(status, [codec.dumps(report).encode()], list(descriptors))
    for descriptor in descriptors:
        os.close(descriptor)
