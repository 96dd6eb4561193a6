"""Compile checks in containers: the compiler, and the tools that read what it made, work in there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from autograder.assignment import load_assignment
from autograder.contract import GradeRequest, Lane, Language, Mode
from autograder.judge.compiled import Compilation
from autograder.sandbox.docker.sandbox import DockerSandbox

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
