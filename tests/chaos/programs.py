"""The processes of a run: what they are called, what they run, and what they know."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.contract import Lane, Mode
from broker.identity import NodeKey
from tests.chaos.clocks import Clocks
from tests.chaos.plan import DOUBLE_LANES, Step, quota
from tests.chaos.supervisor import REPOSITORY, Program

LEASE_S = 8.0
DEADLINE_S = 60.0
DISK_MIB = 24
REAL_NODE = "real"
DOUBLE = REPOSITORY / "tests" / "doubles" / "judge.py"
MIN_FREE_MB = 4
"""With less room a node takes nothing; the small disk is smaller than what a real one has to have free."""

Environ = dict[str, str]


def environment(folder: Path, database_url: str, broker_url: str, steps: Sequence[Step]) -> Environ:
    """What every process of ours is told."""
    own = {
        "LADDER_HOME": folder / "home",
        "LADDER_DATABASE_URL": database_url,
        "LADDER_BROKER_URL": broker_url,
        "LADDER_ASSIGNMENTS": folder / "assignments",
        "LADDER_REFERENCE": folder / "reference",
        "LADDER_WEB": REPOSITORY / "web",
        "LADDER_LEASE_S": LEASE_S,
        # One grading each is what its checks count.
        "LADDER_CONFIRM_S": "0",
        "LADDER_ATTEMPT_DEADLINE_S": DEADLINE_S,
        "LADDER_SUBMIT_QUOTA_PER_MINUTE": quota(steps, Mode.submission),
        "LADDER_RUN_QUOTA_PER_MINUTE": quota(steps, Mode.run),
        # One who hands in stands for many.
        **{f"LADDER_PERSON_{name}": "0" for name in ("REQUESTS_PER_S", "REQUESTS_AT_ONCE", "STREAMS")},
        "NO_PROXY": "127.0.0.1",
        "PYTHONPATH": REPOSITORY,
        "PYTHONUNBUFFERED": "1",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    return {**inherited, **{name: str(value) for name, value in own.items()}}


def service(folder: Path, name: str, role: str, environ: Environ, *arguments: str, clocks: Clocks) -> Program:
    """A process of the server, or a worker. Of each pair the second lives by a clock that can be shifted."""
    clock = clocks.add(name) if name.endswith("1") else None
    return Program(
        name=name,
        role=role,
        command=[sys.executable, "-P", "-m", "client", role, *arguments],
        environ={**environ, **clocks.environment(clock)},
        log=folder / "logs" / f"{name}.log",
        clock=clock,
    )


def worker(folder: Path, name: str, key: NodeKey, environ: Environ, *, clocks: Clocks) -> Program:
    """A node; only the one called `REAL_NODE` has the real judge."""
    real = name == REAL_NODE
    work = folder / f"work-{name}"
    work.mkdir()
    key_file = folder / f"node-{name}.key"
    key.save(key_file)
    own = {
        "LADDER_NODE_NAME": name,
        "LADDER_NODE_KEY_FILE": str(key_file),
        "LADDER_WORK": str(work),
        "LADDER_MIN_FREE_MB": str(MIN_FREE_MB),
        "LADDER_LANES": Lane.cpu.value if real else ",".join(DOUBLE_LANES),
        **({} if real else {"LADDER_JUDGE": f"{sys.executable} {DOUBLE}"}),
    }
    # A node knows no database.
    inherited = {key: value for key, value in environ.items() if key != "LADDER_DATABASE_URL"}
    made = service(folder, name, "worker", {**inherited, **own}, clocks=clocks)
    made.work, made.real = work, real
    return made


def give_small_disk(program: Program) -> str:
    """Let a worker's folder be a small file system; why not, where that cannot be."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "tmpfs", str(program.work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    program.small_disk = done.returncode == 0
    return f"a small file system cannot be mounted: {done.stderr.strip()}" if done.returncode else ""
