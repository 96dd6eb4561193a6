"""Which lane this worker serves, by what its GPU says of itself; without a GPU, the CPU's."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata

from autograder import languages
from autograder.contract import CONTRACT_VERSION, Lane, Work
from autograder.lanes import lane_of
from worker.node_errors import GpuUnknownError, UnfitError
from worker.nvml import Gpu
from worker.settings import NodeConfig


@dataclass(frozen=True)
class Serves:
    """What the node grades, and on what.

    Attributes:
        facts: of its device and sandbox, beside those of the machine.
    """

    lanes: tuple[Lane, ...]
    works: tuple[Work, ...] = tuple(Work)
    facts: dict[str, str] = field(default_factory=dict)


CHILD_S = 120.0
# Where there is no NVML, torch says it, in a process of its own: this one has no torch and no context.
_CHILD = """
import json, torch
print(json.dumps([
    [p.name, [p.major, p.minor]] for p in map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
]))
"""


def lanes_of(config: NodeConfig, gpu: Gpu | None) -> tuple[Lane, ...]:
    """What this worker grades: what it was told, as far as its device allows.

    Raises:
        UnfitError: it was told a lane that its device does not belong to.
        GpuError: its GPU belongs to no lane.
        GpuUnknownError: it was told a GPU that nothing is known of.
    """
    if config.foreign or config.lanes == (Lane.cpu,):
        return config.lanes or (Lane.cpu,)
    found = gpu.lane() if gpu is not None else _asked(config.gpu)
    if not config.lanes:
        return (found,)
    wrong = [lane for lane in config.lanes if lane not in {found, Lane.cpu}]
    if wrong:
        raise UnfitError(f"LADDER_LANES says {', '.join(wrong)}, and this device belongs to {found}")
    return config.lanes


def _asked(wanted: str) -> Lane:
    """The lane of the one GPU that a child process sees; the CPU's if it sees none and none was asked for."""
    done = subprocess.run([sys.executable, "-c", _CHILD], capture_output=True, text=True, timeout=CHILD_S, check=False)
    seen = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 and done.stdout else []
    if not seen and not wanted:
        return Lane.cpu
    if len(seen) != 1:
        raise GpuUnknownError(f"{len(seen)} GPUs are here, but no NVML to select one by LADDER_GPU")
    name, (major, minor) = seen[0]
    return lane_of(name, (major, minor))


def machine_facts() -> dict[str, str]:
    """Names and versions, for the node page."""
    found = {
        "host": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
        "contract": str(CONTRACT_VERSION),
    }
    for name in ("torch", *languages.distributions()):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = languages.NOT_INSTALLED
    return found
