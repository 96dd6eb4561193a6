"""One life of a runner that compiles a TIRx submission, where there is an nvcc: for every target in a process."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autograder.compile_checks import parts
from autograder.compile_checks.cuda_compiler import COMPILER_BYTES
from autograder.compile_checks.messages import NO_COMPILER, NO_TARGET, Compile, Part
from autograder.compile_checks.targets import NVIDIA, of_vendor
from autograder.compile_checks.traced_target import Making, TracedTarget
from autograder.languages.tirx import LANGUAGE
from autograder.protocol import Load
from autograder.runner.languages import nvcc
from autograder.runner.languages.tirx_program import Compiler, Cubins, Toolchain


def warmed() -> Callable[[socket.socket], None]:
    """What serves a channel."""
    try:
        path = nvcc.find_nvcc()
    except RuntimeError:
        return lambda channel: parts.serve(
            channel, lambda _request, _text: lambda part, code: parts.nothing(part, NO_COMPILER, code)
        )
    known, toolchain = nvcc.known_targets(path, of_vendor(NVIDIA)), Toolchain()
    toolchain.install()

    def compiler(entry: Callable[..., Any], load: Load, target: str, folder: str) -> Compiler:
        return Compiler(entry, load, toolchain, Cubins(path, target, Path(folder), COMPILER_BYTES), runs=False)

    making = Making(LANGUAGE.id, compiler)

    def prepared(request: Compile, text: str) -> parts.CompilePart:
        def compile_part(part: Part, code: int) -> dict[str, Any]:
            if part.target not in known:
                return parts.nothing(part, NO_TARGET, code)
            return TracedTarget(request, part, text, making).told(code)

        return compile_part

    return lambda channel: parts.serve(channel, prepared)
