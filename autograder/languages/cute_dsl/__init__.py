"""CuTe DSL, CUTLASS's kernels in Python: compiled for the GPU of the lane, and for devices that are not there.

The entry describes what is launched: it is traced and compiled once for every layout of its tensors, and what came of
that is called. Of NVIDIA's package no image contains a copy: whoever runs a node installs it.
"""

from __future__ import annotations

from autograder.languages.python_text import PythonText, binds
from autograder.languages.record import ErrorKind, Record

_TEXT = PythonText(modules=frozenset({"cutlass", "functools"}), compilers=frozenset({"cute"}))

LANGUAGE = Record(
    id="cute_dsl",
    title="CuTe DSL",
    order=5,
    endings=(".py",),
    recognised_by=r"^\s*(?:import|from)\s+cutlass\b",
    editor_mode="python",
    lexer="python",
    normal_form=_TEXT.normal_form,
    declares=binds,
    cpu_lane="Nothing interprets CuTe DSL: submit it on a GPU lane.",
    gpu_loader="autograder.runner.languages.cute_gpu:CuteGpuLoader",
    error_kinds={"CompilationError": ErrorKind(), "OutOfResources": ErrorKind(at_launch=True)},
    compiler="autograder.compile_checks.cute_session:warmed",
    compile_s=20.0,
    brings_compiler=True,
    calls_libraries=False,
    extra="cutedsl",
    in_images=False,
    imports=("nvidia_cutlass_dsl",),
    # Of the distribution `nvidia-cutlass-dsl` there is only a line more, which would bring a second copy for CUDA 12.
    packages=("nvidia-cutlass-dsl-libs-cu13>=4.8.1,<4.9",),
)
