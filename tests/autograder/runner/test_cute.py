"""CuTe DSL without a GPU: how often an entry is traced and with what, and what is read of a compiled program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autograder import languages
from autograder.runner.languages import cute_program

ROOT = Path(__file__).parents[3]

# The DSL is hooked into for good: a process of its own. Ghosts launch nothing, so that programs can be called here.
_RUNS = """
import json, sys
import torch
from autograder.protocol import Load
from autograder.runner import source
from autograder.runner.languages import cute_program
from autograder.runner.languages.traced import Program, Programs
from autograder.runner.report import describe
hooks = cute_program.Hooks()
hooks.install()
hooks.ghosts = True
words = ("input float32", "output float32", "integer", "scalar float32")
said = []
for text in json.load(sys.stdin):
    load = Load(text, "kernel.py", "", "scale", ("x", "out", "n", "by"), signatures=(words,))
    module = source.execute(load)
    programs = Programs(cute_program.Compiler(module.scale, load, hooks, "--gpu-arch sm_90a"))
    whole = torch.arange(64, dtype=torch.float32)
    try:
        for tensor, by in ((whole, 0.5), (whole, 0.25), (whole[1:33], 0.5), (whole[::2], 0.5)):
            programs.call([tensor, tensor.clone(), tensor.numel(), by])
        said.append(module.TRACED)
    except BaseException as error:
        said.append(describe(error, "kernel.py", ()))
# No device is here to say it.
import cuda.bindings.runtime
from cutlass.base_dsl.runtime.cuda import create_cuda_runtime_error as error_of
failing = []
compiler = cute_program.Compiler(module.scale, load, hooks)
for code in (700, 9):
    def call():
        raise error_of(code, cuda.bindings.runtime.cudaError_t)
    try:
        compiler.launch(Program(call, ()), ())
    except BaseException as error:
        failing.append(describe(error, "kernel.py", ())["message"])
said.append(failing)
print(json.dumps(said))
"""
KERNEL = """
import cutlass.cute as cute

TRACED = []

@cute.kernel
def _scale(x, out, by):
    out[0] = x[0] * by

def scale(x, out, n, by):
    TRACED.append([n, list(x.shape), list(x.stride), x.iterator.alignment, type(by).__name__])
    _scale(x, out, by).launch(grid=[1, 1, 1], block=[1, 1, 1])
"""
FORGOTTEN = KERNEL.replace(".launch(grid=[1, 1, 1], block=[1, 1, 1])", "")


@pytest.fixture(scope="module")
def said() -> list[Any]:
    pytest.importorskip("nvidia_cutlass_dsl", reason="the extra cutedsl is not installed")
    done = subprocess.run(
        [sys.executable, "-c", _RUNS], input=json.dumps([KERNEL, FORGOTTEN]), capture_output=True, text=True, cwd=ROOT,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_entry_is_traced_once_for_every_layout_and_numbers_are_not_a_part_of_it(said: list[Any]) -> None:
    assert said[0] == [
        [64, [64], [1], 16, "Float32"], [32, [32], [1], 4, "Float32"], [32, [32], [2], 16, "Float32"],
    ]  # fmt: skip


def test_what_the_dsl_refuses_is_told_in_the_students_line(said: list[Any]) -> None:
    assert said[1]["kind"] == "CompilationError"
    assert said[1]["frames"][-1]["line"] == 12
    assert "never launched" in said[1]["message"]


def test_what_the_runtime_names_is_told_in_the_words_that_the_judge_knows(said: list[Any]) -> None:
    assert said[2] == [
        "an illegal memory access: cudaErrorIllegalAddress (error code: 700)",
        "no device takes this grid or block: cudaErrorInvalidConfiguration (error code: 9)",
    ]


HOST_CODE = """
    %9 = llvm.mlir.constant(0 : i64) : i64
    %10 = llvm.mlir.constant(49152 : i64) : i64
    %18 = llvm.getelementptr %12[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, i64)>
    llvm.store %10, %18 : i64, !llvm.ptr
    %19 = llvm.getelementptr %12[0, 3] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, i64)>
    llvm.store %9, %19 : i64, !llvm.ptr
    %28 = llvm.getelementptr %22[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, i64)>
    llvm.store %arg3, %28 : i64, !llvm.ptr
    %38 = llvm.getelementptr %32[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, i64)>
    llvm.store %9, %38 : i64, !llvm.ptr
"""


def test_shared_memory_is_read_of_every_launch_and_is_0_where_it_is_not_known_yet() -> None:
    assert cute_program._shared_bytes(HOST_CODE) == [49152, 0, 0]


def test_a_file_is_recognised_by_what_it_imports_or_says() -> None:
    for text, language in {
        "import cutlass\n": "cute_dsl",
        "import torch\nfrom cutlass import cute\n": "cute_dsl",
        "# language: cute_dsl\nimport quack\n": "cute_dsl",
        "import cutlass_library\n": "triton",
        "import triton\n": "triton",
        "import triton\nimport cutlass\n": "triton",
    }.items():
        found = languages.of_file("kernel.py", text)
        assert found is not None
        assert found.id == language, text
