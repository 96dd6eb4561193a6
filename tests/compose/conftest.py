"""Docker for these tests: the machine's own daemon, else one that they install and start in a private folder."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
COMPOSE = ("docker", "docker-compose")
UP_S = 2400
"""Debian base, wheels, two images and the start, on two busy cores."""
CALL_S = 300
ADMIN_PASSWORD = "only for this test"


def run(*command: str, env: Mapping[str, str], limit_s: float = CALL_S) -> str:
    """What it printed; fails with all of it otherwise."""
    done = subprocess.run(
        command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=limit_s, stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def compose_programs() -> None:
    """docker and docker-compose, installed where that is possible."""
    if all(shutil.which(name) for name in COMPOSE):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("docker and docker-compose are not installed, and only root can install them")
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "docker.io", "iptables", "docker-compose", "debootstrap"],
    ):
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{' '.join(command)} failed: {done.stderr[-300:]}")


@pytest.fixture(scope="session")
def docker(compose_programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment in which docker works."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LADDER_")}
    if torch := os.environ.get("LADDER_TORCH"):
        environ["LADDER_TORCH"] = torch
    if _answers(environ):
        yield environ
        return
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("no docker daemon answers, and only root can start one")
    folder = tmp_path_factory.mktemp("docker")
    environ["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
    where = {"data-root": folder / "data", "exec-root": folder / "exec", "pidfile": folder / "pid"}
    command = ["dockerd", "--host", environ["DOCKER_HOST"], *(f"--{name}={path}" for name, path in where.items())]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as daemon:
        try:
            deadline = time.monotonic() + 60
            while not _answers(environ) and daemon.poll() is None and time.monotonic() < deadline:
                time.sleep(0.5)
            if not _answers(environ):
                pytest.skip(f"dockerd does not start here: {(folder / 'log').read_text()[-500:]}")
            yield environ
        finally:
            daemon.terminate()
            daemon.wait(120)
            shutil.rmtree(folder, ignore_errors=True)


def _answers(environ: Mapping[str, str]) -> bool:
    done = subprocess.run(["docker", "info"], env=environ, capture_output=True, check=False)
    return done.returncode == 0


def _port() -> str:
    with socket.socket() as unused:
        unused.bind(("0.0.0.0", 0))
        return str(unused.getsockname()[1])


@dataclass(frozen=True)
class Stack:
    """A course in containers."""

    site: Path
    environ: Mapping[str, str] = field(repr=False)

    @property
    def settings(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.site / "settings").read_text().splitlines())

    @property
    def url(self) -> str:
        return self.settings["LADDER_PUBLIC_URL"]

    def compose(self, *arguments: str) -> str:
        return run("sh", "deploy/compose.sh", *arguments, env=self.environ)

    def admin(self, *arguments: str) -> str:
        return run("sh", "deploy/admin.sh", *arguments, env=self.environ)

    def client(self, token: str = "") -> httpx.Client:
        """Over TLS, trusting this installation's certificate and no other."""
        context = ssl.create_default_context(cafile=str(self.site / "tls_certificate"))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, verify=context, headers=headers, timeout=60, trust_env=False)


def site_environ(docker: Mapping[str, str], site: Path) -> dict[str, str]:
    """The settings of an installation of this test's own, on ports that are free."""
    return {
        **docker,
        "LADDER_SITE": str(site),
        "LADDER_HOST": _address(),
        "LADDER_HTTPS_PORT": _port(),
        "LADDER_HTTP_PORT": _port(),
        "LADDER_BROKER_PORT": _port(),
        "LADDER_IMAGES": "local",
        "LADDER_NODES": "open",
        "LADDER_TAG": f"test{os.getpid()}",
        "COMPOSE_PROJECT_NAME": f"ladder-test-{os.getpid()}",
        "PYTHON": sys.executable,
    }


def _address() -> str:
    """An address of this machine that is not its loopback, as another machine would use."""
    said = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return next((address for address in said if "." in address), "127.0.0.1")


@pytest.fixture(scope="session")
def stack(docker: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Brought up from nothing, torn down with all it kept. `COMPOSE_TEST_SITE` names one that runs already."""
    if running := os.environ.get("COMPOSE_TEST_SITE"):
        yield Stack(Path(running), {**docker, "LADDER_SITE": running})
        return
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("making a Debian base needs root and debootstrap")
    environ = site_environ(docker, tmp_path_factory.mktemp("site"))
    made = Stack(Path(environ["LADDER_SITE"]), environ)
    try:
        run("sh", "deploy/up.sh", env=environ, limit_s=UP_S)
        yield made
    finally:
        made.compose("down", "--volumes", "--timeout", "20")
        names = [f"kernel-ladder/{name}:{environ['LADDER_TAG']}" for name in ("server", "worker", "base")]
        subprocess.run(["docker", "rmi", "--force", *names], env=environ, capture_output=True, check=False)
