"""Names and versions of everything that took part in a grading."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

import torch

from autograder.contract import CONTRACT_VERSION
from autograder.sandbox import Sandbox


def environment(sandbox: Sandbox, runner: dict[str, str]) -> dict[str, str]:
    """What the judge knows of itself and of the machine, beside the toolchain that the runner named."""
    kind = type(sandbox)
    own = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "contract": str(CONTRACT_VERSION),
        "sandbox": f"{kind.__module__}:{kind.__qualname__}",
        **sandbox.facts,
    }
    others = {name if name not in own else f"runner {name}": version for name, version in runner.items()}
    same = {name for name, version in others.items() if own.get(name.removeprefix("runner ")) == version}
    return own | {name: version for name, version in others.items() if name not in same}


@functools.cache
def cpu_model() -> str:
    """The processor as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model", "Processor")))
    return next(named, platform.machine())
