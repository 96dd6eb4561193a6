"""One way to be graded: a lane and a sandbox. Says why this machine does not have it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

from autograder.contract import Lane
from autograder.errors import GpuError, SandboxError
from autograder.judge.protocol import devices
from autograder.sandbox import Sandbox
from autograder.sandbox.process import ProcessSandbox
from tests.hostile.stand import ROOT, Stand

DRIVERS = ("process", "docker")
GPU_LANES = (Lane.h200, Lane.h100, Lane.b200)
GPU_PAIRS = 9


def lanes() -> list[Lane]:
    """Those that this machine has a device for."""
    return [Lane.cpu, *(lane for lane in GPU_LANES if not _no_device(lane))]


def why_not(lane: Lane, sandbox: str) -> str:
    """What is missing for this path, `""` if nothing is."""
    if reason := _no_device(lane):
        return reason
    if sandbox == "docker":
        return _no_docker()
    return ""


def _no_device(lane: Lane) -> str:
    if lane is Lane.cpu:
        return ""
    try:
        devices.of(lane)
    except GpuError as error:
        return str(error)
    return ""


def _no_docker() -> str:
    if importlib.util.find_spec("docker") is None:
        return "the docker SDK is not installed"
    if importlib.util.find_spec("autograder.sandbox.docker") is None:
        return "there is no Docker driver"
    try:
        _docker().close()
    except (SandboxError, OSError) as error:
        return str(error)
    return ""


def _docker() -> Sandbox:
    made: Sandbox = importlib.import_module("autograder.sandbox.docker").DockerSandbox()
    return made


SANDBOXES: dict[str, Callable[[], Sandbox]] = {"process": ProcessSandbox, "docker": _docker}


def stand(lane: Lane, sandbox: str, root: Path) -> Stand:
    """Where files of this path are graded; `root` is an empty folder."""
    pairs = 2 if lane is Lane.cpu else GPU_PAIRS
    return Stand(SANDBOXES[sandbox](), root, lane=lane, pairs=pairs, warm=lane is not Lane.cpu)


def facts() -> dict[str, str]:
    """What a published table says of its machine; no name and no path of it."""
    found = {
        "cpu cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "user": "root" if os.getuid() == 0 else "not root",
    }
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if head.returncode == 0:
        found["commit"] = head.stdout.strip()
    for lane in lanes():
        found |= devices.of(lane).facts()
    if found.get("gpu"):
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
        found["gpu driver"] = said[0] if said else "unknown"
    return found
