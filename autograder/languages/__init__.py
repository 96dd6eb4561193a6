"""The languages that submissions are written in: one folder here for each, and nothing elsewhere names one.

    record                  what there is to say of a language
    python_text, cpp_text   what is said of sources in Python's syntax, and in C++'s
    <id>/                   one language: `LANGUAGE` is its record

Standard library only, as far as it is imported with a record. A folder that is put here is a language of the whole
course: the contract's `Language` has it, and so do pages, commands, the judge and the sandbox.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

from autograder.languages.record import HARNESS, ErrorKind, Record

_HEADER = re.compile(r"\s*(?:#|//)\s*language:\s*([a-z][a-z0-9_]*)\s*")
_HEADER_LINES = 20
NOT_INSTALLED = "not installed"
"""What a node says instead of the version of a distribution that it does not have."""


def _found() -> Iterator[Record]:
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg:
            record = import_module(f"{__name__}.{module.name}").LANGUAGE
            if record.id != module.name:
                raise ValueError(f"the folder {module.name} has the record of the language {record.id}")
            yield record


ALL: tuple[Record, ...] = tuple(sorted(_found(), key=lambda record: (record.order, record.id)))
"""Every language, in the order of lists."""
_BY_ID: Mapping[str, Record] = {record.id: record for record in ALL}


def of(language: str) -> Record:
    """The record of a language.

    Raises:
        KeyError: there is no such language.
    """
    return _BY_ID[language]


def known(language: str) -> Record | None:
    """The record of a language, nothing where it is not one of ours."""
    return _BY_ID.get(language)


def of_file(name: str, text: str = "", *, among: Collection[str] = tuple(_BY_ID)) -> Record | None:
    """Which language a file is written in, by its ending and, where several have it, by what it says.

    A line `# language: <id>` or `// language: <id>` near the beginning decides, then a file's name that is an id, as
    starters and solutions have it. Otherwise it is the language whose pattern is found in the text, and the first in
    order where none is.

    Args:
        text: the file's; where it is not known, the ending alone is looked at.
        among: ids that come into question.
    """
    suffix = PurePath(name).suffix
    fitting = [record for record in ALL if suffix in record.endings and record.id in among]
    lines = text.splitlines()[:_HEADER_LINES]
    said = {found[1] for line in lines if (found := _HEADER.fullmatch(line))}
    named = [record for record in fitting if record.id in said]
    called = [record for record in fitting if record.id == PurePath(name).stem]
    seen = [
        record for record in fitting if record.recognised_by and re.search(record.recognised_by, text, re.MULTILINE)
    ]
    return next(iter([*named, *called, *seen, *fitting]), None)


def files_in(folder: Path, language: str, *, among: Collection[str] = tuple(_BY_ID)) -> list[Path]:
    """The files of a folder that are written in a language, by name.

    Args:
        among: languages that the folder may have files of.
    """
    record = of(language)
    paths = sorted(path for ending in record.endings for path in folder.glob(f"*{ending}"))
    return [path for path in paths if of_file(path.name, _text(path), among=among) is record]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def error_kinds() -> Mapping[str, ErrorKind]:
    """Every kind of error that a language has of its own."""
    return {kind: meaning for record in ALL for kind, meaning in record.error_kinds.items()}


def imported(dotted: str) -> Any:
    """What `module:name` names."""
    module, _, name = dotted.partition(":")
    return getattr(import_module(module), name)


def distributions(among: Iterable[Record] = ALL) -> tuple[str, ...]:
    """What the languages' toolchains are installed as, for those who tell versions."""
    return tuple(dict.fromkeys(name for record in among for name in _distributions(record.all_packages)))


def _distributions(packages: Iterable[str]) -> Iterator[str]:
    return (re.split(r"[^\w.-]", package, maxsplit=1)[0] for package in packages)


def lacking(facts: Mapping[str, str]) -> frozenset[str]:
    """Ids of the languages that a node cannot grade, by what it says of its distributions."""
    return frozenset(
        record.id for record in ALL if any(facts.get(name) == NOT_INSTALLED for name in _distributions(record.packages))
    )


def imports() -> tuple[str, ...]:
    """What Python has to find on every node, whatever else it grades."""
    return tuple(dict.fromkeys(module for record in ALL if record.extra == HARNESS for module in record.imports))
