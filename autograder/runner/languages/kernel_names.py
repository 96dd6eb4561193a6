"""A kernel names and calls what triton compiles, and nothing else of Python.

Triton's interpreter runs a kernel's body as Python: there it could use any variable of the file and call numpy. What a
compiler for a GPU refuses is refused here, with its own words and what to do instead.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Hashable, Mapping
from types import ModuleType
from typing import Any

import triton.language as tl
from triton import knobs
from triton.compiler.code_generator import CodeGenerator
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import ConstexprFunction, JITCallable

_BUILT_IN = CodeGenerator.builtin_namespace
_KERNELS: tuple[type[Any], ...] = (InterpretedFunction, JITCallable)
_LIBRARIES = frozenset({"autograder", "math", "triton"})
"""Whose functions a kernel may call: triton's, our own in their place, and Python's on constants."""


def unknown(scope: Mapping[str, Any], own: set[str], name: str) -> bool:
    """Whether a compiler would refuse a name.

    Args:
        scope: what the kernel's file and the functions around it define.
        own: what the kernel defines itself.
        name: of them, or of Python's.
    """
    if name in own or name in _BUILT_IN:
        return False
    return name not in scope or not _of_a_kernel(scope[name])


def _of_a_kernel(value: Any) -> bool:
    if knobs.compilation.allow_non_constexpr_globals:
        return True
    known = isinstance(value, (ModuleType, tl.constexpr, tl.dtype, *_KERNELS)) or _is_tritons(value)
    return known or _library(getattr(value, "__module__", None)) in _LIBRARIES - {"math"}


def _is_tritons(value: Any) -> bool:
    marks = ("__triton_builtin__", "__triton_aggregate__")
    is_named_tuple = isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")
    return is_named_tuple or any(getattr(value, mark, False) for mark in marks)


def _library(module: object) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def refuse(name: str, here: bool) -> Any:
    """What stands in place of a name that a compiler refuses."""
    if not here:
        raise NameError(
            f"{name} is not defined in a kernel: Triton compiles only a few of Python's functions. Look for it in "
            f"triton.language."
        )
    raise NameError(
        f"Cannot access global variable {name} from within @jit'ed function. A kernel sees the file's constants only "
        f"as `{name} = tl.constexpr(…)`; pass anything else as an argument, and a function needs @triton.jit."
    )


def callee(function: Any) -> Any:
    """A function that a kernel may call."""
    if isinstance(function, ConstexprFunction):
        return _once(function)
    if isinstance(function, _KERNELS) or _is_tritons(function):
        return function
    if isinstance(function, functools.partial):
        callee(function.func)
        return function
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        known = _library(getattr(function, "__module__", None)) in _LIBRARIES
    else:
        module = (owner if isinstance(owner, type) else type(owner)).__module__
        known = _library(module) in _LIBRARIES or module == "builtins"
    # The interpreter prints what is static by Python's own.
    if known or function is print or function in _BUILT_IN.values():
        return function
    name = getattr(function, "__qualname__", type(function).__qualname__)
    raise TypeError(
        f"A kernel calls {name}, which is plain Python and is not compiled. Give it @triton.jit, or call it on the "
        f"host and pass what it returns as an argument."
    )


@functools.cache
def _once(function: Any) -> Callable[..., Any]:
    """A compiler calls it when it meets new constants, and not at every launch. Its hash is triton's look into it."""
    kept = functools.cache(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        constant = all(isinstance(value, Hashable) for value in (*args, *kwargs.values()))
        return (kept if constant else function)(*args, **kwargs)

    return call


class OwnNames(ast.NodeVisitor):
    """What a kernel defines: its parameters and what it assigns."""

    def __init__(self, tree: ast.AST) -> None:
        self.found: set[str] = set()
        self.visit(tree)

    def visit_Name(self, node: ast.Name) -> None:
        """Assigned."""
        if isinstance(node.ctx, ast.Store):
            self.found.add(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        """A parameter; an annotation is no part of what runs."""
        self.found.add(node.arg)
