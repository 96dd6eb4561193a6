"""The containers on this machine that are runners of ours, by the label that the Docker driver gives them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing

from autograder.errors import SandboxError
from autograder.sandbox.docker import sweep
from autograder.sandbox.docker.config import load_config
from autograder.sandbox.docker.engine import Engine
from autograder.sandbox.docker.settings import OWNER

logger = logging.getLogger(__name__)


def ours() -> frozenset[str]:
    """Their ids; none if the daemon does not answer."""
    try:
        with closing(Engine()) as engine:
            return frozenset(found.id for found in engine.labelled(OWNER))
    except SandboxError as error:
        logger.warning("Docker does not say which containers are ours: %s", error)
        return frozenset()


def sweep_left_over(settings: Mapping[str, str]) -> None:
    """Remove those of judges that are gone: a frozen one does not notice, and nobody may come after this judge.

    Args:
        settings: the sandbox's, as the judge was told them.
    """
    try:
        with closing(Engine()) as engine:
            swept = sweep.sweep(engine, load_config(settings).folder)
    except SandboxError as error:
        logger.warning("what a judge has left in Docker is left for the next one: %s", error)
        return
    if swept:
        logger.info("removed %d containers of a judge that is gone", len(swept))
