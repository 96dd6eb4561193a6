"""What is said of a source in Python's syntax: whether it plausibly compiles, and its form for compilers.

The form leaves out comments, layout, docstrings and constants that stand alone.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_READS_ITSELF = frozenset({
    "__doc__", "__file__", "__code__", "__dict__", "__globals__", "__builtins__", "__spec__", "__loader__",
    "__traceback__", "__getattribute__", "__getattr__", "__import__", "__reduce__", "__reduce_ex__",
    "getattr", "vars", "globals", "locals", "eval", "exec", "compile", "open", "help", "attrgetter", "methodcaller",
    "format", "format_map", "vformat", "modules", "_getframe", "_current_frames", "settrace", "setprofile", "f_code",
    "f_lineno", "tb_lineno", "lineno", "findCaller", "asm", "src", "_src", "raw_src", "cache_key", "hash", "parse",
    "starting_line_number", "inspect", "linecache", "tokenize", "traceback", "pydoc", "dis", "ast", "gc", "ctypes",
    "importlib", "pickle", "copyreg", "logging", "warnings", "breakpoint", "*",
    # Of torch and triton: what reads sources, takes traces, maps files, or names a kernel by a hash of its text.
    "package", "utils", "fx", "hub", "export", "overrides", "serialization", "multiprocessing", "testing",
    "profiler", "autograd", "onnx", "library", "ops", "classes", "distributed", "monitor", "from_file",
    "compiler", "runtime", "knobs", "metadata", "packed_metadata", "disasm", "link", "build_extern",
})  # fmt: skip
"""Names by which Python reads its own text, docstrings and lines, a Triton kernel's among them, or reaches such names
without spelling them. It is no wall: whoever finds another way has a hole to report."""
_INNER = ("_", "gi_", "cr_", "ag_", "co_", "f_", "tb_")
"""How the names begin of what is not for everybody, and of what generators, code, frames and tracebacks have."""
_MODULES = frozenset({"__future__", "math", "torch"})
"""What kernels are written with in every language. Of any other module it is not known what it can read."""
_SETS = frozenset({"setattr", "delattr", "memoryview"})
"""Built-ins by which a program changes what is not its own."""
_OWN_METHODS = frozenset({"__init__"})
_JIT = "jit"
_OTHER_LINE_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Python compiles none of them as the end of a line, and runners split lines there until they were made to count as it
does (`autograder/runner/source.py`): Triton, which takes a kernel's text by the number of its line, found another one,
and be it in a comment. Nodes of an older release still do."""


@dataclass(frozen=True)
class PythonText:
    """Sources of one language that is written in Python.

    Attributes:
        modules: of the language's own that a kernel imports, beside torch and math.
        compilers: names whose `jit` compiles a kernel. Torch's reads a function's source, comments on types among it.
    """

    modules: frozenset[str]
    compilers: frozenset[str]

    def normal_form(self, text: str) -> str:
        """The source as its tree.

        Raises:
            ValueError: it may read itself, or reaches what nobody knows.
            SyntaxError, RecursionError, MemoryError: it is not read.
        """
        if _OTHER_LINE_ENDS.search(text):
            raise ValueError("lines that only some readers end")
        tree = _parsed(text)
        names = _names(tree)
        if any(name in _READS_ITSELF or name.startswith(_INNER) for name in names) or any(self._reaches(tree)):
            raise ValueError("the source may read itself")
        return ast.dump(_Quiet().visit(tree))

    def reaches(self, text: str) -> str:
        """What in the source may reach the process that it runs in, rather than only compute; `""` if nothing is seen.

        No wall, as the form is none: it says whose counters a person looks at before they give points.
        """
        try:
            text = text.removeprefix("\ufeff")
            tree = ast.parse(self.normal_form(text) and text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return "it imports or names what may reach the interpreter"
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(ctx=ast.Store() | ast.Del(), attr=name):
                    return f"it sets `{name}` of an object"
                case ast.Name(id=name) if name in _SETS:
                    return f"it uses `{name}`"
                case ast.Try() | ast.TryStar():
                    return "it catches errors"
        return ""

    def _reaches(self, tree: ast.AST) -> Iterator[bool]:
        """Whether a statement reaches another module, or an error: these say what stands in a kernel, and where."""
        known = _MODULES | self.modules
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    parts = [item.name.split(".") for item in names]
                    yield any(first not in known or _JIT in rest for first, *rest in parts)
                case ast.ImportFrom(module=name, names=names, level=level):
                    first, *rest = str(name).split(".")
                    yield level > 0 or first not in known or _JIT in rest
                    yield name not in self.compilers and any(item.name == _JIT for item in names)
                case ast.ExceptHandler(name=name):
                    yield name is not None
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name.startswith("__") and name not in _OWN_METHODS
                case ast.Attribute(attr=name, value=of) if name == _JIT:
                    yield not (isinstance(of, ast.Name) and of.id in self.compilers)
                case ast.MatchClass(kwd_attrs=names):
                    yield _JIT in names
            yield self._renames_a_compiler(node)

    def _renames_a_compiler(self, node: ast.AST) -> bool:
        """Whether one of those names may be another thing's from here on."""
        match node:
            case ast.Name(ctx=ast.Load()) | ast.ImportFrom() | ast.alias(asname=None) | ast.Constant():
                return False
        return any(isinstance(value, str) and value in self.compilers for _, value in ast.iter_fields(node))


def binds(text: str, name: str) -> bool:
    """Whether the source is read, and binds this name somewhere."""
    try:
        tree = _parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The parser raises MemoryError where its own stack ends, long before memory does.
        return False
    return any(_binds(node, name) for node in ast.walk(tree))


def _binds(node: ast.AST, entry: str) -> bool:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name == entry
        case ast.Name(id=name, ctx=ast.Store()):
            return name == entry
        case ast.alias(name=name, asname=other):
            return (other or name) == entry
    return False


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # Such as an escape that Python does not know: the student's affair.
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _names(tree: ast.AST) -> Iterator[str]:
    """Those by which a program reaches what is not its own: of variables only what has the name of a built-in."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name.startswith("__") or hasattr(builtins, name):
                yield name
            case ast.Attribute(attr=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.ImportFrom(module=str(name)) if name != "__future__":
                yield from name.split(".")
            case ast.MatchClass(kwd_attrs=names):
                yield from names


class _Quiet(ast.NodeTransformer):
    """Leaves out statements that are only a constant: docstrings, and what is used as a comment."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Nothing, for a constant."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)
