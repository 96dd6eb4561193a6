"""`python -m server.similarity.process`: does every comparison that waits, and ends."""

from __future__ import annotations

import logging
import os
import sys

from broker import logs
from server.config import Config, load_config
from server.db import Database
from server.similarity.runner import claim, perform

logger = logging.getLogger(__name__)
NICE = 10
"""The web application goes first."""


def do_all(database: Database, config: Config) -> int:
    """One after the other; how many failed."""
    failed = 0
    while True:
        with database.transaction() as session:
            comparison_id = claim(session)
        if comparison_id is None:
            return failed
        logger.info("comparison %s", comparison_id)
        try:
            perform(database, config, comparison_id)
        except (ValueError, OSError, RuntimeError, ImportError):
            # It is written down with it; the next one may be fine.
            failed += 1


def main() -> int:
    """Exit status: 1 if one of them failed."""
    config = load_config()
    logs.configure(config.log_format)
    os.nice(NICE)
    database = Database(config.database_url)
    try:
        return 1 if do_all(database, config) else 0
    finally:
        database.dispose()


if __name__ == "__main__":
    sys.exit(main())
