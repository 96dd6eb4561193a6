"""The Docker sandbox: every submission in a hardened container of its own.

    python -m autograder.judge --sandbox autograder.sandbox.docker:DockerSandbox …

docs/sandbox.md says what it promises, by what, and what it does not.
"""

from autograder.sandbox.docker.config import DockerConfig, Gpu, load_config
from autograder.sandbox.docker.runner import DockerRunner
from autograder.sandbox.docker.sandbox import DockerSandbox
from autograder.sandbox.docker.settings import OWNER

__all__ = ["OWNER", "DockerConfig", "DockerRunner", "DockerSandbox", "Gpu", "load_config"]
