"""The command `ladder`."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping

import click

COMMANDS: Mapping[str, tuple[str, str]] = {
    "login": ("account:login", "Log in to SERVER and save a token that only you can read."),
    "logout": ("account:logout", "Revoke the token and delete it here."),
    "list": ("assignments:list_assignments", "List the assignments of the course, by rung."),
    "get": ("assignments:get", "Fetch the handout and the starter of SLUG into DIR (default: a folder named SLUG)."),
    "check": ("grading:check", "Test FILE on the public cases on this machine, with the nodes' judge."),
    "submit": ("grading:submit", "Submit FILE and follow its grading."),
    "profile": (
        "profile:profile",
        "Profile one call of FILE, or of what was handed in as SUBMISSION (its receipt number).",
    ),
    "sanitize": (
        "sanitize:sanitize",
        "Look for wrong accesses, races and barriers in one call of FILE, or of SUBMISSION (its receipt number).",
    ),
    "cancel": ("grading:cancel", "Cancel SUBMISSION, a receipt number, while it is in the queue."),
    "status": (
        "assignments:status",
        "Show one submission (by its ID), or the history of an assignment or of the whole course.",
    ),
    "board": ("boards:board", "Show the leaderboard of SLUG."),
    "milestones": ("boards:milestones", "Show the milestones of SLUG: what each does, and which you can read."),
    "standings": ("boards:standings", "Show the standings over all leaderboards of the course."),
    "grades": ("grades:grades", "Show your grades and remaining late days."),
    "quiz": ("quiz:quiz", "Answer the checkpoint questions of an assignment."),
    "receipt": ("receipt:receipt", "Receipts of grades: the evidence for a grade, signed by the server."),
    "admin": (
        "staff:admin",
        "Accounts, courses and nodes of the installation on this machine; needs its configuration.",
    ),
    "assignments": ("staff:assignments_group", "Tools for authors of assignments."),
    "web": ("staff:web", "Serve pages and API."),
    "dispatcher": ("staff:dispatcher", "Send queued submissions to nodes, and requeue lost attempts."),
    "recorder": ("staff:recorder", "Write the nodes' results to the database."),
    "worker": ("staff:worker", "Grade on this machine, as a node."),
    "node": ("node:node", "Run this machine as a grading node."),
    "up": ("local:start", "Serve from this machine: database, pages, API, and a node that grades."),
    "down": ("local:stop", "Stop what `ladder up` started."),
    "demo": (
        "local:demo",
        "Serve a fresh demo course, submit five kernels from correct to hostile, and show each result.",
    ),
}
"""By name: where it is below `client.commands`, and its first sentence, for `ladder --help`, which loads none."""


class CommandsWhenAsked(click.Group):
    """Loads a command, and what that needs, when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # as click calls it
        """In the alphabet's order, as of any group."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # as click calls it
        """The command itself; `None` where there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        found: click.Command = getattr(importlib.import_module(f"client.commands.{module}"), attribute)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As of any group, with what may have been meant."""
        if args[0] not in COMMANDS and (near := difflib.get_close_matches(args[0], COMMANDS)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, near))}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list under `--help`."""
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        rows = [
            (name, click.Command(name, help=COMMANDS[name][1]).get_short_help_str(limit))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=CommandsWhenAsked, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kernel-ladder", prog_name="ladder")
def main() -> None:
    """Fetch an assignment, check your kernel, submit it, and see your results.

    Begin with `ladder login SERVER`, then `ladder list`. Every command has --help;
    --json prints output for programs.
    """
