"""The judge and the sandbox that hostile files meet, made once, and what a test may find of them afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from corpus import HONEST
from stand import Stand, bare_sandbox

from autograder.sandbox.process import ProcessSandbox

CANARY = Path("/tmp/hostile-canary")
SECRET = "a secret that no runner may read"


@pytest.fixture(scope="session", autouse=True)
def canary() -> Iterator[None]:
    """Things to find: a secret in the judge's environment and on the disk, and somebody who listens."""
    os.environ["HOSTILE_CANARY"] = SECRET
    CANARY.mkdir(mode=0o777, exist_ok=True)
    CANARY.chmod(0o777)
    (CANARY / "secret").write_text(SECRET, encoding="utf-8")
    (CANARY / "secret").chmod(0o666)
    command = [sys.executable, "-c", "import time; time.sleep(3600)", "hostile-canary"]
    with _listener(), _named(), subprocess.Popen(command) as bird:
        yield
        bird.kill()
    del os.environ["HOSTILE_CANARY"]
    shutil.rmtree(CANARY, ignore_errors=True)


def _listener() -> socket.socket:
    for port in range(47613, 47621):
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            continue
    pytest.skip("no port between 47613 and 47620 is free")


def _named() -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(b"\0hostile-canary")
        listener.listen()
    except OSError:  # Another worker of this test run listens already.
        pass
    return listener


@pytest.fixture(scope="session")
def stand(canary: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The judge with everything on, in one sandbox for all files."""
    made = Stand(ProcessSandbox(), tmp_path_factory.mktemp("stand"))
    # What the first grading opens for good, such as the line to its zygote, is no attack's leftover.
    made.grade(HONEST.read_text(encoding="utf-8"), mode="run")
    yield made
    made.close()


@pytest.fixture(scope="session")
def bare_stand(canary: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The same without namespaces, control groups and another user, as on a laptop or in a container of somebody's."""
    made = Stand(bare_sandbox(), tmp_path_factory.mktemp("bare"))
    yield made
    made.close()
