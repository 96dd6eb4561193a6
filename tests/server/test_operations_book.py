"""docs/operations.md says what to do about everything that can be raised, and names no command that is none."""

from __future__ import annotations

import re

from server import cli
from server.cli_operations import COMMANDS
from server.config import REPOSITORY
from server.models import AlertKind

BOOK = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_kind_of_alert_has_its_section_and_every_section_its_kind():
    runbook = BOOK.split("## The runbook: alerts")[1].split("\n## ")[0]
    sections = re.findall(r"^### (\S+)\n\n(.+)", runbook, re.MULTILINE)
    assert [name for name, _ in sections] == [kind.value for kind in AlertKind]
    assert all(len(text) > 60 for _, text in sections)


def test_every_command_it_names_exists():
    commands = cli.admin.commands
    named = set(re.findall(r"`(?:ladder admin )([a-z-]+)", BOOK))
    named.discard("grade-file")  # The client's part of the group.
    assert named <= set(commands)
    for name, option in re.findall(r"`ladder admin ([a-z-]+)[^`]*?(--[a-z-]+)", BOOK):
        if name in commands:
            options = {option for parameter in commands[name].params for option in parameter.opts}
            assert option in options, f"{name} {option}"


def test_every_command_of_operations_is_in_it():
    named = set(re.findall(r"`(?:ladder admin )?([a-z-]+)[ `]", BOOK))
    assert sorted(command.name for command in COMMANDS if command.name not in named) == []
