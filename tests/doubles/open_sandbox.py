"""A process sandbox that keeps no promise but the ends of its own trees: what the self-test has to notice."""

from __future__ import annotations

from autograder.sandbox import Promise
from autograder.sandbox.process import ProcessSandbox

KEPT = {Promise.whole_tree, Promise.freezes_tree, Promise.memory_limit, Promise.process_limit}


class OpenSandbox(ProcessSandbox):
    """Starts runners that may read, write and reach what this machine lets them."""

    def __init__(self) -> None:
        super().__init__(without=frozenset(Promise) - KEPT)
