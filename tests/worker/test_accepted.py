"""What a node's owner serves without is not held against it in the self-test; everything else is."""

from __future__ import annotations

import ast

import pytest

from autograder.contract import GradeResult, Verdict
from autograder.sandbox import Promise
from worker import selftest
from worker.known import Outcome


class Jobs:
    """Keeps what it was given."""

    def __init__(self) -> None:
        self.sources: list[str] = []

    def run(self, source, *_):
        self.sources.append(source)
        return Outcome(GradeResult(Verdict.passed, "", ()))

    def targets(self):
        [line] = [
            line
            for source in self.sources
            for line in source.splitlines()
            if line.startswith("TARGETS = {") and line[-2] != "{"
        ]
        return ast.literal_eval(line.removeprefix("TARGETS = "))


@pytest.mark.parametrize(
    ("accepted", "gone"),
    [
        ((), set()),
        (("no_network",), {"ports"}),
        (("private_files", "other_uid"), {"files", "folders", "devices", "sockets", "users"}),
    ],
)
def test_what_is_accepted_is_not_tried(tmp_path, accepted, gone):
    jobs, secret = Jobs(), tmp_path / "token"
    selftest.run(jobs, tmp_path, secrets_of_node=(secret,), accepted=accepted)
    targets = jobs.targets()
    assert set(selftest._PROMISES) - set(targets) == gone
    if "files" in targets:
        assert str(secret) in targets["files"]


def test_every_kind_of_target_belongs_to_a_promise_that_there_is():
    assert set(selftest._PROMISES.values()) <= set(Promise)
