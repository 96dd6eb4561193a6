"""Executing a source as a module of its own, so that tracebacks and `inspect` see the student's lines."""

from __future__ import annotations

import inspect
import linecache
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from autograder.protocol import Load
from autograder.runner.report import StudentProblem

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def execute(load: Load) -> ModuleType:
    """Run the source as a module named for its file."""
    name = re.sub(r"\W", "_", load.filename.rpartition("/")[2].removesuffix(".py")) or "submission"
    module = ModuleType(f"submission_{name}" if name in sys.modules or name[0].isdigit() else name)
    module.__file__ = load.filename
    lines = load.source.splitlines(keepends=True)
    # No modification time: `linecache` then never looks for the file.
    linecache.cache[load.filename] = (len(load.source), None, lines, load.filename)
    sys.modules[module.__name__] = module
    exec(compile(load.source, load.filename, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 -- in the sandbox.
    return module


def find_entry(module: ModuleType, load: Load) -> tuple[Callable[..., Any], str]:
    """The entry function and its signature as text."""
    entry = module.__dict__.get(load.entry)
    if entry is None:
        raise StudentProblem("entry", "MissingEntry", _missing(module, load))
    if not callable(entry):
        raise StudentProblem("entry", "MissingEntry", f"`{load.entry}` is not a function.")
    return entry, _check_signature(entry, load)


def _missing(module: ModuleType, load: Load) -> str:
    own = [name for name, value in module.__dict__.items() if getattr(value, "__module__", None) == module.__name__]
    wanted = f"The file defines no function `{load.entry}({', '.join(load.arguments)})`."
    return f"{wanted} It defines {', '.join(f'`{name}`' for name in own[:8])}." if own else wanted


def _check_signature(entry: Callable[..., Any], load: Load) -> str:
    wanted = f"{load.entry}({', '.join(load.arguments)})"
    try:
        signature = inspect.signature(entry)
    except (TypeError, ValueError):
        raise StudentProblem("entry", "WrongSignature", f"`{load.entry}` has to be a function `{wanted}`.") from None
    parameters = list(signature.parameters.values())
    named = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    names = tuple(parameter.name for parameter in named)
    free = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    count = len(load.arguments)
    needs_more = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY or parameter in named[count:]]
    needs_more = [name for name in needs_more if signature.parameters[name].default is inspect.Parameter.empty]
    fits = names[:count] == load.arguments or (free and names == load.arguments[: len(names)])
    if not fits or needs_more:
        got = f"{load.entry}{signature}"
        raise StudentProblem("entry", "WrongSignature", f"The entry has to be `{wanted}`; the file has `{got}`.")
    return str(signature)
