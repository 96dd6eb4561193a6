"""Compile checks in containers: the compiler, and the tools that read what it made, work in there."""

from __future__ import annotations

import dataclasses
import io
import os
import zipfile
from pathlib import Path

from autograder.assignment import load_assignment
from autograder.contract import GradeRequest, Lane, Language, Mode
from autograder.judge.compile.cache_warmup import WarmupJob
from autograder.judge.compile.cross_compile import Compilation
from autograder.sandbox.docker.sandbox import DockerSandbox
from autograder.sandbox.namespaces import TMP

ROOT = Path(__file__).parents[2]
ADD = load_assignment(ROOT / "assignments" / "vector_add")
ONE_CASE = dataclasses.replace(ADD, cases=tuple(case for case in ADD.cases if case.name == "gpu_ranked"))


def test_kernels_are_compiled_and_read_in_containers(docker_sandbox: DockerSandbox) -> None:
    source = (ROOT / "reference" / "vector_add" / "solutions" / "triton.py").read_text(encoding="utf-8")
    request = GradeRequest("vector_add", "", Language.triton, Lane.cpu, Mode.run, source, "mine.py")
    with Compilation(ONE_CASE, request, docker_sandbox) as compilation:
        found = [one.shown for one in compilation.finish().values()]
    assert [one.message for one in found] == ["", ""]
    assert all(kernel.message == "" and kernel.registers > 0 for one in found for kernel in one.kernels)
    assert all(one.kernels for one in found)


def test_kernels_are_compiled_ahead_in_a_container(docker_sandbox: DockerSandbox) -> None:
    """At the path at which a container that makes calls has its cache: triton keeps whole paths in it."""
    source = (ROOT / "reference" / "vector_add" / "solutions" / "triton.py").read_text(encoding="utf-8")
    request = GradeRequest("vector_add", "", Language.triton, Lane.h200, Mode.submission, source, "mine.py")
    begun = WarmupJob(ADD, request, docker_sandbox, ADD.cases_for(Lane.h200))
    try:
        descriptor = begun.pack()
    finally:
        begun.close()
    assert descriptor is not None
    length = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    with zipfile.ZipFile(io.BytesIO(os.pread(descriptor, length, 8))) as pack:
        groups = [pack.read(name).decode() for name in pack.namelist() if "__grp__" in name]
        assert any(name.endswith(".cubin") for name in pack.namelist())
    os.close(descriptor)
    assert groups
    assert all(f'"{TMP}/.triton/cache/' in group for group in groups)
