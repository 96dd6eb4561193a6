"""Which containers on this machine are runners of ours, by the label that the Docker driver gives them."""

from __future__ import annotations

import logging

from autograder.errors import SandboxError
from autograder.sandbox.docker.engine import Engine
from autograder.sandbox.docker.settings import OWNER

logger = logging.getLogger(__name__)


def ours() -> frozenset[str]:
    """Their ids; none if the daemon does not answer."""
    try:
        engine = Engine()
        try:
            return frozenset(found.id for found in engine.labelled(OWNER))
        finally:
            engine.close()
    except SandboxError as error:
        logger.warning("Docker does not say which containers are ours: %s", error)
        return frozenset()
