"""What ran on a GPU, and which of it is a library's: names as an H200 told them."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from autograder import codec
from autograder.assignment import load_assignment
from autograder.contract import DeviceKernel, FindingKind, GradeResult, Launch, Verdict
from autograder.judge.correctness.checker import CallResult
from autograder.judge.probes.work_findings import (
    LIBRARIES,
    MAX_OTHER_SHARE,
    WorkRecord,
    base_name,
    device_kernels,
    findings,
    library_kernels,
    other_kernels,
)
from autograder.judge.protocol.runner_client import CallReply
from autograder.protocol import Ran

ROOT = Path(__file__).parents[3]
VECTOR_ADD = load_assignment(ROOT / "assignments" / "vector_add")
STYLES = ROOT / "docs" / "data" / "gpu-2026-11-27"
FOUND = ROOT / "docs" / "data" / "gpu-2026-11-21" / "aot_findings.json"
TORCH_ADDS = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
)
WRONG = {"small": CallResult(Verdict.wrong_answer, "")}


def traced(*ran: Ran) -> CallReply:
    return CallReply((), 1.0, 1.0, (), {}, (), ran)


def record(*names: str) -> WorkRecord:
    made = WorkRecord()
    launches = tuple(Launch(name, (1,), 1) for name in names)
    made.add(CallResult(Verdict.passed, "", finished=CallReply((), 1.0, 1.0, launches, {}, ())))
    return made


def test_calls_are_joined_by_name_and_ordered_by_their_time() -> None:
    both = [traced(Ran("mine", 1, 300), Ran("fill", 2, 100)), traced(Ran("mine", 3, 500), Ran("copy", 1, 100))]
    kernels = device_kernels(record("mine"), both)
    assert kernels == (
        DeviceKernel("mine", 4, 0.8, own=True),
        DeviceKernel("fill", 2, 0.1, own=False),
        DeviceKernel("copy", 1, 0.1, own=False),
    )


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("_softmax_kernel", "_softmax_kernel"),
        ("void add_wide<__nv_bfloat16>(__nv_bfloat16 const*, long)", "add_wide"),
        ("void (anonymous namespace)::piece<float>(float const*)", "piece"),
        ("void mine::scan::tiles<float, cub::Sum>(float const*)", "tiles"),
        ("count_keys(unsigned char const*, int*, long)", "count_keys"),
        ("Memcpy DtoH", "Memcpy DtoH"),
        ("", ""),
    ],
)
def test_a_kernel_is_known_by_the_name_its_source_gives_it(signature: str, name: str) -> None:
    assert base_name(signature) == name


def test_a_template_of_the_students_is_their_own_and_torchs_kernel_of_that_name_is_not() -> None:
    ran = traced(Ran("void mine<float>(float const*)", 1, 1), Ran("void at::native::mine<4>(int)", 1, 3))
    assert [one.own for one in device_kernels(record("mine"), [ran])] == [False, True]


NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, false>(int, float)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >"
CAST = (
    "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>"
)


@pytest.mark.parametrize(
    ("other", "share", "shown"),
    [
        (NORM, 0.3, True),
        (NORM, 0.2, False),
        (FILL, 0.9, False),
        (CAST, 0.9, False),
        ("Memset", 0.9, False),
        ("Memcpy DtoD", 0.9, False),
        ("Memcpy DtoH", 0.9, True),
        ("Memcpy DtoH", 0.1, False),
    ],
)
def test_work_on_the_device_that_is_not_the_students_is_shown_by_its_share(
    other: str, share: float, shown: bool
) -> None:
    kernels = (DeviceKernel(other, 1, share, own=False), DeviceKernel("mine", 1, 1 - share, own=True))
    found = findings(VECTOR_ADD, record("mine"), WRONG, complete=True, kernels=kernels)
    assert [one.kind for one in found] == [FindingKind.other_kernels] * shown
    assert all(f"{share:.0%}" in one.summary and "mine" not in one.evidence["on the device"] for one in found)


READS_BACK_AT_EVERY_STEP = "vector_add/python_loop_of_small_launches.py"
"""Its 12 288 copies of one element take as long as its kernels, and look like work that goes to the host."""


def test_of_other_peoples_honest_kernels_one_is_shown() -> None:
    """By what ran on H100s: fills, casts, scratch, sums finished on the host, tuning within the call."""
    most, shown = 0.0, set()
    for path in sorted(STYLES.glob("styles_*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as rows:
            programs = [(row["file"], [one["result"] for one in row["attempts"]]) for row in map(json.loads, rows)]
        for file, results in programs:
            launched = record(*{launch["kernel"] for result in results for launch in result["launches"]})
            for result in results:
                ran = [Ran(one["name"], one["calls"], int(1e6 * one["share"])) for one in result["device_kernels"]]
                kernels = device_kernels(launched, [traced(*ran)])
                if other_kernels(kernels) is not None:
                    shown.add(file)
                else:
                    most = max(most, sum(one.share for one in kernels if "Memcpy DtoH" in one.name))
    assert shown == {READS_BACK_AT_EVERY_STEP}
    assert 0.0 < most < MAX_OTHER_SHARE / 5


def test_absurd_claims_still_travel() -> None:
    ran = [Ran(f"k{number}\x1b" * 500, 2**63, 2**64 - 1) for number in range(100)] + [Ran("less", -5, -(2**63))]
    kernels = device_kernels(WorkRecord(), [traced(*ran)])
    assert len(kernels) == 64
    assert all(0 <= kernel.share <= 1 and "\x1b" not in kernel.name for kernel in kernels)
    result = GradeResult(Verdict.passed, "", (), device_kernels=kernels)
    assert codec.loads(GradeResult, codec.dumps(result)).device_kernels == kernels


@pytest.mark.parametrize(
    "name",
    [
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize256x128x8_stage3_warpsize4x2x1_ffma__5x_cublas",
        "void geam_kernel<int, float, false, false, false, false, 6, 5, 3, true>(cublasGeamParams<int, float>)",
        "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NNT",
        "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4>(Params)",
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>",
        "void splitKreduce_kernel<32, 16, int, float, float, float, float, false, false, false>",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
        "triton_poi_fused_add_0",
        "triton_red_fused__softmax_1",
    ],
)
def test_names_of_libraries_are_known(name: str) -> None:
    assert LIBRARIES.search(name)


@pytest.mark.parametrize(
    "name",
    [
        "_matmul_kernel", "gemm_kernel", "my_gemm", "add_float32", "_softmax_online_kernel",
        "Memcpy DtoD (Device -> Device)", "sm_kernel", "ampere", "flash_attention_forward", "triton_kernel",
        "hopper_matmul",
    ],
)  # fmt: skip
def test_names_that_students_give_are_not_taken_for_libraries(name: str) -> None:
    assert not LIBRARIES.search(name)


def test_a_kernel_that_the_rung_lists_is_found_wherever_it_was_launched() -> None:
    kernels = (DeviceKernel(TORCH_ADDS, 1, 0.4, own=False), DeviceKernel("mine", 1, 0.6, own=True))
    (found,) = findings(VECTOR_ADD, record("mine"), WRONG, complete=True, kernels=kernels)
    assert found.kind is FindingKind.library_call
    assert "(40%)" in found.summary
    assert found.evidence["on the device"].endswith("mine × 1 (60%)")


def test_ones_own_kernel_is_no_librarys_whatever_its_name() -> None:
    assert library_kernels((), [DeviceKernel("cutlass_like", 1, 1.0, own=True)]) == []
    assert library_kernels((), [DeviceKernel("cutlass_like", 1, 1.0, own=False)]) == ["cutlass_like (100%)"]


def test_without_a_trace_nothing_is_said_of_the_device() -> None:
    (found,) = findings(VECTOR_ADD, WorkRecord(), WRONG, complete=True)
    assert found.kind is FindingKind.no_kernel
    assert "on the device" not in found.evidence


def test_on_an_h200_the_names_alone_told_libraries_from_students() -> None:
    """The raw rows of `scripts/device/aot.sh`: files that are named for a library, and no kernel of a student's own."""
    for row in json.loads(FOUND.read_text(encoding="utf-8")):
        assignment = load_assignment(ROOT / "assignments" / row["slug"])
        kernels = [DeviceKernel(*one) for one in row["device kernels"]]
        named = library_kernels(assignment.library_kernels, kernels)
        adds = row["file"] == "honest_takes_scratch_from_torch.py"  # It has torch add, and is shown for it.
        assert bool(named) == ("library" in row["file"] or adds), row["file"]
