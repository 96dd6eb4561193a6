"""The record of compiled launches, and ghosts. A ghost needs no GPU: it is a launch that does not happen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, torch, triton, triton.language as tl
from autograder.runner.languages import launches
from autograder.runner.record import Record

@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)

@triton.autotune([triton.Config({"BLOCK": 8})], key=["n"], do_bench=lambda run, quantiles: [1.0] * 3)
@triton.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, n)

record = Record()
switch = launches.install(record)
switch(True)
x = torch.ones(8)
double[(3, 2)](x, 8, BLOCK=8)
record.recording = True
double[(3, 2)](x, 8, BLOCK=8)
double[lambda meta: (triton.cdiv(8, meta["BLOCK"]),)](x, 8, BLOCK=8)
double[lambda meta: 1 / 0](x, 8, BLOCK=8)
tuned[lambda meta: (meta["BLOCK"],)](x, 8)
switch(False)
try:
    double[(1,)](x, 8, BLOCK=8)
    reached = True
except Exception as error:
    reached = type(error).__name__
print(json.dumps({"seen": record.seen()["launches"], "x": x.tolist(), "without ghosts": reached}))
"""


def test_ghosts_do_nothing_and_launches_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["x"] == [1.0] * 8
    assert said["without ghosts"] is not True, "a launch that is no ghost reaches the driver, and there is none"
    counted = {(one["kernel"], tuple(one["grid"])): one["calls"] for one in said["seen"]}
    assert counted["double", (3, 2)] == 1
    assert counted["double", (1,)] == 2
    assert counted["double", ()] == 1
    assert counted["tuned", (8,)] >= 1
