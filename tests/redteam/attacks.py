"""The corpora as one list of tasks: `tests/hostile` and `tests/hostile_cuda` on every lane, `tests/gpu` on a GPU's."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.contract import FIRST_LANGUAGE, Lane, Language
from autograder.judge.defences import Defences
from tests.gpu.hostile import corpus as gpu_corpus
from tests.hostile import corpus as cpu_corpus
from tests.hostile_cuda import corpus as cuda_corpus

BITE = " (bite)"
"""What the names of bites end with."""

SERIAL = {"F3"}
"""Classes whose traces are looked for on the whole machine: one at a time."""

CUDA = ".cu"
"""What the names of rows in CUDA C++ end with."""

COMPILES = {"import_s": 90.0, "call_s": 20.0}
"""Limits of what is compiled by somebody's compiler, which is not what is tried."""

QUICK = {
    "passed_honest", "wrong_answer_cached_by_shape", "wrong_answer_cached_by_pointer", "wrong_answer_lazy_output",
    "wrong_answer_written_by_a_late_thread", "rule_violation_packet_with_wrong_types", "passed_reads_staff_files",
    "passed_reads_other_processes", "passed_uses_the_network", "passed_calls_the_kernel", "passed_leaves_a_daemon",
    "time_limit_endless_call", "output_limit_ten_gibibytes", "passed_state_between_runners",
    "runtime_error_exits_at_call", "illegal_access_after_the_output", "passed_writes_outside_its_folder",
    "wrong_answer_signals_first_and_works_later",
}  # fmt: skip
"""What a node's owner runs: one or two files for every wall there is. On a GPU's lane more is named in its table."""


@dataclass(frozen=True)
class Task:
    """One file on one lane, and what it must get.

    Attributes:
        expected: verdicts, each of them right.
        held: `no`, or `harmless`: held, or with no more speed than is its own.
        least_ratio: the speed that is its own, less the room of `outcome.ROOM`; 0 where nothing is claimed.
        claim: what the event clock alone has to fall below, or the file shows nothing; 0 where it need not.
        findings: kinds that staff must be shown; an honest file must have none.
        unfound: kinds that are not found where what finds them is switched off.
        honest: it is no attack.
        serial: nothing else may run meanwhile: it is timed, fills the machine, or is looked for on all of it.
        work, ranked: what is graded, and how many elements the ranked case has.
        neighbour: other processes of the machine copy and compute meanwhile, and copy over PCIe where there is a GPU.
        without: the judge's defences that are switched off: this is a bite; `expected` says how the attack succeeds.
        naive: judged by a harness in the submission's own process, which is a bite too.
        language: of the source; `SECRET` in CUDA C++ stands for the path of a file that is nobody's business.
        skipped: why it says nothing on this lane.
    """

    name: str
    threat: str
    tries: str
    source: str
    expected: tuple[str, ...]
    mode: str = "submission"
    work: str = "all"
    inputs: str = ""
    ranked: int = 2048
    limits: tuple[tuple[str, float], ...] = ()
    held: str = "no"
    least_ratio: float = 0.0
    claim: float = 0.0
    at_least_us: float = 0.0
    findings: tuple[str, ...] = ()
    unfound: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    honest: bool = False
    serial: bool = False
    neighbour: bool = False
    without: tuple[str, ...] = ()
    naive: bool = False
    quick: bool = False
    language: Language = FIRST_LANGUAGE
    skipped: str = ""


def tasks(lane: Lane, sandbox: str, *, only: Sequence[str] = (), quick: bool = False) -> list[Task]:
    """What is to be graded in one lane and sandbox, in the tables' order.

    Args:
        only: classes (`A1`, or `A` for all of them), names of files, or `bite` for all bites; everything if empty.
    """
    found = [
        _honest(lane),
        *(_common(attack, lane, sandbox) for attack in cpu_corpus.attacks() if not attack.at_the_edge),
    ]
    found += [_cuda(attack, lane) for attack in cuda_corpus.attacks()]
    if lane is not Lane.cpu:
        # First, should time run out: nothing else shows what they show.
        own = gpu_corpus.attacks()
        bites = [bite for attack in own for bite in _bites(attack, sandbox)]
        found = [*(_gpu(attack, sandbox) for attack in own), *found, *bites]
    return [task for task in found if _wanted(task, only) and (task.quick or not quick)]


def _wanted(task: Task, only: Sequence[str]) -> bool:
    file = task.name.removesuffix(BITE)
    return not only or any(
        word == file or (word == "bite" and file != task.name) or re.fullmatch(rf"{re.escape(word)}\d*", task.threat)
        for word in only
    )


def _honest(lane: Lane) -> Task:
    source = cpu_corpus.HONEST.read_text(encoding="utf-8")
    work = "all" if lane is Lane.cpu else "check"
    return Task("passed_honest", "honest", tries(source), source, ("passed",), work=work, honest=True, quick=True)


def _common(attack: cpu_corpus.Attack, lane: Lane, sandbox: str) -> Task:
    column = "cpu" if lane is Lane.cpu else "gpu"
    expected = attack.expected(column, sandbox)
    source = attack.source()
    return Task(
        name=attack.name,
        threat=attack.threat,
        tries=tries(source) if attack.made is None else attack.meets,
        source=source,
        expected=() if isinstance(expected, str) else expected,
        mode=attack.mode,
        inputs=attack.inputs,
        limits=tuple(attack.limits(column, sandbox).items()),
        held="no" if lane is Lane.cpu else "either",
        at_least_us=attack.at_least_us,
        findings=attack.findings,
        needs=attack.needs,
        serial=attack.threat in SERIAL,
        quick=attack.name in QUICK,
        skipped=expected if isinstance(expected, str) else "",
    )


def _cuda(attack: cuda_corpus.Attack, lane: Lane) -> Task:
    expected = attack.expected(gpu=lane is not Lane.cpu)
    return Task(
        name=f"{attack.name}{CUDA}",
        threat=attack.threat,
        tries=attack.tries(),
        source=attack.source(),
        expected=() if isinstance(expected, str) else expected,
        mode=attack.mode,
        work="check",
        limits=tuple((COMPILES | attack.limits).items()),
        held="no" if lane is Lane.cpu else "either",
        findings=attack.findings,
        needs=attack.needs,
        language=Language("cuda"),
        skipped=expected if isinstance(expected, str) else "",
    )


def _gpu(attack: gpu_corpus.Attack, sandbox: str) -> Task:
    expected = attack.expected(sandbox)
    source = attack.source()
    return Task(
        name=attack.name,
        threat=attack.threat,
        tries=tries(source),
        source=source,
        expected=() if isinstance(expected, str) else expected,
        work=attack.work,
        ranked=attack.ranked,
        limits=tuple(attack.limits.items()),
        held=attack.held,
        least_ratio=attack.least_ratio,
        claim=attack.bite.claim,
        findings=attack.findings,
        honest=attack.honest,
        serial=attack.alone or attack.work != "check",
        neighbour=attack.neighbour,
        quick=attack.quick,
        skipped=expected if isinstance(expected, str) else "",
    )


def _bites(attack: gpu_corpus.Attack, sandbox: str) -> list[Task]:
    """The same file where its defence is not, or put right; in one sandbox, as the defence is none of the sandbox's."""
    bite = attack.bite
    if sandbox != "process" or not (bite.judge or bite.naive or bite.mend):
        return []
    plain = _gpu(attack, sandbox)
    absent = [name for name in bite.judge if name not in Defences.__dataclass_fields__]
    return [
        dataclasses.replace(
            plain,
            name=f"{attack.name}{BITE}",
            tries="the same, put right" if bite.mend else f"the same without: {attack.meets}",
            source=attack.mended(),
            expected=(bite.succeeds,),
            ranked=bite.ranked or attack.ranked,
            findings=(),
            unfound=attack.findings if bite.judge else (),
            held="either",
            claim=0.0,
            without=bite.judge,
            naive=bite.naive,
            skipped=f"the judge has no switch {absent[0]!r}" if absent else "",
            quick=False,
        )
    ]


def tries(source: str) -> str:
    """The first sentence of a file's docstring."""
    try:
        text = ast.get_docstring(ast.parse(source)) or ""
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        text = next(iter(re.findall(r'"""(.*?)"""', source, re.DOTALL)), "")
    sentence = " ".join(text.split())
    return re.split(r"(?<=\.) ", sentence, maxsplit=1)[0].rstrip(".")
