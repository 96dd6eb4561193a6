"""One life of a runner that compiles a CuTe DSL submission: for every target in a process of its own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from autograder.compile_checks import parts
from autograder.compile_checks.traced_target import Making, TracedTarget
from autograder.languages.cute_dsl import LANGUAGE
from autograder.protocol import Load
from autograder.runner.languages import cute_program
from autograder.runner.languages.cute_program import Compiler


def warmed() -> Callable[[socket.socket], None]:
    """What serves a channel."""
    hooks = cute_program.Hooks()
    hooks.install()

    def compiler(entry: Callable[..., Any], load: Load, target: str, folder: str) -> Compiler:
        return Compiler(entry, load, hooks, f"--gpu-arch {target} --keep-cubin --keep-ptx --dump-dir {folder}")

    making = Making(LANGUAGE.id, compiler)
    return lambda channel: parts.serve(
        channel, lambda request, text: lambda part, code: TracedTarget(request, part, text, making).told(code)
    )
