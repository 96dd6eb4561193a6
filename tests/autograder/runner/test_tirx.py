"""TIRx without a GPU: how often an entry is called and with what, and what its kernel is told of."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder import languages
from autograder.runner.languages import tirx_program

ROOT = Path(__file__).parents[3]

# TVM is hooked into for good: a process of its own.
_RUNS = """
import json, sys
from pathlib import Path
import torch
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.languages import nvcc
from autograder.runner.languages.tirx_program import Compiler, Cubins, Toolchain
from autograder.runner.languages.traced import Program, Programs
from autograder.runner.report import describe
toolchain = Toolchain()
toolchain.install()
cubins = Cubins(nvcc.find_nvcc(), "sm_90a", Path(sys.argv[1]))
words = ("input float32", "output float32", "integer", "scalar float32")
load = Load(json.load(sys.stdin), "kernel.py", "", "scale", ("x", "out", "n", "by"), signatures=(words,))
module = source.execute(load)
compiler = Compiler(module.scale, load, toolchain, cubins, runs=False)
programs = Programs(compiler)
whole = torch.arange(64, dtype=torch.float32)
seen = []
for tensor, by in ((whole, 0.5), (whole, 0.25), (whole[1:33], 0.5), (whole[::2], 0.5)):
    programs.call([tensor, tensor.clone(), tensor.numel(), by])
    seen.append([[launch.kernel, launch.grid, launch.block, launch.shared_bytes] for launch in programs.last.launches])
def refuses(*_):
    raise ValueError("Mismatched xs.shape[0]")
try:
    compiler.launch(Program(refuses, ()), ())
except BaseException as error:
    refused = describe(error, "kernel.py", ())
print(json.dumps({"called": module.CALLED, "seen": seen, "refused": refused}))
"""
KERNEL = """
from tvm.script import tirx as T

CALLED = []

def scale(x, out, n, by):
    CALLED.append([n, x.shape, x.strides, x.dtype, x.itemsize, x.alignment, by.dtype])

    @T.prim_func
    def scaled(x_ptr: T.handle, out_ptr: T.handle, factor: T.float32):
        xs = T.match_buffer(x_ptr, x.shape, x.dtype, strides=x.strides, layout=x.layout)
        results = T.match_buffer(out_ptr, out.shape, out.dtype, strides=out.strides, layout=out.layout)
        T.device_entry()
        row = T.cta_id([2])
        thread = T.thread_id([n // 2])
        words = T.alloc_buffer((n,), x.dtype, scope="shared.dyn")
        words[thread] = xs[row * (n // 2) + thread]
        results[row * (n // 2) + thread] = words[thread] * factor

    return scaled
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cubins")


@pytest.fixture(scope="module")
def said(made: Path) -> dict[str, Any]:
    pytest.importorskip("tvm", reason="the extra tirx is not installed")
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    done = subprocess.run(
        [sys.executable, "-c", _RUNS, str(made)], input=json.dumps(KERNEL), capture_output=True, text=True, cwd=ROOT,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_entry_is_called_once_for_every_layout_and_numbers_are_not_a_part_of_it(said: dict[str, Any]) -> None:
    assert said["called"] == [
        [64, [64], [1], "float32", 4, 16, "float32"],
        [32, [32], [1], "float32", 4, 4, "float32"],
        [32, [32], [2], "float32", 4, 16, "float32"],
    ]


def test_what_is_launched_is_read_of_the_host_code(said: dict[str, Any]) -> None:
    assert said["seen"] == [
        [["scaled_kernel", [2, 1, 1], [size, 1, 1], 8 * size]] for size in (32, 32, 16, 16)
    ]  # fmt: skip


def test_a_layout_is_a_part_of_the_kernel_and_an_alignment_is_none(said: dict[str, Any], made: Path) -> None:
    assert said["called"]
    texts = [path.read_text() for path in made.glob("*/kernel.cu")]
    assert len(texts) == 3
    assert sum("* 2)" in text.rpartition("__global__")[2] for text in texts) == 1
    assert {path.name for path in made.glob("*/*")} == {"kernel.cu", "kernel.cubin", "kernel.ptx"}
    assert len(list(made.glob("*/kernel.cubin"))) == 3


def test_a_ghosts_kernels_are_the_same_and_do_nothing(said: dict[str, Any], made: Path) -> None:
    assert said["called"]
    for path in made.glob("*/kernel.cu"):
        text = path.read_text()
        hollow = tirx_program._hollow(text)
        assert hollow.replace("{\n  return;", "{") == text
        assert hollow.count("return;") == text.count("return;") + 1


def test_what_tvm_refuses_of_a_call_is_told_as_a_launch(said: dict[str, Any]) -> None:
    assert said["refused"] == {"kind": "LaunchError", "message": "Mismatched xs.shape[0]", "frames": []}


def test_a_file_is_recognised_by_what_it_imports_or_says() -> None:
    for text, language in {
        "import tvm\n": "tirx",
        "from tvm.script import tirx as T\n": "tirx",
        "# language: tirx\nimport torch\n": "tirx",
        "import tvm_ffi\n": "triton",
        "import triton\nimport tvm\n": "triton",
    }.items():
        found = languages.of_file("kernel.py", text)
        assert found is not None
        assert found.id == language, text
