"""A judge with many descriptors, and one whose clean-up fails half-way: nothing is refused, nothing stays open."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.contract import Language
from autograder.errors import SandboxError
from autograder.sandbox import Exit, removal
from autograder.sandbox.process import ProcessSandbox
from autograder.sandbox.process_runner import ProcessRunner
from tests.autograder.runner_talk import LIMITS, Talk, talking, wait_for

MANY = 1200
"""More than `select.select` can take, which ends at 1023."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    with talking(made):
        pass
    yield made
    made.close()


@pytest.fixture
def many() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip(f"this process may have {hard} descriptors only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    taken = [os.open("/dev/null", os.O_RDONLY) for _ in range(MANY)]
    yield
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def descriptors() -> set[str]:
    return {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()}


@pytest.mark.usefixtures("many")
def test_a_judge_with_many_descriptors_grades(sandbox: ProcessSandbox) -> None:
    with talking(sandbox) as talk:
        assert talk.runner.channel.fileno() > MANY
        assert talk.run("print('hello')") == "hello\n"
        assert talk.runner.poll() is None
        talk.load("")


@pytest.mark.usefixtures("many")
def test_its_zygotes_can_have_started_with_many(sandbox: ProcessSandbox) -> None:
    fresh = ProcessSandbox()
    try:
        with talking(fresh) as talk:
            assert talk.run("print('hello')") == "hello\n"
    finally:
        fresh.close()


@pytest.mark.full("slow")
@pytest.mark.parametrize("failing", ["kill", "remove", "shutdown"])
def test_a_clean_up_that_fails_half_way_leaves_nothing_open(
    sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    before = descriptors()
    runner = sandbox.start(LIMITS, Language.triton)
    talk = Talk(runner)

    def fails(*_: object) -> None:
        raise SandboxError("half-way")

    with monkeypatch.context() as patched:
        if failing == "kill":
            patched.setattr(ProcessRunner, "_kill", fails)
        elif failing == "remove":
            patched.setattr(removal, "remove", fails)
        else:
            patched.setattr(ProcessRunner, "_wait_for_supervisor", fails)
        with pytest.raises(SandboxError, match="half-way"):
            talk.close()
    assert runner.closed
    assert runner.channel.fileno() == -1
    assert descriptors() <= before
    assert isinstance(talk.close(), Exit)
    # The supervisor has noticed that the judge let go, and cleans up.
    wait_for(lambda: not Path(runner._plan.folder).exists() or None)
