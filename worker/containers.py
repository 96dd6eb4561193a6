"""Which containers on this machine are runners of ours, by the label that the Docker driver gives them."""

from __future__ import annotations

import logging

import docker
from docker.errors import DockerException

logger = logging.getLogger(__name__)

LABEL = "org.kernel-ladder.owner"


def ours() -> frozenset[str]:
    """Their ids; none if the daemon does not answer."""
    try:
        client = docker.from_env()
    except DockerException as error:
        logger.warning("Docker does not say which containers are ours: %s", error)
        return frozenset()
    try:
        return frozenset(str(found.id) for found in client.containers.list(filters={"label": LABEL}))
    except DockerException as error:
        logger.warning("Docker does not say which containers are ours: %s", error)
        return frozenset()
    finally:
        client.close()
