"""The red team: every hostile file against the real path, and what became of each in one table.

    attacks     the corpora as one list: what each file must get on a lane
    outcome     what it got, held against that: as expected, false accept, escape, false hold, different
    stands      one way to be graded: a lane and a sandbox, or the reason why this machine does not have it
    worker      grades files one after the other, in a process of its own
    pool        several workers, and an end to every wait
    table       rows, counts, text and JSON
    run         all of it

`python -m tests.redteam --help` says how to run it; `make redteam` does. Elsewhere: `tests.redteam.run.run(...)`.
"""

from tests.redteam.run import run
from tests.redteam.table import Row, Table

__all__ = ["Row", "Table", "run"]
