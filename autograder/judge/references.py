"""What a submission is timed against, in a runner of its own that stays warm from job to job."""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from autograder.assignment import EXTENSIONS, Assignment
from autograder.contract import Language
from autograder.errors import HarnessError
from autograder.judge.conversation import Budget, Conversation
from autograder.judge.defences import ALL_ON
from autograder.judge.failure import Failure
from autograder.protocol import Load
from autograder.sandbox import RunnerLimits, Sandbox

KEPT = 4
"""Warm runners that are kept; the one that was used longest ago goes first."""


@dataclass(frozen=True)
class Reference:
    """A source to be timed against, by its path in the assignment, and whether it has to be right."""

    name: str
    source: str
    right: bool


def find_reference(assignment_folder: Path, reference_folder: Path | None, language: Language) -> Reference | None:
    """The staff kernel; on a student's machine the fastest published milestone, or else the starter."""
    suffix = EXTENSIONS[language]
    if reference_folder is not None:
        path = reference_folder / "solutions" / f"{language}.{suffix}"
        if not path.is_file():
            raise HarnessError(f"{reference_folder.name} has no solution in {language}")
        return Reference(path.name, path.read_text(encoding="utf-8"), right=True)
    milestones = sorted((assignment_folder / "milestones").glob(f"*.{suffix}"))
    if milestones:
        return Reference(milestones[-1].name, milestones[-1].read_text(encoding="utf-8"), right=True)
    starter = assignment_folder / "starters" / f"{language}.{suffix}"
    return Reference(starter.name, starter.read_text(encoding="utf-8"), right=False) if starter.is_file() else None


def limits_of(assignment: Assignment) -> RunnerLimits:
    """The manifest's limits in the sandbox's units."""
    limits = assignment.limits
    return RunnerLimits(
        memory_bytes=limits.memory_mib * 2**20,
        processes=limits.processes,
        output_bytes=limits.output_kib * 2**10,
        tmp_bytes=limits.tmp_mib * 2**20,
    )


def load_of(assignment: Assignment, language: Language, source: str, filename: str, *, ghost: bool = False) -> Load:
    """The message that loads a source as a submission to `assignment`."""
    arguments = tuple(argument.name for argument in assignment.arguments)
    # Some editors begin a UTF-8 file with a byte order mark; compilers pass over it in a file, not in a string.
    return Load(source.removeprefix("\ufeff"), filename, language, assignment.entry, arguments, ghost)


class References:
    """Warm runners with a reference loaded, by assignment version and source."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._kept: OrderedDict[str, Conversation] = OrderedDict()

    def get(self, assignment: Assignment, bundle: str, language: Language, reference: Reference) -> Conversation:
        """A runner with `reference` loaded, started if there is none.

        Raises:
            HarnessError: it does not load.
        """
        key = _key(assignment, bundle, language, reference)
        if key in self._kept and not self._kept[key].alive():
            self._kept.pop(key).close()
        if key not in self._kept:
            self._kept[key] = self._started(assignment, language, reference)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)[1].close()
        return self._kept[key]

    def drop(self, conversation: Conversation) -> None:
        """End a reference's runner: it erred, and is not to be trusted again."""
        for key in [key for key, kept in self._kept.items() if kept is conversation]:
            del self._kept[key]
        conversation.close()

    def close(self) -> None:
        """End them all."""
        while self._kept:
            self._kept.popitem()[1].close()

    def _started(self, assignment: Assignment, language: Language, reference: Reference) -> Conversation:
        runner = self._sandbox.start(limits_of(assignment), language)
        conversation = Conversation(runner, assignment.limits, Budget(math.inf), ALL_ON)
        conversation.hello()
        failed = conversation.load(load_of(assignment, language, reference.source, reference.name))
        if isinstance(failed, Failure):
            conversation.close()
            raise HarnessError(f"the reference of {assignment.slug} does not load: {failed.message}")
        return conversation


def _key(assignment: Assignment, bundle: str, language: Language, reference: Reference) -> str:
    """Where there is no bundle's hash, the manifest itself tells versions apart."""
    return hashlib.sha256(repr((bundle, language, reference, assignment)).encode()).hexdigest()
