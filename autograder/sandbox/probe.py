"""Find out what this machine lets a runner have, by shutting a small process in as a runner would be.

    python -c BOOTSTRAP < {"readable": […], "own_uid": true}    → one line of JSON

It runs in a process of its own, because what it tries cannot be undone, and because forking is safe there: one thread,
nothing imported.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder import codec, toolchain
from autograder.errors import SandboxError
from autograder.sandbox import cgroups, landlock, seccomp, shut_in
from autograder.sandbox.plan import Features, Namespaces, Plan, Report
from autograder.sandbox.uids import LAST_UID

_BOOTSTRAP = "import sys; sys.path.insert(0, sys.argv[1]); from autograder.sandbox import probe; probe.main()"
_TRIAL_S = 10.0
_PROCESSES = 3
_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Machine:
    """What was found."""

    features: Features
    cgroups: cgroups.Layout


@functools.cache
def machine() -> Machine:
    """What this process may do on this machine; tried once per process."""
    request = json.dumps(toolchain.readable())
    command = [sys.executable, "-I", "-S", "-B", "-c", _BOOTSTRAP, str(toolchain.PACKAGE.parent)]
    done = subprocess.run(command, input=request, env={}, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SandboxError(f"the machine could not be tried: {done.stderr.strip()[-500:]}")
    return codec.loads(Machine, done.stdout)


def main() -> None:
    """Try everything and print what was found."""
    readable = tuple(json.load(sys.stdin))
    print(codec.dumps(Machine(_features(readable), _groups(readable))))  # noqa: T201 -- this is its answer.


def _features(readable: tuple[str, ...]) -> Features:
    """Each by itself, then all together; what does not work with the others is left out, namespaces first."""
    version = landlock.abi()
    root = os.geteuid() == 0
    wanted = Features(
        namespaces=_namespaces(readable, root=root),
        landlock=version if _works(Features(landlock=version), readable) else 0,
        seccomp=seccomp.supported() and _works(Features(seccomp=True), readable),
    )
    if root:
        wanted = _better(wanted, {"own_uid": True}, readable)
    else:
        wanted = _better(wanted, {"nproc_by_namespace": True}, readable)
    return wanted if _works(wanted, readable) else Features(seccomp=wanted.seccomp, landlock=wanted.landlock)


def _namespaces(readable: tuple[str, ...], *, root: bool) -> Namespaces:
    kinds = [Namespaces.root] if root else [Namespaces.user]
    return next((kind for kind in kinds if _works(Features(namespaces=kind), readable)), Namespaces.none)


def _better(features: Features, more: dict[str, bool], readable: tuple[str, ...]) -> Features:
    wanted = codec.from_json(Features, {**codec.to_json(features), **more})
    return wanted if _works(wanted, readable) else features


def _groups(readable: tuple[str, ...]) -> cgroups.Layout:
    layout = cgroups.find()
    if not layout.folders:
        return layout
    try:
        group = cgroups.Group(layout, f"{cgroups.PREFIX}-{os.getpid()}-probe", _BYTES, _PROCESSES + 1)
    except OSError:
        return cgroups.Layout()
    try:
        return layout if _works(Features(), readable, group.folders) else cgroups.Layout()
    finally:
        group.close()
        cgroups.end(group.folders)


def _works(features: Features, readable: tuple[str, ...], groups: tuple[str, ...] = ()) -> bool:
    """Whether a runner can be shut in so, and can still do what it has to."""
    if features == Features() and not groups:
        return True
    folder = tempfile.mkdtemp(prefix=f"{cgroups.PREFIX}-")
    uid = LAST_UID + 1 if features.own_uid else None
    if uid is not None:
        os.chown(folder, uid, uid)
    plan = Plan(folder, uid, _PROCESSES, _BYTES, 0, groups, readable, features)
    mine, status = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    log = os.open(os.devnull, os.O_WRONLY)
    channel, _ = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        mine.close()
        shut_in.supervise(plan, channel.fileno(), log, status, lambda end: _check(plan, end))
    status.close()
    os.close(log)
    channel.close()
    worked = _ended_well(mine)
    mine.close()
    os.waitpid(pid, 0)
    return worked


def _ended_well(status: socket.socket) -> bool:
    status.settimeout(_TRIAL_S)
    with suppress(TimeoutError):
        while data := status.recv(4096):
            report = codec.loads(Report, data)
            if report.kind == "error":
                return False
            if report.kind == "ended":
                return report.code == 0
    return False


def _check(plan: Plan, channel: socket.socket) -> None:
    """What a runner needs: its toolchain, its folder; and what a limit on processes has to do."""
    channel.close()
    Path(__file__).read_bytes()
    Path(os.__file__).read_bytes()
    Path(os.environ["TMPDIR"], "trial").write_text("trial")
    if plan.features.nproc_by_namespace:
        _check_processes()


def _check_processes() -> None:
    """One more is allowed, and the limit is met: the count is this runner's own."""
    started = 0
    with suppress(BlockingIOError):
        while started <= _PROCESSES:
            if os.fork() == 0:
                # Stay until init ends this namespace.
                import time  # noqa: PLC0415

                time.sleep(_TRIAL_S)
                os._exit(0)
            started += 1
    if not 1 <= started < _PROCESSES:
        raise OSError("processes are not counted by namespace")
