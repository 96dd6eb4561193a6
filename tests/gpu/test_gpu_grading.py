"""Gradings on a GPU, through the process sandbox: honest ones pass, and what reaches around the protocol does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from autograder.contract import GradeResult, Mode, Phase, Verdict, Work
from autograder.judge import ALL_ON
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.protocol import Load

pytestmark = pytest.mark.gpu
Grade = Callable[..., GradeResult]
ROOT = Path(__file__).parents[2]
STAFF = (ROOT / "reference" / "vector_add" / "solutions" / "triton.py").read_text(encoding="utf-8")
CORPUS = ROOT / "reference" / "vector_add" / "submissions"
LAUNCH = "    _vector_add_kernel[grid](x, y, out, n, BLOCK_SIZE=block_size, num_warps=8)\n"


def with_lines(before: str = "", after: str = "", *, top: str = "", instead: str = LAUNCH) -> str:
    """The staff kernel's source with lines before and after its launch."""
    assert LAUNCH in STAFF
    return top + STAFF.replace(LAUNCH, indented(before) + instead + indented(after))


def indented(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())


REMAPS_INPUTS = """
import os
from cuda.bindings import driver as d

FD = d.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
def zero_through_descriptors(size, used):
    for number in range(4, 256):
        try:
            os.fstat(number)
        except OSError:
            continue
        status, handle = d.cuMemImportFromShareableHandle(number, FD)
        if status != d.CUresult.CUDA_SUCCESS:
            continue
        _, address = d.cuMemAddressReserve(size, 0, 0, 0)
        if d.cuMemMap(address, size, 0, handle, 0)[0] != d.CUresult.CUDA_SUCCESS:
            continue
        access = d.CUmemAccessDesc()
        access.location.type = d.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = 0
        access.flags = d.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        if d.cuMemSetAccess(address, size, [access], 1)[0] == d.CUresult.CUDA_SUCCESS:
            d.cuMemsetD8(int(address) + 16 * 1024, 0, used)
"""
DOES_NOT_WAIT = with_lines(
    top="import gc\n",
    before="for clock in gc.get_objects():\n"
    "    if type(clock).__name__ == 'EventClock':\n"
    "        clock._wait, clock._between = lambda: None, lambda *events: 1.0\n"
    "if n == 1: torch.cuda._sleep(4_000_000_000)",
)
REPLAYS = with_lines(
    top="seen = {}\n",
    before="if (n, x.dtype) in seen:\n    out.copy_(seen[n, x.dtype])\n    return",
    after="seen[n, x.dtype] = out.clone()",
)
REPLAYS_BY_POINTER = with_lines(
    top="seen = {}\n",
    before="if (x.data_ptr(), n) in seen:\n    out.copy_(seen[x.data_ptr(), n])\n    return",
    after="seen[x.data_ptr(), n] = out.clone()",
)


def test_the_staff_kernel_passes_in_both_halves(grade_on_gpu: Grade) -> None:
    checked = grade_on_gpu(STAFF, mode=Mode.submission, work=Work.check)
    assert checked.verdict is Verdict.passed, checked.explanation
    assert checked.findings == ()
    assert {launch.kernel for launch in checked.launches} == {"_vector_add_kernel"}
    measured = grade_on_gpu(STAFF, mode=Mode.submission, work=Work.measure)
    assert measured.verdict is Verdict.passed, measured.explanation
    assert [entry.phase for entry in measured.phases][-2:] == [Phase.measuring, Phase.reporting]
    for found in measured.measurements:
        assert len(found.pairs) == sum(found.stages)
        assert found.bound
        assert found.control
        assert all(pair.submission_event_us < pair.submission_sealed_us for pair in found.pairs)
    assert "gpu" in measured.environment


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.py")), ids=lambda path: path.stem)
def test_the_corpus_gets_its_verdicts(grade_on_gpu: Grade, path: Path) -> None:
    wanted = next(verdict for verdict in Verdict if path.stem.startswith(verdict))
    result = grade_on_gpu(path.read_text(encoding="utf-8"), mode=Mode.submission, work=Work.check)
    # The runner maps inputs for reading only, so that writing to one is a fault of the device before it is found.
    allowed = {wanted} | ({Verdict.illegal_access} if wanted is Verdict.rule_violation else set())
    assert result.verdict in allowed, result.explanation


def test_inputs_that_were_written_through_another_mapping_are_found(grade_on_gpu: Grade) -> None:
    source = with_lines(
        top=REMAPS_INPUTS, before="torch.cuda.synchronize()\nzero_through_descriptors(2 * 2**20, n * 4)"
    )
    result = grade_on_gpu(source)
    assert result.verdict is Verdict.rule_violation, result.explanation
    assert "was written to" in result.explanation


def test_without_private_inputs_they_would_pass(grade_on_gpu: Grade) -> None:
    """The bite: zeros are the right sum of inputs that were made zero."""
    source = with_lines(
        top=REMAPS_INPUTS, before="torch.cuda.synchronize()\nzero_through_descriptors(2 * 2**20, n * 4)"
    )
    off = dataclasses.replace(ALL_ON, private_inputs=False)
    result = grade_on_gpu(source, defences=off)
    assert [case.verdict for case in result.cases][:2] == [Verdict.passed, Verdict.passed], result.explanation


def test_work_that_is_still_queued_is_not_in_the_snapshot(grade_on_gpu: Grade) -> None:
    result = grade_on_gpu(DOES_NOT_WAIT)
    # The first call may have compiled for longer than the queued work takes.
    assert result.verdict in {Verdict.wrong_answer, Verdict.nondeterministic}, result.explanation
    assert "Nothing was written" in result.explanation


@pytest.mark.parametrize("source", [REPLAYS, REPLAYS_BY_POINTER], ids=["by shape", "by pointer"])
def test_an_answer_that_was_kept_is_wrong_for_the_next_inputs(grade_on_gpu: Grade, source: str) -> None:
    result = grade_on_gpu(source, mode=Mode.submission, work=Work.measure)
    if source is REPLAYS_BY_POINTER and result.verdict is Verdict.passed:
        pytest.skip("no address came twice")
    assert result.verdict is Verdict.wrong_answer, result.explanation


def test_a_runner_reaches_one_gpu_and_nothing_else(grade_on_gpu: Grade) -> None:
    look = (
        "import os, socket\n"
        "if n == 1:\n"
        "    nodes = ('nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'nvidia-caps', 'nvidia-modeset')\n"
        "    print([os.path.exists('/dev/' + name) for name in nodes], sum(os.path.exists(f'/dev/nvidia{minor}') "
        "for minor in range(64)), os.getuid() != 0, os.path.exists('/proc/driver'))\n"
        "    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):\n"
        "        try: socket.socket(family, socket.SOCK_RAW); print('reached', family)\n"
        "        except OSError: pass\n"
        "    try: socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket'); print('reached')\n"
        "    except OSError: pass"
    )
    result = grade_on_gpu(with_lines(before=look))
    assert result.verdict is Verdict.passed, result.explanation
    assert result.log == 2 * "[True, True, False, False, False] 1 True False\n"
    assert "reached" not in result.log


def test_a_submission_that_keeps_its_tensors_takes_no_memory_from_the_next(grade_on_gpu: Grade) -> None:
    keeps = with_lines(top="kept = []\n", before="kept.append((x, y, out))")
    assert grade_on_gpu(keeps).verdict is Verdict.passed
    torch.cuda.empty_cache()
    before, _ = torch.cuda.mem_get_info()
    for _ in range(3):
        assert grade_on_gpu(keeps).verdict is Verdict.passed
    torch.cuda.empty_cache()
    after, _ = torch.cuda.mem_get_info()
    assert before - after < 64 * 2**20


def test_a_measurement_uses_what_its_check_compiled(grade_on_gpu: Grade, monkeypatch: pytest.MonkeyPatch) -> None:
    packs = []
    load = RunnerClient.load

    def noted(self: RunnerClient, given: Load, handed_on: Sequence[int] = ()) -> Failure | None:
        packs.append(len(handed_on))
        return load(self, given, handed_on)

    assert grade_on_gpu(STAFF, mode=Mode.submission, work=Work.check).verdict is Verdict.passed
    monkeypatch.setattr(RunnerClient, "load", noted)
    assert grade_on_gpu(STAFF, mode=Mode.submission, work=Work.measure).verdict is Verdict.passed
    # The reference's runner comes before the submission's, and may be there already.
    assert packs[-1] >= 1
