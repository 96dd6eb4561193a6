"""Kernels that are compiled ahead are launched by a door of their own, which record and ghosts watch too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, torch, triton, triton.language as tl
from triton.runtime import driver
from autograder.compile_checks import absent, dry
from autograder.compile_checks.targets import TARGETS
from autograder.runner.languages import launches
from autograder.runner.record import Record

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

absent.stand_in(TARGETS["sm_90a"])
reached = []
class Launcher:
    def __init__(self, src, metadata): pass
    def __call__(self, *sizes): reached.append(list(sizes[:3]))
driver.active.launcher_cls = Launcher
record = Record()
switch = launches.install(record)
said = {}
with dry.without_memory():
    x = torch.empty(64, device="cuda")
    record.recording = True
    ahead = double.warmup(x, 64, BLOCK=64, grid=(1,))
    said["after warmup"] = record.seen()["launches"]
    ahead[(5, 1, 1)](x, 64, 64)
    double[(3,)](x, 64, BLOCK=64)
    said["launched"] = record.seen()["launches"]
    said["reached"] = list(reached)
    switch(True)
    ahead[(7, 1, 1)](x, 64, 64)
    double[(9,)](x, 64, BLOCK=64)
    said["reached with ghosts"] = reached[2:]
print(json.dumps(said))
"""


@pytest.mark.full("slow")
def test_a_kernel_compiled_ahead_is_recorded_and_can_be_a_ghost(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["after warmup"] == [], "compiling is no launch"
    counted = {tuple(one["grid"]): one["calls"] for one in said["launched"]}
    assert counted == {(5, 1, 1): 1, (3,): 1}
    assert said["reached"] == [[5, 1, 1], [3, 1, 1]]
    assert said["reached with ghosts"] == []
