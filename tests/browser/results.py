"""Results as the judge words them, for pages to show."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from autograder.contract import (
    AACheck,
    Batch,
    Bound,
    CaseResult,
    ClockSample,
    CompiledFor,
    CompiledKernel,
    DeviceKernel,
    Finding,
    FindingKind,
    Frame,
    GpuFacts,
    GradeResult,
    Measurement,
    Mismatch,
    Pair,
    Pattern,
    Phase,
    RequirementResult,
    StudentError,
    Throttle,
    Verdict,
    Visibility,
)
from autograder.listings import KernelListing, Listings, ptx_rows, sass_rows, text_of

LISTINGS = Path(__file__).parents[1] / "fixtures" / "listings"
SOURCE = '''"""Vector addition: out = x + y."""

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Each program adds one block of BLOCK elements."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, n: int) -> None:
    """Launch enough programs to cover n elements."""
    block = 1024
    vector_add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
'''
WRONG_SOURCE = SOURCE.replace("triton.cdiv(n, block)", "n // block")

ENVIRONMENT = {"python": "3.11.2", "torch": "2.13.0+cpu", "triton": "3.9.0 (interpreter)", "kernel": "Linux 6.1"}
PROMISES = ("no_network", "other_uid", "private_files", "whole_tree")


GROUPS = {"power_of_two": "sizes", "odd": "sizes", "ranked_odd": "sizes", "half": "types", "infinite": "types"}


def public(name: str, category: str, seconds: float = 0.021, **changes: object) -> CaseResult:
    """A public case that passed, in the group that the first rung has it in."""
    case = CaseResult(
        name=name,
        category=category,
        group=GROUPS.get(name, "types" if name == "ranked_half" else "basics"),
        visibility=Visibility.public,
        ranked=name.startswith("ranked"),
        verdict=Verdict.passed,
        message="Passed.",
        seconds=seconds,
    )
    return dataclasses.replace(case, **changes)  # type: ignore[arg-type]


def hidden(category: str, verdict: Verdict | None = Verdict.passed) -> CaseResult:
    """A hidden case; its name and message are for staff."""
    return CaseResult(
        name=f"hidden {category} n=7919",
        category=category,
        group="hidden",
        visibility=Visibility.hidden,
        ranked=False,
        verdict=verdict,
        message="Passed." if verdict is Verdict.passed else "1 of 7919 elements is wrong: the last element.",
        seconds=0.034,
    )


CASES = (
    public("one", "a single element", 0.004),
    public("warp_less_one", "less than a warp", 0.005),
    public("thousand", "one block, partly filled", 0.008),
    public("power_of_two", "whole blocks only", 0.012),
    public("odd", "an odd size", 0.018),
    public("half", "float16", 0.011),
    public("infinite", "infinities among the values", 0.009),
    public("ranked_odd", "ranked", 0.061),
    public("ranked_half", "ranked", 0.074),
)
HIDDEN = (hidden("odd sizes"), hidden("one block and one element"), hidden("misaligned pointers"))


def measurement(case: str, ratio: float, spread: float = 0.025, reference_us: float = 5210.0) -> Measurement:
    """A ranked case's paired ratio with its interval."""
    time_us = reference_us * ratio
    pairs = tuple(
        Pair(time_us * f - 180, time_us * f, reference_us / f - 180, reference_us / f)
        for f in (0.98, 1.01, 1.0, 0.99, 1.03, 1.0, 0.97)
    )
    return Measurement(
        case=case,
        clock="sealed",
        ratio=ratio,
        ratio_low=ratio * (1 - spread),
        ratio_high=ratio * (1 + spread),
        time_us=time_us,
        time_low_us=time_us * (1 - spread),
        time_high_us=time_us * (1 + spread),
        reference_us=reference_us,
        flops=100003.0,
        bytes_moved=1200036.0,
        pairs=pairs,
    )


def passed(ratio: float = 1.34, spread: float = 0.025) -> GradeResult:
    """Everything passed and was measured."""
    return GradeResult(
        verdict=Verdict.passed,
        explanation="All 12 cases passed.",
        cases=(*CASES, *HIDDEN),
        measurements=(
            measurement("ranked_odd", ratio, spread),
            measurement("ranked_half", ratio * 1.08, spread, 7480.0),
        ),
        environment=ENVIRONMENT,
        promises=PROMISES,
    )


TAIL = Mismatch(
    output="out",
    shape=(1000,),
    dtype="float32",
    wrong=1000,
    total=1000,
    pattern=Pattern.untouched,
    where="nothing was written: the output still holds the judge's fill value",
    index=(0,),
    expected="0.33740",
    got="not written",
    tolerance="0",
    map=(*((1000,) * 32 for _ in range(31)), (1000,) * 8),
    tile=(1, 1),
)


def _matrix_map() -> tuple[tuple[int, ...], ...]:
    """The last of 32 columns of tiles is all wrong, and a few elements elsewhere."""
    return tuple(
        tuple(1000 if x == 31 else 45 if (x, y) in {(3, 5), (17, 20)} else 0 for x in range(32)) for y in range(32)
    )


COLUMNS = Mismatch(
    output="out",
    shape=(1021, 1009),
    dtype="float32",
    wrong=17_366,
    total=1_030_189,
    pattern=Pattern.columns_from,
    where="columns 992–1008 (the last 17 of 1009: not a whole tile); nothing was written there",
    index=(0, 992),
    expected="0.00018274196",
    got="not written",
    tolerance="1.53e-08",
    map=_matrix_map(),
    tile=(32, 32),
)


def wrong() -> GradeResult:
    """The tail was never written."""
    tail = dataclasses.replace(
        TAIL,
        shape=(20011,),
        wrong=555,
        total=20011,
        pattern=Pattern.tail,
        where="everything from index 19456 on (the last 555 of 20011: not a whole tile); nothing was written there",
        index=(19456,),
        expected="1.2851562",
        map=tuple(tuple(1000 if y * 32 + x >= 972 else 0 for x in range(32 if y < 31 else 9)) for y in range(32)),
        tile=(1, 20),
    )
    bad = {
        "one": dataclasses.replace(TAIL, shape=(1,), wrong=1, total=1, map=((1000,),)),
        "thousand": TAIL,
        "odd": tail,
    }
    cases = tuple(
        dataclasses.replace(
            case,
            verdict=Verdict.wrong_answer,
            message=f"{bad[case.name].wrong} of {bad[case.name].total} elements of `out` are wrong.",
            mismatch=bad[case.name],
        )
        if case.name in bad
        else case
        for case in CASES
        if not case.ranked
    )
    # The first failure is the one with the most to see.
    order = sorted(cases, key=lambda case: case.name != "odd")
    return GradeResult(
        verdict=Verdict.wrong_answer,
        explanation=(
            "Case odd: 555 of 20011 elements of `out` are wrong: everything from index 19456 on; nothing was written "
            "there. Check how many programs the grid starts and what the last one stores."
        ),
        cases=(*order, hidden("odd sizes", Verdict.wrong_answer), hidden("misaligned pointers")),
        findings=(
            Finding(FindingKind.library_call, "torch.add did the work in 2 of 7 cases.", {"operators": "aten.add: 2"}),
        ),
        log="grid = 19\ngrid = 0\n",
        environment=ENVIRONMENT,
        promises=PROMISES,
    )


def columns() -> GradeResult:
    """A matrix whose last columns were never written."""
    case = public(
        "odd_columns",
        "odd sizes",
        verdict=Verdict.wrong_answer,
        message="17,366 elements are wrong.",
        mismatch=COLUMNS,
    )
    return GradeResult(
        verdict=Verdict.wrong_answer,
        explanation=(
            "Case odd_columns: 17366 of 1030189 elements of `out` are wrong: columns 992–1008. "
            "Check the grid along the columns and the mask of the last tile."
        ),
        cases=(public("square", "whole tiles only"), case, hidden("odd sizes", verdict=None)),
        environment=ENVIRONMENT,
    )


ERROR = StudentError(
    kind="AttributeError",
    message="module 'triton.language' has no attribute 'program'. Did you mean: 'program_id'?",
    frames=(
        Frame(21, "vector_add", "    vector_add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)"),
        Frame(11, "vector_add_kernel", "    offsets = tl.program(0) * BLOCK + tl.arange(0, BLOCK)"),
    ),
)


def crashed(error: StudentError = ERROR) -> GradeResult:
    """The first call raised; nothing after it was run."""
    first = dataclasses.replace(
        CASES[0], verdict=Verdict.runtime_error, message="The kernel raised AttributeError.", error=error
    )
    rest = tuple(
        dataclasses.replace(case, verdict=None, message="Not run.", seconds=None) for case in (*CASES[1:], *HIDDEN)
    )
    return GradeResult(
        verdict=Verdict.runtime_error,
        explanation="Case one: your code raised AttributeError in line 11.",
        error=error,
        cases=(first, *rest),
        environment=ENVIRONMENT,
        promises=PROMISES,
    )


def grader_error() -> GradeResult:
    """Ours."""
    return GradeResult(
        verdict=Verdict.grader_error,
        explanation="The grader failed. This is not your fault and costs you nothing.",
        cases=(),
        environment=ENVIRONMENT,
    )


# --- on a GPU --------------------------------------------------------------------------------------------------------

GPU_ENVIRONMENT = {"image": "sha256:3f1c…", "torch": "2.11.0", "triton": "3.6.0", "gpu driver": "580.95"}
GPU_CASES = (
    public("one", "a single element", 0.003),
    public("gpu_odd", "an odd size", 0.004, group="sizes"),
    public("gpu_bfloat16", "bfloat16", 0.005, group="types"),
    public("gpu_ranked", "ranked", 0.012, group="sizes", ranked=True),
    public("gpu_ranked_bfloat16", "ranked", 0.012, group="types", ranked=True),
)
GPU = GpuFacts(
    name="NVIDIA H200",
    uuid="GPU-0b1c",
    driver="580.95",
    samples=(
        ClockSample(1.0, Phase.checking, 1980, 3201, 41, 180.0),
        ClockSample(3.0, Phase.measuring, 1965, 3201, 48, 430.0, (Throttle.power_cap,)),
        ClockSample(3.5, Phase.measuring, 1980, 3201, 49, 425.0),
    ),
    throttled=(Throttle.power_cap,),
)


def on_gpu(case: str, ratio: float, *, reference_us: float = 402.0, agrees: bool = True) -> Measurement:
    """A ranked case's paired ratio by the event clock, bounded by sealed batches."""
    time_us = reference_us * ratio
    pairs = tuple(
        Pair(time_us * f, time_us * f + 160, reference_us / f, reference_us / f + 160)
        for f in (0.998, 1.001, 1.0, 0.999, 1.003, 1.0, 0.997) * 3
    )
    return Measurement(
        case, "event", ratio, ratio * 0.998, ratio * 1.002, time_us, time_us * 0.999, time_us * 1.001, reference_us,
        134217728.0, 1610612736.0, pairs,
        stages=(21,),
        bound=Bound(32, (Batch(12990.0, 12870.0),), (), (181.0, 176.0), time_us * 1.011, 0.011, 0.03, bounded=True),
        control=AACheck((), reference_us * 0.997, 1.0, 0.003 if agrees else 0.21, 0.02, agrees),
    )  # fmt: skip


def _compiled(target: str, **changes: int) -> CompiledFor:
    plain = CompiledKernel(
        kernel="vector_add_kernel", case="gpu_ranked", launch=0, config="BLOCK=1024, num_warps=4, num_stages=3",
        arguments="x_ptr: *fp32 ÷16, y_ptr: *fp32 ÷16, out_ptr: *fp32 ÷16, n: i32 ÷16", registers=26,
    )  # fmt: skip
    error = StudentError("CompilationError", "", (Frame(14, "vector_add_kernel", "y = tl.load(y_ptr + offsets)"),))
    broken = dataclasses.replace(
        plain, launch=1, message="Would not compile: `BLOCK` is not a power of two.", error=error
    )
    return CompiledFor(target, (dataclasses.replace(plain, **changes), broken), left_out=2, seconds=3.1)


def gpu_check() -> GradeResult:
    """Passed on a lane that measures apart, with what compiling for other devices showed."""
    return GradeResult(
        verdict=Verdict.passed,
        explanation="All 8 cases passed.",
        cases=(*GPU_CASES, *HIDDEN),
        environment=GPU_ENVIRONMENT,
        promises=PROMISES,
        compiled=(_compiled("sm_90a", spills=12, shared_bytes=49_152), _compiled("sm_100a", tma=3)),
        requirements=(
            RequirementResult("loads", "Loads by 16 bytes", "sm_90a", "registers < 64", met=True, message="", group=""),
            RequirementResult(
                "spills",
                "Spills nothing",
                "sm_90a",
                "spills == 0",
                met=False,
                message="`vector_add_kernel` spills 12 times.",
            ),
            RequirementResult("blackwell", "Uses TMA", "sm_100a", "tma > 0", met=None, message="It did not compile."),
        ),
        findings=(Finding(FindingKind.library_call, "One kernel was other."),),
        device_kernels=(
            DeviceKernel("vector_add_kernel", 1, 0.93, own=True),
            DeviceKernel("void at::native::vectorized_elementwise_kernel<4, FillFunctor>", 1, 0.07, own=False),
        ),
    )


def gpu_measured(ratio: float = 1.08, **changes: object) -> GradeResult:
    """The ranked cases' times."""
    plain = GradeResult(
        verdict=Verdict.passed,
        explanation="Measured.",
        cases=GPU_CASES[3:],
        measurements=(on_gpu("gpu_ranked", ratio), on_gpu("gpu_ranked_bfloat16", ratio * 1.02)),
        environment=GPU_ENVIRONMENT,
        promises=PROMISES,
        gpu=GPU,
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def machine_code(target: str = "sm_90a") -> Listings:
    """The code of `SOURCE` as nvdisasm and triton gave it."""
    sass, ptx = ((LISTINGS / f"vector_add.{kind}").read_text(encoding="utf-8") for kind in ("sass", "ptx"))
    kernel = KernelListing(
        "vector_add_kernel", "gpu_ranked", 0, "BLOCK=1024, num_warps=4, num_stages=3",
        text_of(list(sass_rows(sass, "vector_add.py"))), text_of(list(ptx_rows(ptx, "vector_add.py"))),
    )  # fmt: skip
    return Listings(target, (kernel,))
