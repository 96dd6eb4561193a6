"""Grade a language's own files of some rungs on a lane, as a node does: a check, and a measurement of what passed.

python scripts/language_gradings.py --lane h200 --language ID --out DIR [--only PATTERN] [--limit-s 140] SLUG …

The staff kernel, the starter, and what lies in `submissions/`; a file whose name says a verdict has to get it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder import languages  # noqa: E402
from autograder.contract import Lane, Language, Verdict  # noqa: E402
from autograder.verify.gaps import verdict_in  # noqa: E402
from tests.graded import keep, results_of, stand  # noqa: E402


@dataclass(frozen=True)
class File:
    """One file of a rung."""

    path: Path
    rung: str
    language: Language
    wanted: Verdict

    @property
    def file(self) -> str:
        """Its name in the table."""
        return f"{self.rung}/{self.path.parent.name}/{self.path.name}"


def main() -> int:
    """Grade, print, keep."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    began, rows = time.monotonic(), []
    with stand("autograder.sandbox.process:ProcessSandbox") as judge:
        for file in sorted(
            (
                file
                for slug in options.slugs
                for file in _files(slug, options.language)
                if file.path.match(options.only)
            ),
            key=lambda file: ("solutions", "submissions", "starters").index(file.path.parent.name),
        ):
            if time.monotonic() - began > options.limit_s:
                print(f"out of time: {file.file} and what comes after it is left out")
                break
            attempts = judge.attempts(file, options.lane)
            row = {"file": file.file, "lane": options.lane.value, "attempts": attempts}
            rows.append((file, row))
            keep(row, options.out / f"{options.language}_{options.lane}.jsonl")
    other = [file.file for file, row in rows if not _as_wanted(file, row)]
    print(
        f"{len(rows)} files in {time.monotonic() - began:.0f} s; not as their names say: {', '.join(other) or 'none'}"
    )
    return int(bool(other))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("slugs", nargs="+", metavar="SLUG")
    parser.add_argument("--lane", type=Lane, required=True)
    parser.add_argument("--language", type=Language, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="*", help="which of them, by a pattern for the file's name")
    parser.add_argument("--limit-s", type=float, default=float("inf"))
    return parser.parse_args()


def _files(slug: str, language: Language) -> Iterator[File]:
    public, staff = ROOT / "assignments" / slug, ROOT / "reference" / slug
    name = f"{language}.{languages.of(language).extension}"
    yield File(staff / "solutions" / name, slug, language, Verdict.passed)
    for path in languages.files_in(staff / "submissions", language):
        yield File(path, slug, language, verdict_in(path.stem) or Verdict.passed)
    yield File(public / "starters" / name, slug, language, Verdict.wrong_answer)


def _as_wanted(file: File, row: dict[str, Any]) -> bool:
    """Whether it got its verdict, and staff a finding only of what uses a library."""
    graded = results_of(row)
    accused = any(one.findings for one in graded)
    return graded[-1].verdict is file.wanted and (not accused or "library_call" in file.path.stem)


if __name__ == "__main__":
    sys.exit(main())
