"""What each part of a container's wall keeps out, shown by taking it away: then the trial that finds promises says so.

Also the other way round: what is left of a judge that was killed, and who removes it.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.contract import Lane, Language
from autograder.errors import SandboxError
from autograder.sandbox import Promise, Purpose
from autograder.sandbox.docker import OWNER, DockerConfig, DockerSandbox
from autograder.sandbox.docker.engine import Engine
from autograder.sandbox.docker.settings import Kind
from autograder.sandbox.docker.sweep import sweep
from tests.autograder.runner_talk import LIMITS, Tensor, talking, wait_for
from tests.autograder.sandbox.test_process import SPINNING_DAEMON, stands_still

ROOT = Path(__file__).parents[2]
NO_FILTER = {"SecurityOpt": ["no-new-privileges", "seccomp=unconfined"]}


@contextmanager
def unshut(config: DockerConfig, without: set[Promise] = frozenset(), **changes: Any) -> Iterator[DockerSandbox]:
    made = DockerSandbox(dataclasses.replace(config, pool=0), without=frozenset(without), changes=changes)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    "promise",
    [
        Promise.other_uid, Promise.no_network, Promise.private_files, Promise.private_processes, Promise.memory_limit,
        Promise.process_limit, Promise.syscall_filter,
    ],
)  # fmt: skip
def test_a_promise_that_is_not_kept_is_found_out(docker_config: DockerConfig, promise: Promise) -> None:
    with unshut(docker_config, {promise}) as sandbox:
        assert promise not in sandbox._promises()


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({"NetworkMode": "host"}, Promise.no_network),
        ({"PidMode": "host"}, Promise.private_processes),
        ({"IpcMode": "private"}, Promise.private_files),
        ({"Devices": [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/other", "CgroupPermissions": "rw"}]},
         Promise.private_files),
        ({"CapDrop": [], "CapAdd": ["SYS_ADMIN"]}, Promise.other_uid),
        ({"Memory": 0, "MemorySwap": 0}, Promise.memory_limit),
        ({"PidsLimit": -1}, Promise.process_limit),
    ],
    ids=["network", "processes", "shared memory", "device", "capability", "memory", "number of processes"],
)  # fmt: skip
def test_a_setting_that_is_loosened_is_found_out(
    docker_config: DockerConfig, changes: dict[str, Any], broken: Promise
) -> None:
    # Settling the memory limit when a container is lent would put a limit back.
    without = {Promise.memory_limit} if broken is Promise.memory_limit else set()
    with unshut(docker_config, without, **changes) as sandbox:
        assert broken not in sandbox._promises()


def test_the_daemons_own_filter_is_asked_for(docker_config: DockerConfig) -> None:
    """Ours is on top of it: without the daemon's, one is on, and the promise is not made."""
    with unshut(docker_config, **NO_FILTER) as sandbox:
        assert Promise.syscall_filter not in sandbox.promises


def test_without_limits_the_attacks_on_them_succeed(docker_config: DockerConfig) -> None:
    without = {Promise.memory_limit, Promise.process_limit, Promise.freezes_tree}
    with unshut(docker_config, without) as sandbox:
        with talking(sandbox) as talk:
            counter = Tensor("out", np.zeros(8, "i8"), writable=True)
            talk.load(SPINNING_DAEMON, "run", ("out",))
            talk.call(counter, record=False)
            wait_for(lambda: int(counter.view[0]) or None)
            talk.runner.freeze()
            assert not stands_still(counter)
        with talking(sandbox) as talk:
            said = talk.run(f"""
kept = bytearray(b"x") * {LIMITS.memory_bytes + (64 << 20)}
for _ in range({2 * LIMITS.processes}):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
print(len(kept))
""")
            assert int(said) > LIMITS.memory_bytes


def test_without_its_own_files_and_network_it_reaches_the_machine(docker_config: DockerConfig, tmp_path: Path) -> None:
    path = Path("/tmp", f"docker-bite-{os.getpid()}")
    path.write_text("hush")
    path.chmod(0o644)
    try:
        without = {Promise.private_files, Promise.private_processes}
        with unshut(docker_config, without) as sandbox, talking(sandbox) as talk:
            said = talk.run(f"print(open({str(path)!r}).read(), os.path.exists('/proc/{os.getpid()}'))")
        assert said.split() == ["hush", "True"]
    finally:
        path.unlink()


JUDGE = """
import json, sys, time
from pathlib import Path
from tests.autograder.runner_talk import *
from autograder.sandbox.docker import DockerConfig, DockerSandbox
sandbox = DockerSandbox(DockerConfig(image=sys.argv[2], pool=1, folder=Path(sys.argv[3])))
talk = Talk(sandbox.start(LIMITS, Language.triton))
talk.load("import os, time\\ndef run():\\n    if os.fork() == 0:\\n        os.setsid()\\n        time.sleep(600)\\n")
talk.call(record=False)
if sys.argv[1] == "frozen":
    talk.runner.freeze()
print(json.dumps([talk.runner.pid, talk.runner.container._id, str(talk.runner.container._gate.folder)]), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("state", ["running", "frozen"])
def test_what_a_killed_judge_leaves_is_swept(docker_config: DockerConfig, tmp_path: Path, state: str) -> None:
    folder = Path("/run", f"kernel-ladder-test-{os.getpid()}-{state}")
    path = os.pathsep.join([str(ROOT), *sys.path])
    environ = {"PYTHONPATH": path, "DOCKER_HOST": os.environ["DOCKER_HOST"], "PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", JUDGE, state, docker_config.image, str(folder)]
    engine = Engine()
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as judge:
        assert judge.stdout is not None
        first, container, sockets = json.loads(judge.stdout.readline())
        assert sweep(engine, folder) == []
        assert Path(f"/proc/{first}").exists()
        judge.kill()
        judge.wait()
    try:
        if state == "running":
            # Its first process notices by itself.
            wait_for(lambda: None if Path(f"/proc/{first}").exists() else True)
        else:
            assert Path(f"/proc/{first}").exists()
        assert container in sweep(engine, folder)
        wait_for(lambda: None if Path(f"/proc/{first}").exists() else True)
        assert engine.state(container) == {}
        assert not Path(sockets).exists()
        assert not [found for found in engine.labelled(OWNER) if found.labels[OWNER].startswith(f"{judge.pid}.")]
    finally:
        engine.close()
        folder.rmdir()


def test_a_container_that_dies_while_it_waits_is_replaced(docker_config: DockerConfig) -> None:
    sandbox = DockerSandbox(dataclasses.replace(docker_config, pool=1))
    try:
        sandbox.start(LIMITS, Language.triton).close()
        (first,) = wait_for(lambda: sandbox.waiting() or None)
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: [one for one in sandbox.waiting() if one is not first and one.alive()] or None)
        with talking(sandbox) as talk:
            assert talk.runner.name != first.name
            assert talk.run("print('here')") == "here\n"
    finally:
        sandbox.close()
    assert not sandbox._engine.labelled(f"{OWNER}={sandbox._making.owner}") or sandbox.waiting() == []


def test_an_image_that_is_not_there_is_named(docker_config: DockerConfig) -> None:
    with pytest.raises(SandboxError, match="kernel-ladder/nothing"):
        DockerSandbox(dataclasses.replace(docker_config, image="kernel-ladder/nothing"))


def test_a_toolchain_that_does_not_import_is_told(docker_config: DockerConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.sandbox.docker.settings.environment_of", lambda *_: {})
    nonsense = Kind("nonsense", Lane.cpu, Purpose.call, LIMITS)
    with pytest.raises(SandboxError, match=r"It printed: (?s:.*)nonsense"), unshut(docker_config) as sandbox:
        sandbox._warm(nonsense, False)


def test_the_image_has_nothing_of_ours_or_the_staffs(docker_config: DockerConfig) -> None:
    """Every name in the image's own file system; and what a runner sees of the reference with all that is mounted."""
    engine = Engine()
    container = engine.create(f"kernel-ladder-list-{os.getpid()}", {"Image": docker_config.image, "Cmd": ["/none"]})
    try:
        exported = b"".join(engine._api.export(container))
    finally:
        engine.remove(container)
        engine.close()
    with tarfile.open(fileobj=io.BytesIO(exported)) as archive:
        names = archive.getnames()
    assert names
    ours = {"hidden.toml", "kernel-ladder", "autograder", "assignments", "solutions"}
    assert [name for name in names if ours & set(name.split("/"))] == []
    # `reference` is also the name of a folder in torch.
    assert [name for name in names if "reference" in name.split("/") and "/site-packages/" not in name] == []


def test_a_runner_finds_no_reference_anywhere(docker_sandbox: DockerSandbox) -> None:
    """Everything that is mounted is walked through."""
    with talking(docker_sandbox) as talk:
        said = talk.run(f"""
count = 0
for top, folders, files in os.walk("/"):
    if top in ("/proc", "/sys"):
        folders[:] = []
    count += len(files)
    if "hidden.toml" in files:
        print("SEEN", top)
print(count > 1000, [name for name in {list(map(str, ROOT.iterdir()))!r} if os.path.exists(name)])
""")
    own = [str(path) for path in ROOT.iterdir() if path.name in {"autograder", ".venv"}]
    last = said.splitlines()[-1]
    assert said.splitlines() == [last]
    assert last.startswith("True ")
    assert set(json.loads(last.removeprefix("True ").replace("'", '"'))) <= set(own)
