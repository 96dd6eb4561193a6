"""The hostile corpus in containers: every file gets the normative table's verdict, nothing else, and leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from autograder.contract import Verdict
from autograder.sandbox.docker import DockerSandbox
from tests.hostile.canary import canary as put_out
from tests.hostile.corpus import HONEST, Attack, attacks
from tests.hostile.stand import Stand, nothing_compiled, processes_named
from tests.hostile.test_hostile import SANDBOXED, assert_it_got_nothing, assert_its_times_are_times

GRADED = [attack for attack in attacks() if not attack.at_the_edge]


@pytest.fixture(scope="module")
def stand(docker_sandbox: DockerSandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The judge with everything on; the reference's container stays warm, as on a node."""
    try:
        with put_out():
            made = Stand(docker_sandbox, tmp_path_factory.mktemp("stand"), warm=True)
            # What the first grading opens for good is no attack's leftover.
            made.grade(HONEST.read_text(encoding="utf-8"))
            yield made
            made._references.close()
    except OSError as error:
        pytest.skip(str(error))


@pytest.mark.turns(8)
@pytest.mark.parametrize("attack", GRADED, ids=lambda attack: attack.name)
def test_a_hostile_file_gets_its_verdict_and_leaves_nothing(attack: Attack, stand: Stand) -> None:
    expected = attack.expected("cpu", "docker")
    limits = attack.limits("cpu", "docker")
    # Where kernels are compiled a container's wall is tried by those that try walls.
    with nullcontext() if attack in SANDBOXED else nothing_compiled():
        result = stand.grade(attack.source(), mode=attack.mode, inputs=attack.inputs, limits=limits)
    assert result.verdict in expected, result.explanation
    assert {finding.kind for finding in result.findings} >= set(attack.findings)
    assert_it_got_nothing(result)
    assert_its_times_are_times(result, attack.at_least_us)
    assert not processes_named("hostile-daemon")
    for runner in stand.sandbox.started:
        assert not Path(f"/proc/{runner.pid}").exists()
        assert not runner.container._gate.folder.exists()


def test_the_judge_is_alive_after_all_of_them(stand: Stand) -> None:
    result = stand.grade(HONEST.read_text(encoding="utf-8"))
    assert result.verdict is Verdict.passed, result.explanation
    assert not result.findings
