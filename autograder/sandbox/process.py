"""The process sandbox: runners as processes of this machine, shut in with what Linux offers here and now.

What is kept, by what, and what is there when that is missing. Everything is found out by trying, once per process
(`autograder.sandbox.probe`); a promise that cannot be kept is not in `promises`, and the weaker means in the last
column still applies.

    promise            kept by                                            without it
    -----------------  -------------------------------------------------  ----------------------------------------------
    other_uid          root: a user id per runner (61000 …)               the judge's own user, all capabilities dropped
    no_network         network namespace; seccomp refuses `socket`        none
    private_files      new root with the toolchain, devices and /tmp;     file modes; nothing else
                       Landlock (ABI ≥ 3 by itself; it does not hide
                       that a file exists)
    private_processes  process namespace with its own /proc; or           the judge and zygote are not dumpable, so that
                       Landlock (no /proc) with its signal scope or       their /proc and memory are closed
                       seccomp
    whole_tree         end of the namespace's init; `cgroup.kill`; or     the same walk, without a promise
                       the walk of all descendants of the supervisor,
                       which adopts orphans and cannot be signalled
    freezes_tree       cgroup freezer (v1, v2); or SIGSTOP to all         SIGSTOP; a timer may send SIGCONT
                       descendants, seccomp refusing the ways by which
                       a stopped process wakes itself
    memory_limit       memory cgroup (v1, v2)                             `RLIMIT_DATA` per process; the tree's memory
                                                                          is watched by `poll` and ended soon after
    process_limit      pids cgroup; `RLIMIT_NPROC` of its own uid, or     none but what the machine sets
                       of its own user namespace
    syscall_filter     seccomp (`autograder.sandbox.seccomp`)             none

Always: an environment of its own, no descriptor but its channel and the log, no new privileges, no core files, a size
for its folder (tmpfs in the new root, otherwise `RLIMIT_FSIZE` per file and the sum watched by `poll`), a size for its
output, an own session. If the judge is killed, the zygote notices and ends every runner; if that is killed too, the
supervisors do; if those are, the kernel ends every init.

On a GPU lane a runner also has one GPU's device nodes and a unix socket of its own, and may write files of its own
`/proc`; memory is not limited by `RLIMIT_DATA`. It needs namespaces (docs/gpu.md says what CUDA needs, and why).

This sandbox shares the kernel with the submission. A node that takes strangers' code uses the Docker driver.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
from contextlib import AbstractContextManager, nullcontext, suppress

from autograder import toolchain
from autograder.contract import Lane, Language
from autograder.errors import SandboxError
from autograder.sandbox import Promise, Purpose, RunnerLimits, Side, cgroups, gpu, kernel, landlock, uids
from autograder.sandbox.plan import Features, Namespaces, Plan
from autograder.sandbox.probe import Machine, machine
from autograder.sandbox.process_runner import ProcessRunner
from autograder.sandbox.zygote import Zygote, environment_of

_LANDLOCK_TRUNCATES = 3
_CORES_EACH = 4
"""For a runner beside others: it compiles on one, and the judge, the worker and a forked start need some."""
_numbers = itertools.count()


class ProcessSandbox:
    """Starts runners as processes of this machine.

    Args:
        without: promises that are not kept; tests switch one off to show what it stops.
        on: what to use of this machine, everything by default; tests take things away.
        environment: the environment of runners; tests put something into it.
    """

    def __init__(
        self,
        *,
        without: frozenset[Promise] = frozenset(),
        on: Machine | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        found = on or machine()
        self._without = without
        self._features = found.features
        self._layout = _used(found.cgroups, without)
        self._environment = environment
        self._zygotes: dict[tuple[Language, Lane, Purpose], Zygote] = {}
        self._runners: list[ProcessRunner] = []
        # Who starts runners may be several threads of one grading.
        self._starting = threading.Lock()
        self.promises = promises(self._features, self._layout) - without
        cgroups.sweep(self._layout)
        # What a runner with the same user id could otherwise read of this process and its memory.
        with suppress(OSError):
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)

    @property
    def facts(self) -> dict[str, str]:
        """Nothing that the judge does not know of itself."""
        return {}

    def start(
        self,
        limits: RunnerLimits,
        language: Language,
        lane: Lane = Lane.cpu,
        *,
        side: Side = Side.submission,  # noqa: ARG002 -- both sides have all cores here.
        purpose: Purpose = Purpose.call,
    ) -> ProcessRunner:
        """Start a runner that will load one source in `language`; the first of a language imports its toolchain.

        Raises:
            SandboxError: it could not be started.
        """
        lane = purpose.lane(lane)
        devices = self._devices(lane)
        zygote = self._zygote(language, lane, purpose)
        group = self._group(limits)
        uid = uids.take() if self._features.own_uid and Promise.other_uid not in self._without else None
        folder = tempfile.mkdtemp(prefix=f"{cgroups.PREFIX}-")
        if uid is not None:
            os.chown(folder, uid.number, uid.number)
        watched = 0 if self._layout.memory or Promise.memory_limit in self._without else limits.memory_bytes
        plan = Plan(
            folder=folder,
            uid=None if uid is None else uid.number,
            processes=limits.processes,
            tmp_bytes=limits.tmp_bytes,
            # A CUDA context reserves far more address space than it has memory.
            data_bytes=0 if devices else watched,
            watched_bytes=watched,
            devices=devices,
            profiler=purpose is Purpose.profile,
            cgroups=group.folders,
            readable=toolchain.readable(),
            features=self._features,
            without=tuple(self._without),
        )
        runner = ProcessRunner(zygote, plan, limits, group, uid)
        with self._starting:
            self._runners = [other for other in self._runners if not other.closed]
            self._runners.append(runner)
        return runner

    def prewarm(
        self,
        limits: RunnerLimits,  # noqa: ARG002 -- a runner's own, which is forked when it is asked for.
        language: Language,
        lane: Lane = Lane.cpu,
        *,
        purpose: Purpose = Purpose.call,
    ) -> None:
        """Have the toolchain imported by the zygote that will fork them."""
        self._zygote(language, purpose.lane(lane), purpose)

    def warm_count(
        self,
        limits: RunnerLimits,  # noqa: ARG002 -- of one kind there is one zygote.
        language: Language,
        lane: Lane = Lane.cpu,
        *,
        purpose: Purpose = Purpose.call,
    ) -> int:
        """One for every few cores: all are forked from a zygote that has the toolchain."""
        zygote = self._zygotes.get((language, purpose.lane(lane), purpose))
        return len(os.sched_getaffinity(0)) // _CORES_EACH if zygote is not None and zygote.alive() else 0

    def pause_background_work(self) -> AbstractContextManager[None]:
        """Nothing is made ahead here."""
        return nullcontext()

    def _devices(self, lane: Lane) -> tuple[str, ...]:
        if lane is Lane.cpu:
            return ()
        if self._features.namespaces is Namespaces.none:
            # CUDA needs a unix socket, which is the runner's own in its own network namespace only.
            raise SandboxError("a runner on a GPU needs namespaces, and there are none here")
        return gpu.nodes()

    def _zygote(self, language: Language, lane: Lane, purpose: Purpose) -> Zygote:
        with self._starting:
            zygote = self._zygotes.get((language, lane, purpose))
            if zygote is None or not zygote.alive():
                if zygote is not None:
                    zygote.close()
                environment = (
                    environment_of(language, lane, purpose) if self._environment is None else self._environment
                )
                zygote = self._zygotes[language, lane, purpose] = Zygote(language, lane, environment, purpose)
            return zygote

    def _group(self, limits: RunnerLimits) -> cgroups.Group:
        name = f"{cgroups.PREFIX}-{os.getpid()}-{next(_numbers)}"
        # Init counts among the processes of the group.
        try:
            return cgroups.Group(self._layout, name, limits.memory_bytes, limits.processes + 1)
        except OSError as error:
            raise SandboxError(f"no control group could be made: {error}") from None

    def close(self) -> None:
        """End everything it started."""
        for runner in self._runners:
            runner.close()
        for zygote in self._zygotes.values():
            zygote.close()
        self._runners.clear()
        self._zygotes.clear()


def _used(layout: cgroups.Layout, without: frozenset[Promise]) -> cgroups.Layout:
    """The layout without what is switched off."""
    memory, pids = Promise.memory_limit not in without, Promise.process_limit not in without
    return cgroups.Layout(
        memory=layout.memory if memory else "",
        memory_version=layout.memory_version if memory else 0,
        pids=layout.pids if pids else "",
        freezer=layout.freezer,
        freezer_version=layout.freezer_version,
    )


def promises(features: Features, layout: cgroups.Layout) -> frozenset[Promise]:
    """What can be kept with these; the table above."""
    apart = features.namespaces is not Namespaces.none
    scoped = features.landlock >= landlock.ABI_SCOPE
    kept = {
        Promise.other_uid: features.own_uid,
        Promise.no_network: apart or features.seccomp,
        Promise.private_files: apart or features.landlock >= _LANDLOCK_TRUNCATES,
        Promise.private_processes: apart or scoped or (features.landlock > 0 and features.seccomp),
        Promise.whole_tree: apart or features.own_uid or features.seccomp or scoped or bool(layout.freezer),
        Promise.freezes_tree: bool(layout.freezer) or features.seccomp,
        Promise.memory_limit: bool(layout.memory),
        Promise.process_limit: bool(layout.pids) or features.own_uid or features.nproc_by_namespace,
        Promise.syscall_filter: features.seccomp,
    }
    return frozenset(promise for promise, is_kept in kept.items() if is_kept)
