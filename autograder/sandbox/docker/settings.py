"""A container's settings, as Docker's API takes them: every limit and every door, in one place."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autograder import toolchain
from autograder.contract import Lane, Language
from autograder.sandbox import Promise, Purpose, RunnerLimits, gpu, limits
from autograder.sandbox.docker import mounts
from autograder.sandbox.docker.config import DockerConfig, Gpu
from autograder.sandbox.docker.engine import Image
from autograder.sandbox.docker.inside import TRIAL
from autograder.sandbox.namespaces import TMP
from autograder.sandbox.zygote import BOOTSTRAP, environment_of

TOOLCHAIN = "org.kernel-ladder.toolchain"
PYTHON = "org.kernel-ladder.python"
OWNER = "org.kernel-ladder.owner"
SOCKETS = "/run/ladder"
SOCKET = "socket"
IMPORTS_BYTES = 1 << 30
"""What the first process may take beside the submission's limit while it imports; then it is measured."""

_INODES = 65_536
_FIRST_PROCESSES = 2
"""The first process and its thread count among a container's processes."""
_MASKED = (
    "/sys", "/dev/mqueue", "/dev/pts",
    *(f"/proc/{name}" for name in (
        "acpi", "asound", "buddyinfo", "bus", "cmdline", "config.gz", "devices", "diskstats", "driver", "fs",
        "interrupts", "iomem", "ioports", "irq", "kallsyms", "kcore", "key-users", "keys", "kmsg",
        "kpagecount", "kpageflags", "latency_stats", "loadavg", "locks", "misc", "modules", "pagetypeinfo",
        "partitions", "sched_debug", "schedstat", "scsi", "slabinfo", "softirqs", "swaps", "sysrq-trigger",
        "timer_list", "timer_stats", "vmallocinfo", "vmstat", "zoneinfo",
    )),
)  # fmt: skip
"""What tells of the machine and of others on it, or steers it. What is not there is passed over."""
_READ_ONLY = ("/proc/sys", "/proc/tty", "/proc/sysvipc")


@dataclass(frozen=True)
class Kind:
    """What makes containers that wait alike.

    Attributes:
        language: or `inside.TRIAL`.
    """

    language: Language | str
    lane: Lane
    purpose: Purpose
    limits: RunnerLimits


@dataclass(frozen=True)
class Slot:
    """What one container has for itself.

    Attributes:
        uid: its user's and group's number.
        sockets: folder of this machine that it finds at `SOCKETS`.
        owner: who may sweep it away.
    """

    uid: int
    sockets: str
    owner: str


def settings(
    kind: Kind, slot: Slot, image: Image, config: DockerConfig, *, without: frozenset[Promise], background: bool
) -> dict[str, Any]:
    """The settings of one container.

    Args:
        without: promises that are not to be kept. Tests switch one off to show what it stops.
        background: nobody waits for it yet, so it gives way to who measures.
    """
    hosted = image.labels.get(TOOLCHAIN) != "image"
    return {
        "Image": image.id,
        "Hostname": "runner",
        "User": f"{slot.uid}:{slot.uid}",
        "WorkingDir": TMP,
        # A name without a value is taken out of what Docker sets by itself.
        "Env": [*(f"{name}={value}" for name, value in _environment(kind).items()), "HOSTNAME"],
        "Entrypoint": [],
        "Cmd": _command(kind, image, without, hosted=hosted),
        "Labels": {OWNER: slot.owner},
        "HostConfig": {
            **_shut(without),
            **_limits(kind, config, without, background=background),
            **_files(kind, slot, config, without, hosted=hosted),
            **_devices(kind, config),
        },
    }


def _environment(kind: Kind) -> Mapping[str, str]:
    return {**environment_of(kind.language, kind.lane, kind.purpose), "HOME": TMP, "TMPDIR": TMP}


def _command(kind: Kind, image: Image, without: frozenset[Promise], *, hosted: bool) -> list[str]:
    python = sys.executable if hosted else image.labels[PYTHON]
    harness = str(toolchain.PACKAGE.parent) if hosted else mounts.HARNESS
    own = ["contained", f"{SOCKETS}/{SOCKET}", kind.language, kind.lane, kind.purpose, *sorted(without)]
    return [python, "-I", "-B", "-c", BOOTSTRAP, harness, *map(str, own)]


def _shut(without: frozenset[Promise]) -> dict[str, Any]:
    """Its own namespaces, no network, no capability, the daemon's filter of system calls."""
    unfiltered = ["seccomp=unconfined"] if Promise.syscall_filter in without else []
    return {
        "NetworkMode": "host" if Promise.no_network in without else "none",
        "PidMode": "host" if Promise.private_processes in without else "",
        # Its own, and no /dev/shm: there is one folder to write to.
        "IpcMode": "none",
        "CgroupnsMode": "private",
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", *unfiltered],
        "Privileged": False,
        "RestartPolicy": {"Name": "no"},
        # Of the first process only, which is ours: the runner's output goes to the judge by a pipe.
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}},
    }


def _limits(kind: Kind, config: DockerConfig, without: frozenset[Promise], *, background: bool) -> dict[str, Any]:
    memory = 0 if Promise.memory_limit in without else kind.limits.memory_bytes + IMPORTS_BYTES
    table = limits.of_a_runner(kind.limits.tmp_bytes)
    return {
        "Memory": memory,
        "MemorySwap": memory,
        "PidsLimit": -1 if Promise.process_limit in without else kind.limits.processes + _FIRST_PROCESSES,
        "CpusetCpus": config.cores.warm if background else "",
        "Ulimits": [{"Name": name, "Soft": most, "Hard": most} for name, most in table.items()],
    }


def _files(
    kind: Kind, slot: Slot, config: DockerConfig, without: frozenset[Promise], *, hosted: bool
) -> dict[str, Any]:
    binds = [mounts.Bind(slot.sockets, SOCKETS), *(mounts.of_host() if hosted else mounts.of_image(config.driver))]
    tmp = (
        f"rw,exec,nosuid,nodev,size={kind.limits.tmp_bytes},nr_inodes={_INODES},mode=0700,uid={slot.uid},gid={slot.uid}"
    )
    private = Promise.private_files not in without
    unlisted = dict.fromkeys(mounts.above(binds) if hosted else (), "rw,nosuid,nodev,noexec,size=64k,mode=0711")
    # Without it: this machine's own folder, to write, and nothing hidden.
    own = [] if private else [{"Type": "bind", "Source": TMP, "Target": TMP, "ReadOnly": False}]
    return {
        "ReadonlyRootfs": True,
        "Mounts": [*(bind.settings() for bind in binds), *own],
        "Tmpfs": {**unlisted, TMP: tmp} if private else {},
        "MaskedPaths": list(_MASKED) if private else [],
        "ReadonlyPaths": list(_READ_ONLY) if private else [],
    }


def _devices(kind: Kind, config: DockerConfig) -> dict[str, Any]:
    if kind.purpose.lane(kind.lane) is Lane.cpu or kind.language == TRIAL:
        return {}
    if config.gpu is Gpu.raw:
        return {
            "Devices": [
                {"PathOnHost": node, "PathInContainer": node, "CgroupPermissions": "rw"} for node in gpu.nodes()
            ]
        }
    name = gpu.uuid()
    if config.gpu is Gpu.cdi:
        return {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": [f"nvidia.com/gpu={name}"]}]}
    wanted = [["gpu", "compute", "utility"]]
    return {"DeviceRequests": [{"Driver": "nvidia", "DeviceIDs": [name], "Capabilities": wanted}]}
