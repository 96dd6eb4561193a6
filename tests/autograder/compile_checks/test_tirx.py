"""TIRx compiled for devices that are not there: real runners, the real compilers."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.assignment import Assignment, load_assignment
from autograder.contract import CompiledFor, GradeRequest, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.judge.compile import cross_compile as compiled
from autograder.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[3]
LANGUAGE = Language("tirx")
TARGETS = ("sm_90a", "sm_100a")
KERNEL = """
from tvm.script import tirx as T

def vector_add(x, y, out, n):
    blocks = (n + THREADS - 1) // THREADS
    @T.prim_func
    def add(xs: T.Buffer(x.shape, x.dtype), ys: T.Buffer(y.shape, y.dtype), sums: T.Buffer(out.shape, out.dtype)):
        T.device_entry()
        block = T.cta_id([blocks])
        thread = T.thread_id([THREADS])
        i = block * THREADS + thread
        if i < n:
            sums[i] = SUM
    return add
"""
TENSOR_CORES = """
from tvm.script import tirx as T
from tvm.script.tirx import tile as Tx
from tvm.tirx.cuda.tile_primitive.tma_utils import mma_shared_layout
from tvm.tirx.layout import S, TCol, TLane, TileLayout

def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    shared = mma_shared_layout(x.dtype, 3, (128, 64))
    @T.prim_func
    def product(xs: T.Buffer(x.shape, x.dtype), results: T.Buffer(out.shape, out.dtype)):
        T.device_entry()
        block = T.cta_id([1])
        group = T.warpgroup_id([1])
        warp = T.warp_id([4])
        lane = T.lane_id([32])
        a = T.alloc_buffer((128, 64), x.dtype, scope="shared", layout=shared, align=1024)
        b = T.alloc_buffer((128, 64), x.dtype, scope="shared", layout=shared, align=1024)
        place = T.shared_scalar("uint32")
        loaded = T.alloc_shared((1,), "uint64")
        done = T.alloc_shared((1,), "uint64")
        if warp == 0:
            T.ptx.tcgen05.alloc(T.address_of(place), n_cols=512, cta_group=1)
            if lane == 0:
                T.ptx.mbarrier.init(loaded.ptr_to([0]), 1)
                T.ptx.mbarrier.init(done.ptr_to([0]), 1)
        T.cuda.cta_sync()
        total = T.decl_buffer(
            (128, 512), "float32", scope="tmem", allocated_addr=place,
            layout=TileLayout(S[(128, 512) : (1 @ TLane, 1 @ TCol)]),
        )
        if warp == 0:
            if T.ptx.elect_sync():
                Tx.copy_async(a[:, :], xs[0:128, 0:64], dispatch="tma_auto", cta_group=1, mbar=loaded.ptr_to([0]))
                Tx.copy_async(b[:, :], xs[128:256, 0:64], dispatch="tma_auto", cta_group=1, mbar=loaded.ptr_to([0]))
                T.ptx.mbarrier.arrive.expect_tx(loaded.ptr_to([0]), 32768)
                T.ptx.mbarrier.try_wait(loaded.ptr_to([0]), 0)
                Tx.gemm_async(total[:, :128], a[:, :], b[:, :], accum=False, dispatch="tcgen05", cta_group=1)
                T.ptx.tcgen05.commit(done.ptr_to([0]), cta_group=1)
        T.ptx.mbarrier.try_wait(done.ptr_to([0]), 0)
        if warp == 0:
            T.ptx.tcgen05.relinquish_alloc_permit(cta_group=1)
            T.ptx.tcgen05.dealloc(place, n_cols=512, cta_group=1)
    return product
"""
WARPGROUPS = """
from tvm.script import tirx as T

def softmax(x, out, rows, cols, x_row_stride, out_row_stride):
    @T.prim_func
    def product(xs: T.Buffer(x.shape, x.dtype), results: T.Buffer(out.shape, out.dtype)):
        T.device_entry()
        block = T.cta_id([1])
        thread = T.thread_id([128])
        a = T.alloc_buffer((64 * 16,), x.dtype, scope="shared", align=128)
        b = T.alloc_buffer((8 * 16,), x.dtype, scope="shared", align=128)
        words = T.alloc_local((2,), "uint64")
        totals = T.alloc_local((4,), "float32")
        for i in T.unroll(4):
            totals[i] = 0.0
        a[thread] = xs[0, thread]
        b[thread] = xs[1, thread]
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(words[0]), a.ptr_to([0]), 8, 16, 0)
        T.ptx.wgmma.encode_matrix_descriptor(T.address_of(words[1]), b.ptr_to([0]), 8, 16, 0)
        T.cuda.cta_sync()
        T.ptx.wgmma.fence()
        T.ptx.wgmma.mma_async.ss(
            words[0], words[1], totals[0], totals[1], totals[2], totals[3],
            M=64, N=8, K=16, in_dtype=x.dtype, out_dtype="float32", transA=False, transB=False,
            scaleA=1.0, scaleB=1.0, scaleD=False,
        )
        T.ptx.wgmma.commit_group()
        T.ptx.wgmma.wait_group(0)
        results[0, thread] = T.cast(totals[0], out.dtype)
    return product
"""


def kernel(total: str = "xs[i] + ys[i]", threads: int = 256) -> str:
    return KERNEL.replace("SUM", total).replace("THREADS", str(threads))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    pytest.importorskip("tvm", reason="the extra tirx is not installed")
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    made = ProcessSandbox()
    yield made
    made.close()


def asked(source: str, slug: str = "vector_add") -> GradeRequest:
    return GradeRequest(slug, "", LANGUAGE, Lane.cpu, Mode.run, source, "mine.py")


def one_case(name: str = "gpu_ranked", slug: str = "vector_add") -> Assignment:
    rung = load_assignment(ROOT / "assignments" / slug)
    return dataclasses.replace(rung, cases=tuple(case for case in rung.cases if case.name == name))


def checked(sandbox: ProcessSandbox, source: str, rung: Assignment) -> dict[str, compiled.TargetReport]:
    with compiled.Compilation(rung, asked(source, rung.slug), sandbox) as compilation:
        return compilation.finish()


def shown(sandbox: ProcessSandbox, source: str) -> CompiledFor:
    """What the first target shows."""
    rung = dataclasses.replace(one_case(), compile_for=TARGETS[:1])
    return checked(sandbox, source, rung)[TARGETS[0]].shown


@pytest.mark.parametrize(
    ("slug", "case", "launched"),
    [
        ("vector_add", "gpu_ranked", ("add_kernel", "block 256", 0)),
        ("softmax", "gpu_ranked", ("short_rows_kernel", "block 256", 256)),
        ("softmax", "gpu_ranked_long", ("long_rows_kernel", "block 512", 256)),
    ],
)
def test_the_staff_kernels_load_wide_and_spill_nothing_on_both_targets(
    sandbox: ProcessSandbox, slug: str, case: str, launched: tuple[str, str, int]
) -> None:
    source = (ROOT / "reference" / slug / "solutions" / "tirx.py").read_text(encoding="utf-8")
    found = checked(sandbox, source, one_case(case, slug))
    assert tuple(found) == TARGETS
    for one in found.values():
        assert one.whole, one.shown.message
        (made,) = one.shown.kernels
        assert (made.message, made.spills, made.wgmma, made.tcgen05, made.tma) == ("", 0, 0, 0, 0)
        assert (made.kernel, made.config, made.shared_bytes % 1024) == launched
        assert made.ldg128 > 0
        assert made.registers > 8
        assert "÷16" in made.arguments


def test_tensor_cores_and_tma_are_found_where_a_device_has_them(sandbox: ProcessSandbox) -> None:
    blackwell = checked(sandbox, TENSOR_CORES, one_case(slug="softmax"))
    (made,) = blackwell["sm_100a"].shown.kernels
    assert (made.wgmma, made.tcgen05 > 0, made.tma) == (0, True, 2)
    (made,) = blackwell["sm_90a"].shown.kernels
    assert "PTXASError: Instruction 'tcgen05.alloc' not supported on .target 'sm_90a'" in made.message
    hopper = checked(sandbox, WARPGROUPS, one_case(slug="softmax"))
    (made,) = hopper["sm_90a"].shown.kernels
    assert (made.wgmma, made.tcgen05, made.tma) == (1, 0, 0)


def test_what_is_refused_is_told_in_the_students_own_line(sandbox: ProcessSandbox) -> None:
    for total, words in {
        "xs[i] + zs[i]": "Would not compile for sm_90a: line 13: CompilationError: Undefined variable: zs",
        "T.nothing(xs[i])": "line 13: CompilationError: module 'tvm.tirx.script' has no attribute 'nothing'",
        "xs[i, i]": "line 13: CompilationError: Check failed: ",
    }.items():
        (made,) = shown(sandbox, kernel(total)).kernels
        assert words in made.message
        assert made.error.frames[-1].line == 13
        assert made.kernel == "add"


def test_what_a_compiler_behind_it_refuses_names_the_kernel(sandbox: ProcessSandbox) -> None:
    (made,) = shown(
        sandbox, kernel('T.cuda.func_call("f", xs[i], source_code="float f(;", return_type="float32")')
    ).kernels
    assert made.message.startswith("Would not compile for sm_90a: line 7: CompilationError: nvcc does not take the ")
    too_much = kernel("words[255 - thread]").replace(
        "        if i < n",
        "        words = T.alloc_shared((100000,), x.dtype)\n        words[thread] = xs[0]\n        if i < n",
    )
    (made,) = shown(sandbox, too_much).kernels
    assert "line 7: PTXASError: Entry function 'add_kernel' uses too much shared data" in made.message


def test_host_code_that_fails_and_blocks_that_no_device_takes_are_told_apart(sandbox: ProcessSandbox) -> None:
    (made,) = shown(sandbox, kernel(threads=2048)).kernels
    assert "the block has 2048 threads; there may be 1024" in made.message
    host = shown(sandbox, kernel().replace("    blocks =", "    n.nothing\n    blocks ="))
    assert host.kernels == ()
    assert "The host code could not be followed without a device, in case `gpu_ranked`: line 5: " in host.message
    assert "loading the file" in shown(sandbox, "import tvm\n1 / 0\n").message


def test_what_an_entry_returns_has_to_be_a_kernel_of_its_arguments(sandbox: ProcessSandbox) -> None:
    for changed, words in {
        kernel().replace("return add", "return n"): "has to return the function that `T.prim_func` makes; it returned",
        kernel().replace(", ys: T.Buffer(y.shape, y.dtype)", "").replace("ys[i]", "xs[i]"): "`add` takes 2 arguments",
        kernel()
        .replace("        T.device_entry()\n", "")
        .replace("block * 256 + thread", "0")
        .replace("        block = T.cta_id([blocks])\n        thread = T.thread_id([256])\n", ""): "CompilationError",
    }.items():
        found = shown(sandbox, changed)
        assert words in f"{found.message} {' '.join(one.message for one in found.kernels)}"


def test_the_cpu_lane_refuses_it_and_shows_what_it_becomes(sandbox: ProcessSandbox) -> None:
    result = grade(
        asked(kernel()), assignment_folder=ROOT / "assignments" / "vector_add", reference_folder=None, sandbox=sandbox
    )
    assert result.verdict is Verdict.compile_error
    assert "TIRx does not run on the lane cpu" in result.explanation
    assert [made.registers > 0 for target in result.compiled for made in target.kernels] == [True] * 4
    assert {case.verdict for case in result.cases} == {None}
