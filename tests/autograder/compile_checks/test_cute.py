"""CuTe DSL compiled for devices that are not there: real runners, the real compiler."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.assignment import Assignment, load_assignment
from autograder.contract import CompiledFor, GradeRequest, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.judge.compile.cross_compile import Compilation, TargetReport
from autograder.listings import Listings, rows_of
from autograder.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[3]
LANGUAGE = Language("cute_dsl")
TARGETS = ("sm_90a", "sm_100a")
KERNEL = """
import cutlass
import cutlass.cute as cute

@cute.kernel
def _add(x: cute.Tensor, y: cute.Tensor, out: cute.Tensor, n: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < n:
        out[i] = SUM

def vector_add(x, y, out, n):
    _add(x, y, out, n).launch(grid=[cute.ceil_div(n, THREADS), 1, 1], block=[THREADS, 1, 1])
"""

TENSOR_CORES = """
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import OperandMajorMode, warpgroup
from cutlass.memory import SmemAllocator
from cutlass.utils import LayoutEnum, hopper_helpers

@cute.kernel
def _product(mma: cute.TiledMma, left: cute.ComposedLayout, right: cute.ComposedLayout, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    memory = SmemAllocator()
    a = memory.allocate_tensor(cutlass.Float16, left.outer, 128, left.inner)
    b = memory.allocate_tensor(cutlass.Float16, right.outer, 128, right.inner)
    mine = mma.get_slice(thread)
    total = cute.make_rmem_tensor(mine.partition_shape_C((64, 64)), cutlass.Float32)
    total.fill(0.0)
    a_words = mma.make_fragment_A(mine.partition_A(a))
    b_words = mma.make_fragment_B(mine.partition_B(b))
    warpgroup.fence()
    for k in cutlass.range_constexpr(cute.size(a_words, mode=[2])):
        cute.gemm(mma, total, a_words[None, None, k, 0], b_words[None, None, k, 0], total)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    out[thread] = total[0]

def vector_add(x, y, out, n):
    by_k = OperandMajorMode.K
    half = cutlass.Float16
    mma = hopper_helpers.make_trivial_tiled_mma(half, half, by_k, by_k, cutlass.Float32, (1, 1, 1), (64, 64))
    left = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (64, 64, 64), half, 1)
    right = hopper_helpers.make_smem_layout_b(LayoutEnum.ORDER, (64, 64, 64), half, 1)
    _product(mma, left, right, out).launch(grid=[1, 1, 1], block=[128, 1, 1])
"""


def kernel(total: str = "x[i] + y[i]", threads: int = 256) -> str:
    return KERNEL.replace("SUM", total).replace("THREADS", str(threads))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    pytest.importorskip("nvidia_cutlass_dsl", reason="the extra cutedsl is not installed")
    made = ProcessSandbox()
    yield made
    made.close()


def asked(source: str, slug: str = "vector_add") -> GradeRequest:
    return GradeRequest(slug, "", LANGUAGE, Lane.cpu, Mode.run, source, "mine.py")


def checked(sandbox: ProcessSandbox, source: str, assignment: Assignment) -> dict[str, TargetReport]:
    with Compilation(assignment, asked(source, assignment.slug), sandbox) as compilation:
        return compilation.finish()


def one_case(name: str = "gpu_ranked", slug: str = "vector_add") -> Assignment:
    rung = load_assignment(ROOT / "assignments" / slug)
    return dataclasses.replace(rung, cases=tuple(case for case in rung.cases if case.name == name))


def shown(sandbox: ProcessSandbox, source: str, *targets: str) -> CompiledFor:
    """What the first target shows."""
    rung = dataclasses.replace(one_case(), compile_for=targets or TARGETS[:1])
    return checked(sandbox, source, rung)[rung.compile_for[0]].shown


@pytest.mark.parametrize(
    ("slug", "case", "block"),
    [
        ("vector_add", "gpu_ranked", "block 256"),
        ("softmax", "gpu_ranked", "block 256, 256 B dynamic"),
        ("softmax", "gpu_ranked_long", "block 512, 256 B dynamic"),
    ],
)
def test_the_staff_kernels_load_wide_and_spill_nothing_on_both_targets(
    sandbox: ProcessSandbox, slug: str, case: str, block: str
) -> None:
    source = (ROOT / "reference" / slug / "solutions" / "cute_dsl.py").read_text(encoding="utf-8")
    found = checked(sandbox, source, one_case(case, slug))
    assert tuple(found) == TARGETS
    for one in found.values():
        assert one.whole, one.shown.message
        (made,) = one.shown.kernels
        assert (made.message, made.spills, made.wgmma, made.tcgen05, made.tma) == ("", 0, 0, 0, 0)
        assert made.ldg128 > 0
        assert made.registers > 8
        assert made.config == block
        assert ("÷16" in made.arguments, made.arguments.startswith("x: ")) == (True, True)
        assert _lines(one.listings), "no instruction is of a line of the file"


def _lines(listings: Listings) -> set[int]:
    (listing,) = listings.kernels
    return {row.line for row in rows_of(listing.sass) if row.line}


def test_what_is_refused_is_told_in_the_students_own_line(sandbox: ProcessSandbox) -> None:
    for total, words in {
        "x[i] + z[i]": "Would not compile for sm_90a: line 11: CompilationError: name 'z' is not defined",
        "cute.nothing(x[i])": "Would not compile for sm_90a: line 11: AttributeError: ",
        "x[i, i]": "Would not compile for sm_90a: line 11: ",
    }.items():
        (made,) = shown(sandbox, kernel(total)).kernels
        assert words in made.message
        assert made.error.frames[-1].line == 11
        assert made.kernel == "_add"


def test_tensor_cores_are_counted_and_a_failing_pass_has_a_line(sandbox: ProcessSandbox) -> None:
    (made,) = shown(sandbox, TENSOR_CORES.replace("ORDER", "ROW_MAJOR")).kernels
    assert (made.message, made.wgmma, made.config) == ("", 4, "block 128, 16384 B dynamic")
    (made,) = shown(sandbox, TENSOR_CORES.replace("ORDER", "COL_MAJOR")).kernels
    assert "Would not compile for sm_90a: line 18: CompilationError: failed to legalize operation" in made.message


def test_host_code_that_fails_and_blocks_that_no_device_takes_are_told_apart(sandbox: ProcessSandbox) -> None:
    (made,) = shown(sandbox, kernel(threads=2048)).kernels
    assert made.message == "Would not run for sm_90a: OutOfResources: the block has 2048 threads; there may be 1024."
    host = shown(sandbox, kernel().replace("    _add(x", "    n.nothing\n    _add(x"))
    assert host.kernels == ()
    assert "The host code could not be followed without a device, in case `gpu_ranked`: line 14: " in host.message
    assert "loading the file" in shown(sandbox, "import cutlass\n1 / 0\n").message


def test_the_cpu_lane_refuses_it_and_shows_what_it_becomes(sandbox: ProcessSandbox) -> None:
    result = grade(
        asked(kernel()), assignment_folder=ROOT / "assignments" / "vector_add", reference_folder=None, sandbox=sandbox
    )
    assert result.verdict is Verdict.compile_error
    assert "CuTe DSL does not run on the lane cpu" in result.explanation
    assert [made.registers > 0 for target in result.compiled for made in target.kernels] == [True] * 4
    assert {case.verdict for case in result.cases} == {None}
