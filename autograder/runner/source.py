"""Executing a source as a module of its own, so that tracebacks and `inspect` see the student's lines."""

from __future__ import annotations

import inspect
import io
import linecache
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from autograder.protocol import Load
from autograder.runner.report import SubmissionError

_SHOWN = 8
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def execute(load: Load) -> ModuleType:
    """Run the source; the module that has the functions, which is the adapter's where one is given."""
    module = _executed(load.source, load.filename)
    # Its name is no path of a file's: no frame of it is taken for the student's.
    return _executed(load.adapter, "<adapter>") if load.adapter else module


def _executed(source: str, filename: str) -> ModuleType:
    """Run a source as a module named for its file."""
    name = re.sub(r"\W", "_", filename.rpartition("/")[2].removesuffix(".py")) or "submission"
    module = ModuleType(f"submission_{name}" if name in sys.modules or name[0].isdigit() else name)
    module.__file__ = filename
    # Lines end where they end for the compiler. `str.splitlines` knows more ends, such as a form feed: Triton takes
    # a kernel's text by its line's number, and could then find it in a comment.
    lines = io.StringIO(source, newline=None).readlines()
    # No modification time: `linecache` then never looks for the file.
    linecache.cache[filename] = (len(source), None, lines, filename)
    sys.modules[module.__name__] = module
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 -- in the sandbox.
    return module


def find_entry(module: ModuleType, load: Load, kernels: tuple[type, ...] = ()) -> tuple[Callable[..., Any], str]:
    """The entry function and its signature as text; `kernels` are types that are no function of the host's."""
    entry = module.__dict__.get(load.entry)
    wanted = f"{load.entry}({', '.join(load.arguments)})"
    if entry is None:
        raise SubmissionError("entry", "MissingEntry", _missing(module, wanted))
    if not callable(entry):
        raise SubmissionError("entry", "MissingEntry", f"`{load.entry}` is not a function.")
    if isinstance(entry, kernels):
        message = f"`{load.entry}` is a kernel. The entry has to be a function `{wanted}` that launches one."
        raise SubmissionError("entry", "WrongSignature", message)
    return entry, _check_signature(entry, wanted, load.arguments)


def _missing(module: ModuleType, wanted: str) -> str:
    own = [name for name, value in module.__dict__.items() if getattr(value, "__module__", None) == module.__name__]
    defined = f" It defines {', '.join(f'`{name}`' for name in own[:_SHOWN])}." if own else ""
    return f"The file defines no function `{wanted}`.{defined}"


def _check_signature(entry: Callable[..., Any], wanted: str, arguments: tuple[str, ...]) -> str:
    name = wanted.partition("(")[0]
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        raise SubmissionError("entry", "WrongSignature", f"`{name}` has to be a function `{wanted}`.") from None
    if not _fits(signature, arguments):
        message = f"The entry has to be `{wanted}`; the file has `{name}{signature}`."
        raise SubmissionError("entry", "WrongSignature", message)
    return str(signature)


def _fits(signature: inspect.Signature, arguments: tuple[str, ...]) -> bool:
    """Whether it can be called with these arguments in order, named alike, and needs no others."""
    parameters = list(signature.parameters.values())
    named = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    free = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    names = tuple(parameter.name for parameter in named)
    others = [*named[len(arguments) :], *(one for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY)]
    if any(other.default is inspect.Parameter.empty for other in others):
        return False
    return names[: len(arguments)] == arguments or (free and names == arguments[: len(names)])
