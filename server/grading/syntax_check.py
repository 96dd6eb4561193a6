"""Whether a source plausibly compiles, as far as can be told without running or compiling any of it.

A place in the queue is worth keeping only for something that can be graded; a file of noise must not reserve one. The
answer decides nothing else, so it may be wrong: what looks well and does not compile gives its place back later.
"""

from __future__ import annotations

from autograder import languages
from autograder.contract import Language

MOST_BYTES = 65_536
"""Longer sources are parsed nowhere in the server: it takes a millisecond and up to a megabyte for each kilobyte. Here
they do not count."""


def compiles(source: bytes, language: Language, *entries: str) -> bool:
    """Whether it plausibly compiles and has these functions, as its language says."""
    if len(source) > MOST_BYTES:
        return False
    try:
        text = source.decode()
    except UnicodeDecodeError:
        return False
    return all(languages.of(language).declares(text, entry) for entry in entries)
