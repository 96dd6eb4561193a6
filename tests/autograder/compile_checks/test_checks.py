"""Kernels compiled for devices that are not there: real runners, real compilers, and submissions that resist."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import codec
from autograder.assignment import Assignment, load_assignment
from autograder.compile_checks import machine_code
from autograder.contract import CompiledFor, GradeRequest, Lane, Language, Mode, Phase, Verdict
from autograder.judge import grade
from autograder.judge.compile import cross_compile, requirements
from autograder.listings import rows_of, unpack
from autograder.report import render
from autograder.sandbox.cgroups import Layout
from autograder.sandbox.plan import Features
from autograder.sandbox.probe import Machine, machine
from autograder.sandbox.process import ProcessSandbox

ROOT = Path(__file__).parents[3]
VECTOR_ADD = dataclasses.replace(load_assignment(ROOT / "assignments" / "vector_add"), compile_for=("sm_90a",))
MATMUL = load_assignment(ROOT / "assignments" / "matmul_tiled")
HEAD = "import os, sys\nimport torch, triton, triton.language as tl\n"
ADD = """
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask), mask=mask)
"""
ENTRY = "\ndef vector_add(x, y, out, n):\n"
LAUNCH = "    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


def asked(source: str, slug: str = "vector_add") -> GradeRequest:
    return GradeRequest(slug, "", Language.triton, Lane.cpu, Mode.run, source, "mine.py")


def check(
    assignment: Assignment, request: GradeRequest, sandbox: ProcessSandbox
) -> dict[str, cross_compile.TargetReport]:
    with cross_compile.Compilation(assignment, request, sandbox) as compilation:
        return compilation.finish()


def shown(sandbox: ProcessSandbox, source: str, assignment: Assignment = VECTOR_ADD) -> CompiledFor:
    """What the first target shows."""
    checked = check(assignment, asked(source, assignment.slug), sandbox)
    return checked[assignment.compile_for[0]].shown


def one_case(assignment: Assignment = VECTOR_ADD) -> Assignment:
    """Only the first ranked case of the lane, so that little is compiled."""
    case = next(case for case in assignment.cases if case.name == "gpu_ranked")
    return dataclasses.replace(assignment, cases=(case,))


@pytest.mark.full("slow")
def test_the_staff_matmul_has_tensor_cores_on_both_and_a_milestone_has_not(sandbox: ProcessSandbox) -> None:
    half = dataclasses.replace(one_case(MATMUL), compile_for=("sm_90a", "sm_100a"))
    staff = (ROOT / "reference" / "matmul_tiled" / "solutions" / "triton.py").read_text(encoding="utf-8")
    checked = check(half, asked(staff, "matmul_tiled"), sandbox)
    hopper, blackwell = (checked[target].shown.kernels[0] for target in half.compile_for)
    assert (hopper.message, blackwell.message) == ("", "")
    assert hopper.wgmma > 0 == hopper.tcgen05
    assert blackwell.tcgen05 > 0 == blackwell.wgmma
    assert hopper.registers > 32
    assert hopper.shared_bytes > 48 * 1024
    assert "num_warps=8" in hopper.config
    assert [result.met for result in requirements.evaluate(half, checked)] == [True, True]

    first = (ROOT / "assignments" / "matmul_tiled" / "milestones" / "2_small_tiles.py").read_text(encoding="utf-8")
    checked = check(half, asked(first, "matmul_tiled"), sandbox)
    assert [result.met for result in requirements.evaluate(half, checked)] == [False, False]


def test_a_machine_without_namespaces_compiles_too() -> None:
    """There a runner's folder for temporary files is another than the one that triton settled for before."""
    found = machine().features
    if not (found.landlock and found.seccomp):
        pytest.skip("this kernel has no Landlock or no seccomp")
    bare = ProcessSandbox(on=Machine(Features(landlock=found.landlock, seccomp=True), Layout()))
    try:
        kernels = shown(bare, HEAD + ADD + ENTRY + LAUNCH, one_case()).kernels
    finally:
        bare.close()
    assert [(kernel.message, kernel.spills) for kernel in kernels] == [("", 0)]


GLUON = """
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = offsets < n
    gl.store(out_ptr + offsets, gl.load(x_ptr + offsets, mask) + gl.load(y_ptr + offsets, mask), mask)


def vector_add(x, y, out, n):
    layout = gl.BlockedLayout([4], [32], [4], [0])
    add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024, layout=layout, num_warps=4)
"""


def test_gluon_is_compiled_with_errors_in_its_own_lines(sandbox: ProcessSandbox) -> None:
    request = dataclasses.replace(asked(GLUON), language=Language("gluon"))
    for checked in check(one_case(), request, sandbox).values():
        (kernel,) = checked.shown.kernels
        assert (kernel.kernel, kernel.message, kernel.spills) == ("add", "", 0)
        assert kernel.registers > 0
        assert kernel.ldg128 > 0
    wrong = GLUON.replace("BLOCK, layout=layout)", "BLOCK, layout=other)")
    for checked in check(one_case(), dataclasses.replace(request, source=wrong), sandbox).values():
        (kernel,) = checked.shown.kernels
        assert "NameError('other is not defined')" in kernel.message
        assert [frame.line for frame in kernel.error.frames] == [9]


def test_specialisation_comes_from_the_submissions_own_launches(sandbox: ProcessSandbox) -> None:
    source = HEAD + ADD + ENTRY + LAUNCH + "    add[(1,)](x[1:], y[1:], out[1:], 1, BLOCK=64, num_warps=2)\n"
    first, second = shown(sandbox, source, one_case()).kernels
    assert first.arguments == "x_ptr: *fp32 ÷16, y_ptr: *fp32 ÷16, out_ptr: *fp32 ÷16, n: i32 ÷16"
    assert first.config == "BLOCK=1024, num_warps=4, num_stages=3"
    assert (first.case, first.launch, second.launch) == ("gpu_ranked", 0, 1)
    assert second.arguments == "x_ptr: *fp32, y_ptr: *fp32, out_ptr: *fp32, n =1"
    assert second.config == "BLOCK=64, num_warps=2, num_stages=3"


def test_host_code_sees_the_device_that_is_compiled_for(sandbox: ProcessSandbox) -> None:
    source = HEAD + ADD + ENTRY + (
        "    assert x.is_cuda and torch.cuda.is_available()\n"
        "    many = torch.cuda.get_device_properties(x.device).multi_processor_count\n"
        "    scratch = torch.zeros(n, device=x.device)[:16]\n"
        "    with torch.cuda.stream(torch.cuda.Stream()):\n"
        "        kernel = add.warmup(x, y, scratch, n, BLOCK=128, grid=(1,))\n"
        "        kernel._init_handles()\n"
        "        assert kernel.n_regs > 0 and kernel.n_spills == 0\n"
        "        kernel[(many, 1, 1)](x, y, out, n, 128)\n"
        "    add[(many,)](x, y, out, n, BLOCK={132: 512, 148: 256}[many])\n"
    )  # fmt: skip
    both = dataclasses.replace(one_case(), compile_for=("sm_90a", "sm_100a"))
    checked = check(both, asked(source), sandbox)
    assert [one.shown.message for one in checked.values()] == ["", ""]
    blocks = [kernel.config.partition(",")[0] for one in checked.values() for kernel in one.shown.kernels]
    assert blocks == ["BLOCK=128", "BLOCK=512", "BLOCK=128", "BLOCK=256"]


def test_wide_loads_are_counted_where_elements_are_contiguous_and_aligned(sandbox: ProcessSandbox) -> None:
    strided = ADD.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK) * 3")
    wide, narrow = (shown(sandbox, HEAD + add + ENTRY + LAUNCH, one_case()).kernels[0] for add in (ADD, strided))
    assert wide.ldg128 > 0 == narrow.ldg128


@pytest.mark.parametrize(
    ("mnemonic", "counts"),
    [
        ("LDG.E.128", 1), ("LDG.E.128.CONSTANT", 1), ("LDG.E.ENL2.256", 1), ("LDG.E.64", 0), ("LDG.E", 0),
        ("STG.E.128", 0), ("LDS.128", 0), ("LDGSTS.E.128", 0),
    ],
)  # fmt: skip
def test_a_wide_load_is_one_of_global_memory(mnemonic: str, counts: int) -> None:
    line = f"        /*0040*/              @!P0 {mnemonic} R4, desc[UR4][R2.64] ;"
    assert machine_code.count([line])["ldg128"] == counts


@pytest.mark.parametrize(
    ("mnemonic", "counts"),
    [
        ("IMMA.16832.S8.S8", 1), ("IGMMA.64x256x32.S8.S8", 1), ("UTCIMMA", 1),
        ("HMMA.16816.F32", 0), ("HGMMA.64x256x16.F32", 0), ("QGMMA.64x256x32.F32.E4M3.E4M3", 0), ("UTCQMMA", 0),
    ],
)  # fmt: skip
def test_products_of_integers_are_told_from_others_on_tensor_cores(mnemonic: str, counts: int) -> None:
    line = f"        /*0040*/                   {mnemonic} R4, R8.ROW, R6.COL, R4 ;"
    assert machine_code.count([line])["imma"] == counts


def test_every_candidate_of_an_autotuner_is_compiled_and_one_may_be_refused(sandbox: ProcessSandbox) -> None:
    configs = ", ".join(f'triton.Config({{"BLOCK": {size}}}, num_warps=4)' for size in (512, 2**21, 1024))
    tuned = ADD.replace("@triton.jit", f'@triton.autotune([{configs}], key=["n"])\n@triton.jit')
    source = HEAD + tuned + ENTRY + '    add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)\n'
    kernels = shown(sandbox, source, one_case()).kernels
    assert [kernel.config.partition(",")[0] for kernel in kernels] == ["BLOCK=512", "BLOCK=2097152", "BLOCK=1024"]
    assert {kernel.launch for kernel in kernels} == {0}
    assert [bool(kernel.message) for kernel in kernels] == [False, True, False]


@pytest.mark.full("slow")
def test_what_the_compiler_refuses_is_told_with_the_students_line(sandbox: ProcessSandbox) -> None:
    """The interpreter takes all three; a device takes none."""
    source = HEAD + (
        "@triton.jit\n"
        "def inner(x):\n"
        "    return tl.dot(x, x)\n"
        "@triton.jit\n"
        "def tiny(x_ptr, out_ptr):\n"
        "    i = tl.arange(0, 2)[:, None] * 2 + tl.arange(0, 2)[None, :]\n"
        "    tl.store(out_ptr + i, inner(tl.load(x_ptr + i)))\n"
        "@triton.jit\n"
        "def huge(out_ptr, BLOCK: tl.constexpr):\n"
        "    tl.store(out_ptr + tl.arange(0, BLOCK), 0.0)\n"
        "@triton.jit\n"
        "def fat(x_ptr, out_ptr, SIDE: tl.constexpr):\n"
        "    i = tl.arange(0, SIDE)[:, None] * SIDE + tl.arange(0, SIDE)[None, :]\n"
        "    tl.store(out_ptr + i, tl.dot(tl.load(x_ptr + i), tl.load(x_ptr + 1 + i)))\n"
        "def vector_add(x, y, out, n):\n"
        "    tiny[(1,)](x, out)\n"
        "    huge[(1,)](out, BLOCK=2**21)\n"
        "    fat[(1,)](x, out, SIDE=256, num_warps=8)\n"
    )
    tiny, huge, fat = shown(sandbox, source, one_case()).kernels
    assert tiny.message.startswith("Would not compile for sm_90a: line 5: CompilationError: Input shapes should have")
    assert tiny.error is not None
    assert [(frame.line, frame.function) for frame in tiny.error.frames] == [(9, "tiny"), (5, "inner")]
    assert tiny.error.frames[-1].code == "return tl.dot(x, x)"
    assert huge.message.startswith("Would not compile for sm_90a: line 12: CompilationError: numel (2097152) exceeds")
    assert fat.message.startswith("Would not run for sm_90a: OutOfResources: out of resource: shared memory")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "    if x.sum() > 0: pass",
            "The host code reads a tensor's values (line 11), and a call without a device has",
        ),
        (
            "    raise ValueError('no')",
            "The host code could not be followed without a device, in case `gpu_ranked`: line 11:",
        ),
        ("    os._exit(3)", "The process ended itself in compiling with exit status 3."),
        ("    os.kill(os.getpid(), 11)", "Memory outside the arguments was touched in compiling (SIGSEGV)."),
    ],
)
def test_host_code_that_cannot_be_followed_is_told_of(sandbox: ProcessSandbox, line: str, message: str) -> None:
    found = shown(sandbox, HEAD + ADD + ENTRY + f"{line}\n" + LAUNCH, one_case())
    assert found.message.startswith(message)
    assert found.kernels == ()


def test_a_file_that_does_not_load_here_is_told_of(sandbox: ProcessSandbox) -> None:
    found = shown(sandbox, HEAD + "raise RuntimeError('only there')\n" + ENTRY + LAUNCH, one_case())
    assert found.message.startswith(
        "The host code could not be followed without a device, in loading the file: line 3:"
    )


def test_launches_beyond_the_limit_are_counted(sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cross_compile.BUDGET_S, Language.triton, -1.0)
    found = shown(sandbox, HEAD + ADD + ENTRY + LAUNCH + LAUNCH, one_case())
    assert (found.kernels, found.left_out) == ((), 2)


def test_a_compiler_that_does_not_end_is_stopped(sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_compile, "DEADLINE_S", 3.0)
    found = shown(sandbox, HEAD + ADD + ENTRY + "    while True: pass\n", one_case())
    assert found.message == "Compiling did not end within 3 s and was stopped."


# --- submissions that resist -----------------------------------------------------------------------------------------

SAYS = """
import gc, json
from autograder.runner.wire import Wire
line = next(one for one in gc.get_objects() if isinstance(one, Wire))
def say(**fields):
    line.send("Compiled", {"target": "sm_90a", **fields})
    import time; time.sleep(60)
def codes():
    import os
    from contextlib import suppress
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found += [int(name)] if "machine code" in os.readlink(f"/proc/self/fd/{name}") else []
    return found
KERNEL = dict(kernel="forged", uses=[[0, 0]], config="", arguments="", shared_bytes=0, offset=0, bytes=0, fault=None)
"""


def test_whoever_patches_the_reader_has_patched_the_wrong_process(sandbox: ProcessSandbox) -> None:
    lies = (
        "from autograder.compile_checks import machine_code\n"
        "from autograder.compile_checks.messages import Reading\n"
        "machine_code.read = machine_code.resources = lambda code: Reading(True, 1, wgmma=1000)\n"
    )
    (kernel,) = shown(sandbox, HEAD + lies + ADD + ENTRY + LAUNCH, one_case()).kernels
    assert kernel.wgmma == 0
    assert kernel.registers > 1


def test_what_can_still_be_forged_is_the_machine_code_itself(sandbox: ProcessSandbox) -> None:
    """No defence stands here, and the pages do not say so: another kernel's machine code is handed in as one's own."""
    forges = (
        "from autograder.compile_checks import launches\n"
        "honest = launches._succeeded\n"
        "seen = []\n"
        "def forged(function, compiled):\n"
        "    kernel = honest(function, compiled)\n"
        "    seen.append(kernel.code)\n"
        "    kernel.code = seen[0]\n"
        "    return kernel\n"
        "launches._succeeded = forged\n"
    )
    body = "    add[(1,)](x, y, out, n, BLOCK=4096, num_warps=1)\n" + LAUNCH
    honest = shown(sandbox, HEAD + ADD + ENTRY + body, one_case()).kernels
    taken = shown(sandbox, HEAD + forges + ADD + ENTRY + body, one_case()).kernels
    assert honest[0].registers != honest[1].registers
    assert taken[0].registers == taken[1].registers == honest[0].registers


SEALS_ALL = """
import fcntl
for descriptor in range(3, 64):
    try:
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
    except OSError:
        pass
"""


def test_what_cannot_be_sealed_is_not_believed_and_no_fault_of_ours(sandbox: ProcessSandbox) -> None:
    """Were it ours, a requirement of the exercise could not be told to be unmet."""
    source = HEAD + SEALS_ALL + ADD + ENTRY + LAUNCH
    for found in check(one_case(), asked(source, VECTOR_ADD.slug), sandbox).values():
        assert found.shown.message == "The compiler's process gave an unexpected answer."
        assert not found.shown.kernels
        assert not found.infrastructure_fault


@pytest.mark.parametrize(
    "said",
    [
        "say(kernels=5)",
        "say(kernels=[], left_out=-(2**80))",
        "say(kernels=[dict(KERNEL, surprise=1)])",
        "line.send('Ended', {'target': 'sm_80', 'code': 0, 'signal': None})",
        "line.send('Readings', {'kernels': []})",
        "line._channel.send(b'\\xff' * 100)",
        "line._channel.send(b'{' * 130_000)",
    ],
)
def test_what_does_not_parse_is_an_end(sandbox: ProcessSandbox, said: str) -> None:
    found = shown(sandbox, HEAD + SAYS + said + ADD + ENTRY + LAUNCH, one_case())
    assert found.message == "The compiler's process gave an unexpected answer."
    assert found.kernels == ()


def test_one_target_that_ends_leaves_the_others(sandbox: ProcessSandbox) -> None:
    both = dataclasses.replace(one_case(), compile_for=("sm_90a", "sm_100a"))
    source = HEAD + ADD + ENTRY + "    if torch.cuda.get_device_capability()[0] == 9: os._exit(7)\n" + LAUNCH
    hopper, blackwell = (one.shown for one in check(both, asked(source), sandbox).values())
    assert hopper.message.startswith("The process ended itself in compiling with exit status 7.")
    assert blackwell.message == ""
    assert blackwell.kernels[0].registers > 0


def test_absurd_claims_are_cut_to_size(sandbox: ProcessSandbox) -> None:
    said = (
        "forged = dict(KERNEL, kernel='k\\x1b' * 200, offset=2**60, bytes=2**60, shared_bytes=-5)\n"
        "forged['uses'] = [[7, -3], [0, 2]]\n"
        "say(kernels=[forged] * 30, left_out=2**62)\n"
    )
    found = shown(sandbox, HEAD + SAYS + said + ADD + ENTRY + LAUNCH, one_case())
    assert len(found.kernels) == 24
    kernel = found.kernels[0]
    assert "\x1b" not in kernel.kernel
    assert len(kernel.kernel) < 310
    assert (kernel.shared_bytes, kernel.registers, kernel.launch) == (0, 0, 2)
    assert kernel.message == "Its machine code could not be read."
    assert found.left_out == cross_compile.MAX_LEFT_OUT


def test_ptx_is_read_from_where_it_may_be_and_as_text(sandbox: ProcessSandbox) -> None:
    said = (
        "os.pwrite(codes()[0], b'{\\n\\x1b[2J\\xff <script>\\t;\\n', 0)\n"
        "say(kernels=[dict(KERNEL, ptx_bytes=19), dict(KERNEL, offset=2**60, ptx_bytes=2**60)])\n"
    )
    checked = check(one_case(), asked(HEAD + SAYS + said + ADD + ENTRY + LAUNCH), sandbox)["sm_90a"]
    assert [kernel.ptx for kernel in checked.listings.kernels] == ["0\t�[2J� <script>"]


def test_bytes_that_are_no_machine_code_are_not_read(sandbox: ProcessSandbox) -> None:
    said = "os.pwrite(codes()[0], b'\\x7fELF' + os.urandom(5000), 0)\nsay(kernels=[dict(KERNEL, bytes=5004)])\n"
    (kernel,) = shown(sandbox, HEAD + SAYS + said + ADD + ENTRY + LAUNCH, one_case()).kernels
    assert kernel.message == "Its machine code could not be read."


# --- a whole grading -------------------------------------------------------------------------------------------------


def test_a_run_shows_it_beside_the_cases(sandbox: ProcessSandbox) -> None:
    source, files = HEAD + ADD + ENTRY + LAUNCH, {}
    result = grade(
        asked(source),
        assignment_folder=ROOT / "assignments" / "vector_add",
        reference_folder=None,
        sandbox=sandbox,
        keep=files.__setitem__,
    )
    assert result.verdict is Verdict.passed, result.explanation
    assert [found.target for found in result.compiled] == ["sm_90a", "sm_100a", "gfx942", "gfx950"]
    assert all(found.kernels and not found.message for found in result.compiled)

    assert set(files) == {f"machine-code.{found.target}" for found in result.compiled}
    (store,) = (number for number, line in enumerate(source.split("\n"), 1) if "tl.store" in line)
    for name, data in files.items():
        kept = unpack(data)
        assert name == f"machine-code.{kept.target}"
        both = ((kept.kernels[0].sass, "STG"), (kept.kernels[0].ptx, "st.global"))
        for text, word in both if kept.target.startswith("sm_") else ((kept.kernels[0].sass, "_store_"),):
            assert {row.line for row in rows_of(text) if word in row.text} == {store}
    assert [phase.phase for phase in result.phases].count(Phase.profiling) == 1
    assert "compiled for sm_100a" in render(result.for_student())
    assert codec.loads(type(result), codec.dumps(result)) == result
