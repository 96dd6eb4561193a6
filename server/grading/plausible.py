"""Whether a source plausibly compiles, as far as can be told without running or compiling any of it.

A place in the queue is worth keeping only for something that can be graded; a file of noise must not reserve one. The
answer decides nothing else, so it may be wrong: what looks well and does not compile gives its place back later.
"""

from __future__ import annotations

import ast
import re
import warnings

from autograder.contract import Language

MOST_BYTES = 65_536
"""Longer sources are parsed nowhere in the server: it takes a millisecond and up to a megabyte for each kilobyte. Here
they do not count."""


def compiles(source: bytes, language: Language, entry: str) -> bool:
    """Whether it plausibly compiles: Triton parses as Python and binds the entry, CUDA names it before a bracket."""
    if len(source) > MOST_BYTES:
        return False
    try:
        text = source.decode()
    except UnicodeDecodeError:
        return False
    if language is Language.triton:
        return _python_binds(text, entry)
    return re.search(rf"\b{re.escape(entry)}\s*\(", text) is not None


def _python_binds(text: str, entry: str) -> bool:
    try:
        with warnings.catch_warnings():
            # Such as an escape that Python does not know: the student's affair.
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The parser raises MemoryError where its own stack ends, long before memory does.
        return False
    return any(_binds(node, entry) for node in ast.walk(tree))


def _binds(node: ast.AST, entry: str) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name == entry
        case ast.Name(id=name, ctx=ast.Store()):
            return name == entry
        case ast.alias(name=name, asname=other):
            return (other or name) == entry
    return False
