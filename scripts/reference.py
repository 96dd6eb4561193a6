"""Reference pages from code: settings of the app, keys of a manifest, commands, and routes of the API.

    python -m scripts.reference           write the tables of settings into docs/configuration.md
    python -m scripts.reference --check   say whether they are as the code has them

The other pages are made for the documentation site alone (`scripts/docs_site.py`).
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"
_TABLE = re.compile(r"(?<=<!-- from server/config\.py: )(?P<part>[^>]*) -->\n.*?(?=\n<!-- end -->)", re.DOTALL)
_ENTRY = re.compile(r"^    (?P<names>\w+(?:, \w+)*): (?P<text>.*(?:\n {8}.*)*)", re.MULTILINE)
_METHODS = ("get", "put", "post", "patch", "delete")


def main() -> int:
    """Write or compare the page; the exit status."""
    parser = argparse.ArgumentParser(description="Write the tables of settings into docs/configuration.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a table is out of date")
    check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    made = _TABLE.sub(lambda found: f"{found['part']} -->\n{settings_table(found['part'])}", text)
    if check and made != text:
        print("docs/configuration.md is out of date: run `python -m scripts.reference`")
        return 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


def settings_table(part: str) -> str:
    """The settings of one part, in Markdown."""
    from server.config import Config, Part, settings, variable  # noqa: PLC0415  # the site needs no server for the rest

    lines = ["", "| name | default | meaning |", "|---|---|---|"]
    for name, _kind, setting in settings():
        if setting.part == Part(part):
            names = [variable(name), *([f"{variable(name)}_FILE"] if setting.is_secret else [])]
            default = setting.default or _shown(getattr(Config, name))
            lines.append(f"| {', '.join(f'`{one}`' for one in names)} | {default} | {setting.meaning} |")
    return "\n".join([*lines, ""])


def _shown(default: object) -> str:
    return f"{default:g}" if isinstance(default, int | float) else f"`{default}`"


def manifest() -> str:
    """Every table of an assignment's files with its keys, in Markdown."""
    from autograder import assignment as rung  # noqa: PLC0415

    files = {
        "assignment.toml": (
            rung.Assignment, rung.Function, rung.Argument, rung.Case, rung.Layout, rung.Tolerance, rung.Cost,
            rung.Requirement, rung.RunRequirement, rung.LanePolicy, rung.Limits, rung.Points, rung.Writeup,
        ),
        "hidden.toml": (rung.Family, rung.Draw),
        "mutants.toml": (rung.Mutant,),
    }  # fmt: skip
    blocks = [
        "# Manifest",
        "What to write where: `docs/authoring.md`. Here stands every key, from the code that reads it.",
    ]
    for name, tables in files.items():
        blocks.append(f"## {name}")
        singular = {many: one for one, many in rung.PLURALS.items()}
        blocks += [_keys(table, singular if table is rung.Assignment else {}) for table in tables]
    return "\n\n".join(blocks) + "\n"


def _keys(table: type, singular: Mapping[str, str]) -> str:
    summary, _, attributes = inspect.cleandoc(table.__doc__ or "").partition("\nAttributes:\n")
    meaning = {
        name: " ".join(entry["text"].split())
        for entry in _ENTRY.finditer(attributes)
        for name in entry["names"].split(", ")
    }
    lines = [
        f"### {table.__name__}",
        "",
        summary.strip(),
        "",
        "| key | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for item in dataclasses.fields(table):
        key = singular.get(item.name, item.name)
        cells = (f"`{key}`", f"`{item.type}`", _default(item), meaning.get(item.name, ""))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def _default(item: dataclasses.Field[Any]) -> str:
    made = item.default_factory() if item.default_factory is not dataclasses.MISSING else item.default
    if made is dataclasses.MISSING:
        return "required"
    return "" if made in ("", (), None, {}) or dataclasses.is_dataclass(made) else f"`{made}`"


def commands() -> str:
    """Every command of `ladder` with its arguments and options, in Markdown."""
    from client.main import main as ladder  # noqa: PLC0415

    blocks = ["# Commands", "What `ladder COMMAND --help` prints, of every command."]
    for context in _commands(click.Context(ladder, info_name="ladder")):
        level = "##" if context.parent is not None and context.parent.parent is None else "###"
        blocks += [f"{level} {context.command_path}", f"```text\n{context.command.get_help(context)}\n```"]
    return "\n\n".join(blocks) + "\n"


def _commands(context: click.Context) -> Iterator[click.Context]:
    command = context.command
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name) if isinstance(command, click.Group) else None
        if below is not None and not below.hidden:
            inner = click.Context(below, info_name=name, parent=context)
            inner.terminal_width = 110
            yield inner
            yield from _commands(inner)


def api() -> str:
    """Every route of the API with its parameters, what it takes and what it answers, in Markdown."""
    from server.app import create_app  # noqa: PLC0415
    from server.config import load_config  # noqa: PLC0415

    described = create_app(load_config({"LADDER_DATABASE_URL": "sqlite://", "LADDER_POLL_S": "60"})).openapi()
    blocks = ["# API", described["info"]["description"], "An installation serves this as `/api/v1/openapi.json`."]
    for path, methods in sorted(described["paths"].items()):
        blocks += [_route(path, method, methods[method]) for method in _METHODS if method in methods]
    blocks.append("## Schemas")
    blocks += [_schema(name, schema) for name, schema in sorted(described["components"]["schemas"].items())]
    return "\n\n".join(blocks) + "\n"


def _route(path: str, method: str, operation: dict[str, Any]) -> str:
    parts = [f"## `{method.upper()} {path}`", operation.get("description") or operation.get("summary", "")]
    if parameters := operation.get("parameters"):
        rows = [f"| `{one['name']}` | {one['in']} | {_kind(one['schema'])} |" for one in parameters]
        parts.append("\n".join(["| parameter | in | type |", "|---|---|---|", *rows]))
    if body := operation.get("requestBody"):
        parts.append(f"Takes {_content(body)}.")
    answers = [f"{status} {_content(answer)}".rstrip() for status, answer in operation["responses"].items()]
    parts.append(f"Answers: {'; '.join(answers)}.")
    return "\n\n".join(part for part in parts if part)


def _content(described: dict[str, Any]) -> str:
    return ", ".join(_kind(one.get("schema", {})) or kind for kind, one in described.get("content", {}).items())


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    lines = [f"### {name}", "", *([schema["description"], ""] if "description" in schema else [])]
    if "enum" in schema:
        return "\n".join([*lines, ", ".join(f"`{value}`" for value in schema["enum"])])
    rows = [
        f"| `{field}` | {_kind(of)} | {'yes' if field in required else 'no'} | {of.get('description', '')} |"
        for field, of in schema.get("properties", {}).items()
    ]
    return "\n".join([*lines, "| field | type | required | meaning |", "|---|---|---|---|", *rows])


def _kind(schema: dict[str, Any]) -> str:
    """A type in words, with a link to the schema that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", maxsplit=1)[-1]
        return f"[{name}](#{name.lower()})"
    if options := schema.get("anyOf"):
        return " or ".join(_kind(option) for option in options)
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {})) or 'anything'}"
    return str(schema.get("type", ""))


if __name__ == "__main__":
    sys.exit(main())
