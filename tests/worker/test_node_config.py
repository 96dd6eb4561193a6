"""How a node is put together from its environment: lanes, one GPU, the sandbox, and what it refuses."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import toolchain
from autograder.contract import Lane, Work
from autograder.errors import GpuError
from broker.identity import NodeKey
from tests.doubles.nvml import FakeNvml
from worker import lanes as lanes_module
from worker import node as node_module
from worker.baseline import below_this_process
from worker.config import load_config
from worker.lanes import lanes_of
from worker.node import compose, environment
from worker.node_errors import GpuUnknownError, UnfitError
from worker.nvml import open_gpu
from worker.settings import SANDBOXES, load_node_config
from worker.stopping import Stopping

REPOSITORY = Path(__file__).parents[2]


def config(tmp_path, **said):
    return load_node_config({"LADDER_WORK": str(tmp_path), **said})


@pytest.fixture
def fake(monkeypatch):
    made = FakeNvml()
    monkeypatch.setattr(node_module, "open_gpu", lambda wanted: open_gpu(wanted, made))
    return made


@pytest.mark.parametrize(
    ("said", "device", "lanes"),
    [
        ("auto", ("NVIDIA B200", (10, 0)), (Lane.b200,)),
        ("h200", ("NVIDIA H200", (9, 0)), (Lane.h200,)),
        ("h200,cpu", ("NVIDIA H200", (9, 0)), (Lane.h200, Lane.cpu)),
    ],
)
def test_a_lane_is_what_the_device_belongs_to(tmp_path, said, device, lanes):
    gpu = open_gpu(nvml=FakeNvml(name=device[0], capability=device[1]))
    assert lanes_of(config(tmp_path, LADDER_LANES=said), gpu) == lanes


def test_a_lane_that_the_device_does_not_belong_to_is_refused(tmp_path):
    gpu = open_gpu(nvml=FakeNvml())
    with pytest.raises(UnfitError, match="says b200, and this device belongs to h200"):
        lanes_of(config(tmp_path, LADDER_LANES="b200"), gpu)
    with pytest.raises(GpuError, match="no lane"):
        lanes_of(config(tmp_path, LADDER_LANES="auto"), open_gpu(nvml=FakeNvml(name="NVIDIA A10")))


def test_a_judge_that_is_not_ours_answers_for_its_own_device(tmp_path, fake):
    told = config(tmp_path, LADDER_LANES="h100,b200", LADDER_JUDGE="another judge")
    assert lanes_of(told, None) == (Lane.h100, Lane.b200)
    node = node_module.compose(told, Stopping(1.0))
    assert (node.gpu, node.serves.lanes) == (None, (Lane.h100, Lane.b200))


def test_without_nvml_a_child_is_asked(tmp_path, monkeypatch):
    def child(text):
        monkeypatch.setattr(lanes_module, "_CHILD", f"print({text!r})")
        return lanes_of(config(tmp_path, LADDER_LANES="auto", LADDER_GPU=gpu), None)

    gpu = ""
    assert child('[["NVIDIA H100 80GB HBM3", [9, 0]]]') == (Lane.h100,)
    assert child("[]") == (Lane.cpu,)
    with pytest.raises(GpuUnknownError, match="2 GPUs"):
        child('[["NVIDIA H200", [9, 0]], ["NVIDIA H200", [9, 0]]]')
    gpu = "GPU-a"
    with pytest.raises(GpuUnknownError, match="0 GPUs"):
        child("[]")


def test_the_child_that_is_asked_runs_here():
    done = subprocess.run([sys.executable, "-c", lanes_module._CHILD], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[")


def test_a_node_on_the_cpu_asks_nobody_and_locks_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(node_module, "open_gpu", lambda _: pytest.fail("there is nothing to ask"))
    made = compose(config(tmp_path), Stopping(1))
    assert (made.serves.lanes, made.gpu, made.device.hygiene) == ((Lane.cpu,), None, None)
    with made.device.lock.held(Work.measure, patience_s=0), made.device.lock.held(Work.measure, patience_s=0):
        pass


def test_a_node_on_a_gpu_serves_that_one_and_its_judge_sees_no_other(tmp_path, fake):
    fake.uuids = ("GPU-aaaa", "GPU-bbbb")
    said = config(tmp_path, LADDER_LANES="auto", LADDER_GPU="GPU-b", LADDER_SANDBOX_POOL="2", LADDER_SANDBOX="docker")
    made = compose(said, Stopping(1))
    assert (made.serves.lanes, made.gpu.uuid) == ((Lane.h200,), "GPU-bbbb")
    assert made.serves.facts["gpu uuid"] == "GPU-bbbb"
    assert environment(said, made.gpu) == {"LADDER_SANDBOX_POOL": "2", "CUDA_VISIBLE_DEVICES": "GPU-bbbb"}
    assert made.judge._command[-4:] == [SANDBOXES["docker"], "serve", "--lane", "h200"]
    assert made.device.hygiene._ours is not below_this_process, "containers are below the daemon, not below us"


@pytest.mark.parametrize(("driver", "swept"), [("docker", [{"LADDER_SANDBOX_POOL": "2"}]), ("process", [])])
def test_what_a_judge_leaves_in_docker_is_swept_where_docker_is_used(tmp_path, monkeypatch, driver, swept):
    pytest.importorskip("docker")
    asked = []
    monkeypatch.setattr("worker.containers.sweep_left_over", asked.append)
    made = compose(config(tmp_path, LADDER_SANDBOX=driver, LADDER_SANDBOX_POOL="2"), Stopping(1))
    made.judge._command = [sys.executable, "-c", "input()"]
    made.judge.start()
    made.judge.kill()
    assert asked == swept


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_daemon_that_does_not_answer_keeps_no_judge_from_ending(monkeypatch, caplog):
    pytest.importorskip("docker")
    from worker.containers import ours, sweep_left_over  # noqa: PLC0415  (where the SDK is)

    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    sweep_left_over({})
    sweep_left_over({"LADDER_SANDBOX_POOL": "some"})
    assert len([one for one in caplog.messages if "is left for the next one" in one]) == 2
    assert ours() == frozenset()
    # The package drops a socket that could not connect, and Python says so when it is collected: here, not in whichever
    # test comes then, so nothing may hold the error any more.
    for record in caplog.records:
        record.msg, record.args, record.exc_info = record.getMessage(), (), None
    gc.collect()


def test_a_judge_that_is_not_ours_is_started_as_its_owner_said(tmp_path):
    assert compose(config(tmp_path, LADDER_JUDGE="stand in", LADDER_LANES="h200"), Stopping(1)).judge._command == [
        "stand",
        "in",
    ]


def test_strangers_code_needs_more_than_the_process_sandbox(tmp_path):
    with pytest.raises(UnfitError, match="untrusted code"):
        config(tmp_path, LADDER_UNTRUSTED="1")
    assert config(tmp_path, LADDER_UNTRUSTED="1", LADDER_SANDBOX="docker").sandbox.driver == "docker"
    with pytest.raises(ValueError, match="LADDER_SANDBOX has to be one of"):
        config(tmp_path, LADDER_SANDBOX="chroot")


def test_a_worker_that_must_not_serve_ends_with_a_message_and_no_trace(tmp_path):
    NodeKey.generate().save(tmp_path / "node-local.key")
    told = {"LADDER_UNTRUSTED": "1", "LADDER_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "worker"], cwd=REPOSITORY, env={**os.environ, **told}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "untrusted code" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_node_whose_folder_submissions_could_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "tools").mkdir()
    monkeypatch.setattr(toolchain, "readable", lambda: (str(tmp_path / "tools"),))
    with pytest.raises(UnfitError, match="which every submission may read"):
        config(tmp_path / "tools" / "work")
    with pytest.raises(UnfitError, match="The node's secret"):
        load_node_config({"LADDER_WORK": str(tmp_path)}, secrets=(tmp_path / "tools" / "key",))
    assert config(tmp_path).work == tmp_path


def test_the_key_is_its_owners_to_read_and_no_submissions(tmp_path):
    path = tmp_path / "node-local.key"
    NodeKey.generate().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert load_config({"LADDER_HOME": str(tmp_path)}).node.secrets == (path,)


def test_the_worker_has_no_torch():
    program = "import sys, worker.main, worker.accept; sys.exit('torch' in sys.modules or 'docker' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True)
