"""What of an assignment's two folders travels to nodes, and what of them decides verdicts and ratios.

`mutants.toml`, `submissions/` and `notes.md` do neither: they are the staff's, and stay where they are.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from autograder import assignment as rungs
from autograder import codec

GRADED_BY = ("hidden.toml", "solutions")
"""What grading needs of `reference/<slug>`."""

# What the manifest says to people: an edit of it changes no verdict and no ratio.
_SAID = ("title", "summary", "techniques", "prerequisites", "points", "writeup", "run_requirements")


def bundle(slug: str, public: Path, staff: Path) -> bytes:
    """All public files, and of the staff's what grading needs: what a version is named by and a node fetches."""
    folders = {f"assignments/{slug}": public, f"reference/{slug}": staff}
    return rungs.pack(folders, only={f"reference/{slug}": GRADED_BY})


def grading_hash(spec: rungs.Assignment, public: Path, staff: Path) -> str:
    """The name of what decides verdicts and ratios: results of two versions that share it stand on one leaderboard.

    That is the oracle, the hidden families, the staff kernels, and the manifest without what it only tells people. The
    handout, starters and milestones are not part of it.
    """
    files = rungs.pack({"public": public, "staff": staff}, only={"public": ("problem.py",), "staff": GRADED_BY})
    return rungs.content_hash(codec.dumps(_decisive(spec)).encode() + b"\0" + files)


def _decisive(spec: rungs.Assignment) -> dict[str, object]:
    silent = tuple(dataclasses.replace(argument, about="") for argument in spec.arguments)
    functions = tuple(dataclasses.replace(function, about="") for function in spec.functions)
    manifest = dataclasses.replace(spec, arguments=silent, functions=functions)
    decisive = {
        field.name: getattr(manifest, field.name) for field in dataclasses.fields(manifest) if field.name not in _SAID
    }
    if not spec.adapter:
        del decisive["adapter"]
    if not spec.functions:
        # As before there were such: leaderboards of rungs with one function do not begin anew.
        del decisive["functions"]
        decisive["cases"] = [
            {key: value for key, value in vars(case).items() if key != "function"} for case in spec.cases
        ]
    return decisive
