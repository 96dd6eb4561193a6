"""Docker for these tests: a daemon that answers, or one that is installed and started; and the real driver on it.

python -m pytest tests/docker --confcutdir tests/docker      where nothing of the server is installed
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

from autograder.sandbox.docker import DockerConfig, DockerSandbox  # noqa: E402


@pytest.fixture(scope="session")
def docker_config(tmp_path_factory: pytest.TempPathFactory) -> DockerConfig:
    """Of the image of empty folders; `LADDER_SANDBOX_IMAGE` names another."""
    pytest.importorskip("docker")
    if os.getuid() != 0:
        pytest.skip("the Docker sandbox needs root")
    found = _said("sh", "scripts/get_docker.sh")
    os.environ["DOCKER_HOST"] = found
    image = os.environ.get("LADDER_SANDBOX_IMAGE") or _said("sh", "deploy/make_runner_image.sh", "host")
    # A temporary folder of pytest's lets nobody else in; containers have to get to their sockets.
    folder = Path("/run", f"kernel-ladder-test-{os.getpid()}")
    return DockerConfig(image=image, pool=2, folder=folder)


@pytest.fixture(scope="session")
def docker_sandbox(docker_config: DockerConfig) -> Iterator[DockerSandbox]:
    """The driver with everything on."""
    made = DockerSandbox(docker_config)
    yield made
    made.close()
    docker_config.folder.rmdir()


def _said(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(done.stderr.strip()[-300:] or f"{command} failed")
    return done.stdout.strip()
