"""Configuration of the Docker sandbox: read once from the environment, where the sandbox is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from autograder.errors import SandboxError
from autograder.sandbox.docker.cores import ANY, Cores, numbers

HOST_IMAGE = "kernel-ladder/host"


class Gpu(StrEnum):
    """How the one GPU of a lane reaches the container."""

    raw = "raw"
    """Its device nodes; the driver's libraries come with the host's toolchain, or from `driver`."""
    cdi = "cdi"
    """Docker's device request for a Container Device Interface name (engine 25 and newer)."""
    nvidia = "nvidia"
    """Docker's device request to the NVIDIA container toolkit."""


def _by_cores() -> int:
    return min(8, max(3, (os.cpu_count() or 1) // 2))


@dataclass(frozen=True)
class DockerConfig:
    """What a node's owner decides.

    Attributes:
        image: name, digest or id; it is resolved to its id once, and only that is used.
        pool: how many containers that make calls on a GPU wait with their imports done; at most four of those that
            compile do, and three of any other kind. A check takes four, one for compiling and one for reading machine
            code, and up to six more if they wait; a measurement one, and one that compiles if it waits. 0 for none; by
            default half as many as there are cores, three to eight.
        cores: who is kept where; where nobody is, what the machine suggests (`cores.by_the_machine`).
        gpu: how the GPU gets in.
        driver: folder of the driver's libraries, mounted where the image has none of its own.
        folder: for sockets, root's alone.
    """

    image: str = HOST_IMAGE
    pool: int = field(default_factory=_by_cores)
    cores: Cores = ANY
    gpu: Gpu = Gpu.raw
    driver: str = ""
    folder: Path = Path("/run/kernel-ladder")


def load_config(environ: Mapping[str, str] = os.environ) -> DockerConfig:
    """Read the environment.

    Raises:
        SandboxError: a variable cannot be read; the message names it.
    """
    own = DockerConfig()
    return DockerConfig(
        image=environ.get("LADDER_SANDBOX_IMAGE", own.image),
        pool=_count(environ, "LADDER_SANDBOX_POOL", own.pool),
        cores=Cores(
            judge=_cpuset(environ, "LADDER_SANDBOX_CPUS_JUDGE"),
            submission=_cpuset(environ, "LADDER_SANDBOX_CPUS_SUBMISSION"),
            reference=_cpuset(environ, "LADDER_SANDBOX_CPUS_REFERENCE"),
            warm=_cpuset(environ, "LADDER_SANDBOX_CPUS_WARM"),
        ),
        gpu=_gpu(environ.get("LADDER_SANDBOX_GPU", own.gpu)),
        driver=environ.get("LADDER_SANDBOX_DRIVER", own.driver),
        folder=Path(environ.get("LADDER_SANDBOX_FOLDER", own.folder)),
    )


def _count(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, str(default))
    if not text.isdecimal():
        raise SandboxError(f"{name} has to be a whole number, it is {text!r}")
    return int(text)


def _cpuset(environ: Mapping[str, str], name: str) -> str:
    text = environ.get(name, "").replace(" ", "")
    try:
        numbers(text)
    except ValueError:
        raise SandboxError(f"{name} has to be cores as in 2-5,8, it is {text!r}") from None
    return text


def _gpu(text: str) -> Gpu:
    try:
        return Gpu(text)
    except ValueError:
        raise SandboxError(f"LADDER_SANDBOX_GPU has to be one of {', '.join(Gpu)}, it is {text!r}") from None
