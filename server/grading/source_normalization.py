"""A source without what no compiler sees: layout, comments, docstrings. Two that are then the same are one kernel.

Samples of one form are one pool, so two sources that behave differently must never have the same one: with a kernel
hidden in what the form leaves out, a wrong and fast one would lend its times to a slow one. Where it is not certain
that nobody sees what is left out, a source is compared byte by byte. That costs little: whoever wants another pool
renames a variable, as what is compared is text and not meaning (docs/scores.md says what that can gain).

A form has no version, and names of pools have its hash in them: so it stays what it is wherever it was right. A
language brings its own (`autograder/languages`).
"""

from __future__ import annotations

from autograder import languages
from autograder.contract import Language
from server.grading.syntax_check import MOST_BYTES


def normal(source: bytes, language: Language) -> bytes:
    """The source's normal form; of one that cannot be read, is long, or might read itself, the bytes as they are."""
    # The recorder works forms out, and would need a gigabyte for one of 1 MiB.
    if len(source) > MOST_BYTES:
        return source
    try:
        # The judge grades it without the mark.
        return languages.of(language).normal_form(source.decode().removeprefix("\ufeff")).encode()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
