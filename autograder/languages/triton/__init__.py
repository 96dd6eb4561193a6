"""Triton: interpreted on the CPU lane, compiled by its own compiler on a GPU."""

from __future__ import annotations

from autograder.languages.python_text import PythonText, binds
from autograder.languages.record import ErrorKind, Record

_TEXT = PythonText(modules=frozenset({"triton"}), compilers=frozenset({"triton", "gluon"}))

LANGUAGE = Record(
    id="triton",
    title="Triton",
    order=1,
    endings=(".py",),
    recognised_by=r"^\s*(?:import|from)\s+triton\b",
    editor_mode="python",
    lexer="python",
    normal_form=_TEXT.normal_form,
    declares=binds,
    cpu_lane="Triton's interpreter runs it.",
    cpu_loader="autograder.runner.languages.triton:TritonLoader",
    gpu_loader="autograder.runner.languages.triton_gpu:TritonGpuLoader",
    error_kinds={
        "CompilationError": ErrorKind(),
        "OutOfResources": ErrorKind(at_launch=True),
        "DataRace": ErrorKind("wrong_answer", "The result depends on timing."),
    },
    compiler="autograder.compile_checks.triton_session:warmed",
    compiles_for=("nvidia", "amd"),
    compile_s=20.0,
    brings_compiler=True,
    counted_by="interpreter",
    reaches=_TEXT.reaches,
    precompiles=True,
    warm=True,
    environment={"TRITON_INTERPRET": "1"},
    driver_environment=("TRITON_LIBCUDA_PATH",),
    kept_environment=("TRITON_",),
    packages=("triton>=3.7.1,<3.10",),
    # A launcher is compiled for every kernel.
    system=("gcc", "libc6-dev", "python3-dev"),
    imports=("triton",),
)
