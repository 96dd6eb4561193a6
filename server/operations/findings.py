"""What a look at an installation finds: how bad it is, and what to do, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad; only a problem makes `ladder admin doctor` exit with 1."""

    ok = "ok"
    warning = "warning"
    problem = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: the name of the check; docs/operations.md has a paragraph for each.
        advice: what to do, empty where nothing has to be done.
    """

    check: str
    level: Level
    message: str
    advice: str = ""


def ok(check: str, message: str) -> Finding:
    """It is well."""
    return Finding(check, Level.ok, message)


def warning(check: str, message: str, advice: str) -> Finding:
    """It works, and somebody should look at it."""
    return Finding(check, Level.warning, message, advice)


def problem(check: str, message: str, advice: str) -> Finding:
    """It does not work, or will soon stop to."""
    return Finding(check, Level.problem, message, advice)
