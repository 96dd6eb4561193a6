"""Two transactions at once, without a test that has to know which locks one of them waits for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Have it begin while the block goes on; it may have to wait until that is over."""
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(work)
        # Long enough that it would be done, if it did not wait.
        wait([begun], timeout=0.5)
        yield
    begun.result()
