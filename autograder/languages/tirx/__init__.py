"""TIRx, the tile language of Apache TVM: lowered to CUDA C++, and compiled by nvcc, for the GPU of the lane and others.

The entry makes the kernel: it is called once for every layout of its tensors, with descriptions of them, and returns
what `T.prim_func` made, which is then called with the tensors.
"""

from __future__ import annotations

from autograder.languages.python_text import PythonText, binds
from autograder.languages.record import ErrorKind, Record

_TEXT = PythonText(modules=frozenset({"tvm", "functools"}), compilers=frozenset())

LANGUAGE = Record(
    id="tirx",
    title="TIRx",
    order=6,
    endings=(".py",),
    recognised_by=r"^\s*(?:import|from)\s+tvm\b",
    editor_mode="python",
    lexer="python",
    normal_form=_TEXT.normal_form,
    declares=binds,
    cpu_lane="Nothing runs TIRx without a GPU: submit it on a GPU lane.",
    gpu_loader="autograder.runner.languages.tirx_gpu:TirxGpuLoader",
    error_kinds={
        "CompilationError": ErrorKind(),
        "PTXASError": ErrorKind(),
        "LaunchError": ErrorKind(at_launch=True),
        "OutOfResources": ErrorKind(at_launch=True),
    },
    compiler="autograder.compile_checks.tirx_session:warmed",
    compile_s=30.0,
    calls_libraries=False,
    extra="tirx",
    imports=("tvm",),
    packages=("apache-tvm>=0.26,<0.27", "apache-tvm-ffi==0.1.15.post2"),
)
