"""The judge: owns buffers, seeds, hidden cases and the clock, and never imports a submission.

`grade` is the one entry, for a student's machine, a node and CI alike; `python -m autograder.judge` serves it to a
worker.
"""

from __future__ import annotations

from autograder.judge.defences import ALL_ON, Defences
from autograder.judge.grading import grade
from autograder.judge.timing.references import References

__all__ = ["ALL_ON", "Defences", "References", "grade"]
