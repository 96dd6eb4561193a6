"""Start a rung: two folders with a small working exercise to edit. Standard library only.

Everything in them can be graded at once; what a complete rung has besides, `verify` then asks for, piece by piece.
"""

from __future__ import annotations

import re
from pathlib import Path

from autograder.assignment import load_assignment, slugs
from autograder.errors import ScaffoldError

_TEMPLATES = Path(__file__).parent / "new_rung"
_SUFFIX = ".template"
_SLUG = re.compile(r"[a-z][a-z0-9_]{0,59}")
MOST_RUNGS = 999


def write(assignments: Path, reference: Path, *, slug: str, title: str, rung: int) -> tuple[Path, ...]:
    """Write the two folders of a new rung; every file that was written.

    Args:
        assignments: the folder of all rungs' public folders.
        reference: the folder of all rungs' staff folders.
        slug: the folders' name, and the entry function's.
        title: for people, one line.
        rung: its place on the ladder, 0 to 999.

    Raises:
        ScaffoldError: the slug is none, one of the folders is there, or another rung has this number.
        ManifestError: another rung's manifest cannot be read.
    """
    _check(assignments, reference, slug, title, rung)
    words = {"slug": slug, "title": title, "rung": str(rung)}
    return (
        *_copied(_TEMPLATES / "assignment", assignments / slug, words),
        *_copied(_TEMPLATES / "staff", reference / slug, words),
    )


def next_rung(assignments: Path) -> int:
    """The number after the last rung's; 1 where there is none.

    Raises:
        ManifestError: a rung's manifest cannot be read.
    """
    there = slugs(assignments) if assignments.is_dir() else ()
    return load_assignment(assignments / there[-1]).rung + 1 if there else 1


def _check(assignments: Path, reference: Path, slug: str, title: str, rung: int) -> None:
    if not _SLUG.fullmatch(slug):
        raise ScaffoldError(f"{slug!r} cannot be a slug: a-z, then a-z, 0-9 and _, 60 at most, as it names a function.")
    if not title.strip() or not title.isprintable() or set(title) & set('"\\@'):
        raise ScaffoldError('A title is one line without ", \\ and @.')
    if not 0 <= rung <= MOST_RUNGS:
        raise ScaffoldError(f"A rung's number is 0 to {MOST_RUNGS}.")
    for folder in (assignments / slug, reference / slug):
        if folder.exists():
            raise ScaffoldError(f"{folder} is there already.")
    for other in slugs(assignments) if assignments.is_dir() else ():
        if load_assignment(assignments / other).rung == rung:
            raise ScaffoldError(f"Rung {rung} is {other!r}.")


def _copied(source: Path, target: Path, words: dict[str, str]) -> list[Path]:
    written = []
    for template in sorted(source.rglob(f"*{_SUFFIX}")):
        path = target / template.relative_to(source).with_name(template.name.removesuffix(_SUFFIX))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_filled(template.read_text("utf-8"), words), encoding="utf-8")
        written.append(path)
    return written


def _filled(text: str, words: dict[str, str]) -> str:
    return re.sub(r"@(\w+)@", lambda found: words[found[1]], text)
