"""Before a node takes work: known-good and known-bad kernels, and escapes, each with the verdict it must get here.

It goes through the judge and the sandbox that attempts will go through. Where something differs the node takes no work
and says what. It is a smoke test of this machine's walls, not a proof: the whole corpus is `make redteam`.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from autograder.contract import Mode, Verdict, Work
from worker.known import HERE, KnownJobs, Outcome, with_targets
from worker.processes import named

SUBMISSIONS = HERE / "submissions"
_TRIES = 3
"""Of a file that only took too long."""
DAEMON = "ladder-selftest"
"""What the process calls itself that `passed_leaves_a_daemon` leaves behind."""

# What differs from "checked, as a submission": replayed answers show when calls of one size are repeated.
_WORKS = {"wrong_answer_replays_an_earlier_call": Work.measure}
_MODES = {"passed_known_good": Mode.submission}
# Which promise of the sandbox keeps a submission from what there is to reach.
_PROMISES = {
    "files": "private_files",
    "folders": "private_files",
    "devices": "private_files",
    "sockets": "private_files",
    "ports": "no_network",
    "processes": "private_processes",
    "users": "other_uid",
}
_DEVICES = [
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-caps/*",
    "/dev/mem",
    "/dev/kmsg",
    "/dev/kvm",
    "/dev/sd*",
    "/dev/nvme*",
]
_FOLDERS = ["/etc", "/var/tmp", "/dev/shm", "/run"]  # noqa: S108 -- places to try to write to, from inside.
_SOCKETS = ["/run/docker.sock", "/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/systemd/private"]


@dataclass(frozen=True)
class Tried:
    """One known job and what became of it.

    Attributes:
        name: of its file; begins with the verdict it must get.
        verdict: what it got; `""` if the judge gave none.
        trouble: what is wrong, `""` if nothing is.
    """

    name: str
    verdict: str
    trouble: str
    seconds: float

    def __str__(self) -> str:
        """The file, and what is wrong with what it got."""
        return f"{self.name}: {self.trouble or 'as expected'}"


def run(
    jobs: KnownJobs, work: Path, *, secrets_of_node: tuple[Path, ...] = (), accepted: tuple[str, ...] = ()
) -> list[Tried]:
    """Put every file through; in the order of their names, the known-good kernel first.

    Args:
        work: the node's folder, which a submission must not reach.
        secrets_of_node: files that a submission must not read.
        accepted: promises that the sandbox does not keep here, and that the node's owner serves without.
    """
    first = SUBMISSIONS / "passed_known_good.py"
    files = [first, *sorted(path for path in SUBMISSIONS.glob("*.py") if path != first)]
    with _targets(work, secrets_of_node) as targets:
        wanted = {kind: some for kind, some in targets.items() if _PROMISES[kind] not in accepted}
        return [_tried(jobs, path, wanted) for path in files]


def problems(tried: list[Tried]) -> str:
    """What is wrong, in one line; `""` if nothing is."""
    return "; ".join(str(one) for one in tried if one.trouble)


def expected(name: str) -> Verdict:
    """The verdict that a file's name begins with."""
    return next(verdict for verdict in Verdict if name.startswith(f"{verdict}_"))


def _tried(jobs: KnownJobs, path: Path, targets: dict[str, list[str] | list[int]]) -> Tried:
    """A machine that is busy with something else may be too slow for a file: that says nothing of its walls."""
    for _ in range(_TRIES):
        tried = _once(jobs, path, targets)
        if tried.verdict != Verdict.time_limit or expected(path.stem) is Verdict.time_limit:
            break
    return tried


def _once(jobs: KnownJobs, path: Path, targets: dict[str, list[str] | list[int]]) -> Tried:
    started = time.monotonic()
    source = with_targets(path.read_text(encoding="utf-8"), targets)
    outcome = jobs.run(source, _WORKS.get(path.stem, Work.check), _mode(path.stem))
    trouble = _trouble(path.stem, outcome)
    verdict = str(outcome.result.verdict) if outcome.result else ""
    return Tried(path.stem, verdict, trouble, round(time.monotonic() - started, 3))


def _mode(name: str) -> Mode:
    """Hidden cases where they add something but time; measuring is of submissions only."""
    return Mode.submission if name in _MODES or name in _WORKS else Mode.run


def _trouble(name: str, outcome: Outcome) -> str:
    if outcome.result is None:
        return outcome.reason
    loot = " ".join(line for line in outcome.result.log.splitlines() if line.startswith("LOOT "))
    if loot:
        return f"it got out: {loot[:1000]}"
    if outcome.result.verdict is not expected(name):
        return f"{outcome.result.verdict} instead of {expected(name)} ({outcome.result.explanation[:200]})"
    return _daemons()


def _daemons(patience_s: float = 2.0) -> str:
    """What is left of the daemon; a tree that was killed takes a moment to be gone."""
    give_up_at = time.monotonic() + patience_s
    while left := named(DAEMON):
        if time.monotonic() > give_up_at:
            return f"a process of it is left: {', '.join(map(str, left))}"
        time.sleep(0.05)
    return ""


@contextmanager
def _targets(work: Path, files: tuple[Path, ...]) -> Iterator[dict[str, list[str] | list[int]]]:
    """What there is to reach; some is made for this: a secret in the node's folder, one that anybody may read."""
    with tempfile.TemporaryDirectory(prefix="ladder-selftest-") as public, closing(_listener()) as listener:
        # Open to every user of this machine: only the sandbox's own wall keeps a submission from it.
        Path(public).chmod(0o777)
        made = [work / "selftest-secret", Path(public) / "secret"]
        for path in made:
            path.write_text(secrets.token_hex(16), encoding="utf-8")
            path.chmod(0o644)
        try:
            yield {
                "files": [str(path) for path in (*made, *files, "/etc/shadow", f"/proc/{os.getpid()}/environ")],
                "folders": [public, str(work), *_FOLDERS],
                "ports": [listener.getsockname()[1]],
                "sockets": _SOCKETS,
                "processes": [os.getpid(), os.getppid()],
                "devices": _DEVICES,
                "users": [0],
            }
        finally:
            made[0].unlink(missing_ok=True)


def _listener() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    return listener
