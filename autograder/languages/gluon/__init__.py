"""Gluon, Triton's sibling: the same loader and compiler, layouts and memory in the student's hands, and no interpreter.

A file that uses it is valid Triton too, and is taken as that unless it is said to be Gluon: by its first lines, its
name, the command or the page.
"""

from __future__ import annotations

from dataclasses import replace

from autograder.languages.triton import LANGUAGE as TRITON

LANGUAGE = replace(
    TRITON,
    id="gluon",
    title="Gluon",
    order=3,
    recognised_by="",
    # A layout says how many threads a warp has: 32 there, 64 on AMD's devices.
    compiles_for=("nvidia",),
    cpu_lane="Triton's interpreter does not know Gluon: submit it on a GPU lane.",
    cpu_loader="",
    counted_by="",
    warm=False,
    environment={},
)
