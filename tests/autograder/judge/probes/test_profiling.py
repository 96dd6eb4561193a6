"""A profile from what its runner leaves; whatever that is, the judge goes on."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import threading
from pathlib import Path
from types import MappingProxyType

import pytest

from autograder.assignment import RunRequirement, load_assignment
from autograder.contract import GradeRequest, Lane, Language, Mode, Verdict, Work
from autograder.errors import HarnessError
from autograder.judge.grading import grade
from autograder.judge.probes import one_call
from autograder.judge.probes.profiling import case_of
from autograder.profiles import REPORT, Figure, Mix, SpanKind
from autograder.profiling.asking import FILES
from autograder.sandbox import Exit, Promise, Purpose, Spent

ROOT = Path(__file__).parents[4]
PAGES = Path(__file__).parents[2] / "profiling"
KERNEL = "_Z7vectorsILi32EEvPK6float4PS0_l"
TRACE = {
    "kernels": [{"name": KERNEL, "shown": "void vectors<32>(float4 const*)", "calls": 2, "ns": 900},
                {"name": "fill", "shown": "fill", "calls": 1, "ns": 100}],
    "spans": [["host", "cuLaunchKernel", 0, 2000], ["kernel", "vectors", 1500, 2400], ["odd", "x", 0, 1]],
    "call_ns": 2400, "busy_ns": 1000, "left_out": 0,
}  # fmt: skip


class Runner:
    """Answers one question with what it was told to."""

    def __init__(self, files, answer, names=FILES):
        self._names = names
        self.channel, self._own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._files, self._answer = files, answer
        self.asked = None
        self.inputs = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        packet, descriptors, _, _ = socket.recv_fds(self._own, 2**17, 64)
        self.asked = json.loads(packet)
        given = [spec for spec in self.asked["tensors"] if not spec["writable"]]
        self.inputs = [os.fstat(number).st_size for number in descriptors[1 : 1 + len(given)]]
        for number, name in zip(descriptors[1 + len(given) :], self._names, strict=True):
            os.pwrite(number, self._files.get(name, b""), 0)
        self._own.send(json.dumps(self._answer).encode() if isinstance(self._answer, dict) else self._answer)
        for number in descriptors:
            os.close(number)

    def poll(self):
        return None

    def spent(self):
        return Spent(0.0, 0.0)

    def close(self):
        self._thread.join()
        self.channel.close()
        self._own.close()
        return Exit(0)


class Sandbox:
    """Starts one runner that profiles, and no other."""

    promises = frozenset({Promise.no_network})
    facts = MappingProxyType({})

    def __init__(self, files=None, answer=None):
        self.files = files or {}
        sizes = [len(self.files.get(name, b"")) for name in FILES]
        self.answer = answer or {"is": "Answer", "sizes": sizes, "problems": {}, "tool": "Nsight Compute 2025.3.1"}
        self.runner = None

    def start(self, *_, purpose, **__):
        assert purpose is Purpose.profile
        self.runner = Runner(self.files, self.answer)
        return self.runner


def a_request(case="ranked_odd"):
    source = "void vector_add();\n"
    return GradeRequest(
        "vector_add", "", Language("cuda"), Lane.cpu, Mode.profile, source, "v.cu", Work.profile, case=case
    )


def profiled(sandbox, kept=None, **changes):
    return grade(
        a_request(**changes),
        assignment_folder=ROOT / "assignments" / "vector_add",
        reference_folder=None,
        sandbox=sandbox,
        keep=lambda name, data: kept.append((name, data)) if kept is not None else None,
    )


def whole():
    pages = {name: (PAGES / f"{name}.csv").read_bytes() for name in ("raw", "details", "source")}
    return {**pages, "trace": json.dumps(TRACE).encode(), "report": b"\x01report"}


def test_what_the_runner_leaves_becomes_a_profile():
    kept = []
    sandbox = Sandbox(whole())
    result = profiled(sandbox, kept, case="ranked_odd")
    found = result.profile
    assert (result.verdict, found.case, found.size) == (Verdict.passed, "ranked_odd", "n=100,003")
    assert result.cases[0].verdict is None
    (kernel,) = found.kernels
    assert (kernel.name, kernel.share, kernel.calls) == ("void vectors<32>(float4 const*)", 0.9, 2)
    assert kernel.figures[Figure.registers] == 16
    assert kernel.mix[Mix.global_load_128] == 131072
    assert {line.line for line in kernel.lines} == {13, 15, 16, 17, 18, 19, 20, 21, 23}
    assert max(kernel.lines, key=lambda line: line.samples).line == 17
    assert kernel.hints[0].rule == "UncoalescedSharedAccess"
    assert [span.kind for span in found.timeline.spans] == [SpanKind.host, SpanKind.kernel]
    assert found.timeline.idle_ns == 1400
    assert kept == [(REPORT, b"\x01report")]
    assert found.missing == {}


def test_the_runner_gets_the_source_the_inputs_and_no_more():
    sandbox = Sandbox(whole())
    profiled(sandbox, case="ranked_odd")
    asked = sandbox.runner.asked
    assert [spec["name"] for spec in asked["tensors"]] == ["x", "y", "out"]
    assert asked["scalars"] == {"n": 100003}
    assert sandbox.runner.inputs == [spec["bytes"] for spec in asked["tensors"][:2]]
    assert set(asked) == {
        "is", "filename", "language", "lane", "entry", "arguments", "signatures", "source_bytes", "tensors", "scalars",
        "budget_s", "adapter", "sanitize",
    }  # fmt: skip


def test_of_several_functions_it_is_asked_for_the_one_of_the_case_with_the_adapter():
    sandbox, folder = Sandbox(whole()), ROOT / "assignments" / "custom_op"
    request = GradeRequest(
        "custom_op", "", Language.triton, Lane.cpu, Mode.profile, "import torch\n", "v.py", Work.profile,
        case="ranked_forward",
    )  # fmt: skip
    grade(request, assignment_folder=folder, reference_folder=None, sandbox=sandbox)
    asked = sandbox.runner.asked
    assert (asked["entry"], asked["arguments"][-1]) == ("forward", "eps")
    assert [spec["name"] for spec in asked["tensors"]] == ["x", "r", "weight", "s", "out"]
    assert asked["scalars"].keys() == {"rows", "cols", "eps"}
    assert asked["adapter"] == (folder / "adapter.py").read_text()


def test_what_is_not_there_is_explained():
    trace = {"trace": json.dumps(TRACE).encode()}
    problems = {"counters": "The driver of this node refused the counters.\x1b[2J"}
    answer = {"is": "Answer", "sizes": [len(trace["trace"]), 0, 0, 0, 0], "problems": problems, "tool": ""}
    found = profiled(Sandbox(trace, answer)).profile
    assert found.kernels == ()
    assert found.missing["counters"].startswith("The driver of this node refused")
    assert "\x1b" not in found.missing["counters"]
    assert found.timeline.busy_ns == 1000


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("junk", [b"\xff\0\xfe" * 100, b'"', b"[" * 5000, b'"Kernel Name"\n"x"\n"y"\n'])
def test_junk_in_any_file_costs_that_file_only(name, junk):
    result = profiled(Sandbox({**whole(), name: junk}))
    assert result.verdict is Verdict.passed
    assert result.profile is not None


@pytest.mark.parametrize("sizes", [[2**40] * 5, [-1] * 5, [1], [], [1] * 50])
def test_sizes_that_cannot_be_are_not_read(sizes):
    answer = {"is": "Answer", "sizes": sizes, "problems": {}, "tool": "x"}
    result = profiled(Sandbox({}, answer))
    assert result.verdict in {Verdict.passed, Verdict.rule_violation}
    assert result.profile is None or result.profile.kernels == ()


def test_a_call_that_raises_has_its_line_and_no_profile():
    frames = [{"line": 1, "function": "f", "code": "no"}]
    raised = {"is": "Raised", "nonce": 0, "stage": "call", "kind": "ValueError", "message": "no", "frames": frames}
    result = profiled(Sandbox({}, raised))
    assert (result.verdict, result.profile) == (Verdict.runtime_error, None)
    assert "ValueError" in result.explanation


@pytest.mark.parametrize("answer", [b"{}", b"junk", b'{"is":"Ready","versions":{}}'])
def test_another_answer_is_the_runners_fault(answer):
    result = profiled(Sandbox({}, answer))
    assert (result.verdict, result.profile) == (Verdict.time_limit, None)


def test_a_case_that_is_not_public_is_refused():
    result = profiled(Sandbox(whole()), case="hidden_odd")
    assert result.verdict is Verdict.grader_error
    with pytest.raises(HarnessError, match="no public case"):
        case_of(load_assignment(ROOT / "assignments" / "vector_add"), a_request(case="x"))


def test_what_the_rung_asks_of_a_call_is_held_against_the_profile(monkeypatch):
    asked = RunRequirement("one launch", "", "ranked_odd", launches="== 1")
    monkeypatch.setattr(
        one_call, "load_assignment", lambda path: dataclasses.replace(load_assignment(path), run_requirements=(asked,))
    )
    (found,) = profiled(Sandbox(whole())).requirements
    assert (found.name, found.rule, found.target, found.met) == ("one launch", "launches == 1", "cpu", True)
    (found,) = profiled(Sandbox({}, {"is": "Answer", "sizes": [0] * 5, "problems": {}, "tool": ""})).requirements
    assert (found.met, "The trace could not be read." in found.message) == (None, True)
