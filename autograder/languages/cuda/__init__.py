"""CUDA C++: emulated on the CPU lane, compiled by nvcc on a GPU."""

from __future__ import annotations

from autograder.languages import cpp_text
from autograder.languages.cuda import headers
from autograder.languages.record import ErrorKind, Record

LANGUAGE = Record(
    id="cuda",
    title="CUDA C++",
    order=2,
    endings=(".cu", ".cuh"),
    editor_mode="cpp",
    lexer="cuda",
    normal_form=cpp_text.normal_form,
    declares=cpp_text.names_before_bracket,
    cpu_lane="An emulator runs it, compiled by g++.",
    cpu_loader="autograder.runner.languages.cuda:CudaLoader",
    gpu_loader="autograder.runner.languages.cuda_gpu:CudaGpuLoader",
    error_kinds={
        "CompileError": ErrorKind(),
        "GpuOnly": ErrorKind(),
        "MissingOverload": ErrorKind(),
        "LauncherError": ErrorKind(),
        "LaunchError": ErrorKind(at_launch=True),
        "OutOfResources": ErrorKind(at_launch=True),
        "IllegalAccess": ErrorKind("illegal_access"),
        "MisalignedAddress": ErrorKind("illegal_access"),
        "BarrierError": ErrorKind(),
        "WarpError": ErrorKind(),
        "WaitsForAnotherBlock": ErrorKind(),
        "DataRace": ErrorKind("wrong_answer", "The result depends on timing."),
        "AssertionFailed": ErrorKind(),
        "Trap": ErrorKind(),
    },
    compiler="autograder.compile_checks.cuda_session:warmed",
    compile_s=30.0,
    compiled_at_load=True,
    optional={headers.EXTRA: headers.PACKAGES},
    counted_by="emulator",
    reaches=cpp_text.reaches,
    system=("g++", "libc6-dev"),
    name_in_code=lambda filename: cpp_text.shown_name(filename.rpartition("/")[2]),
)
