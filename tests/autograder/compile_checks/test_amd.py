"""Kernels compiled for AMD's devices, of which there is no lane: read and shown, and never a verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from autograder import languages
from autograder.compile_checks import amdgcn, machine_code
from autograder.compile_checks.targets import AMD, TARGETS, of_vendor
from autograder.contract import CompiledFor, Language, Verdict
from autograder.judge.compile import target_rejections
from autograder.judge.compile.cross_compile import RejectedCase, TargetReport, targets_of
from autograder.listings import sass_rows
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.compile_checks.test_checks import ADD, ENTRY, HEAD, LAUNCH, asked, check, one_case


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


AMDS = tuple(of_vendor(AMD))
WITH_AMD = dataclasses.replace(one_case(), compile_for=("sm_90a", *AMDS))
ASSEMBLY = """\
\t.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-gfx942"
\t.text
two:
\t.loc\t1 7 5 prologue_end              ; kernel.py:7:5
\tglobal_load_dwordx4 v[0:3], v[4:5], off
.LBB0_1:
\t.loc\t2 90 3                           ; standard.py:90:3 @[ kernel.py:9:12 ]
\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
\tscratch_store_dword off, v0, s0 ; 4-byte Folded Spill
\tscratch_load_dword v0, off, s0 ; 4-byte Folded Reload
.Lfunc_end0:
one:
\tglobal_load_dword v0, v[4:5], off
.Lfunc_end1:
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .name:           x_ptr
        .offset:         0
    .group_segment_fixed_size: 128
    .name:           two
    .private_segment_fixed_size: 8
    .vgpr_count:     70
    .vgpr_spill_count: 2
  - .agpr_count:     0
    .group_segment_fixed_size: 0
    .name:           one
    .private_segment_fixed_size: 0
    .vgpr_count:     5
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
...
"""


def test_numbers_and_lines_of_every_kernel_are_read() -> None:
    read = machine_code.all_disassembled(ASSEMBLY.encode())
    (two, text), (one, _) = read["two"], read["one"]
    assert (two.registers, two.stack_bytes, two.shared_bytes) == (70, 8, 128)
    assert (two.spills, two.mfma, two.ldg128) == (2, 1, 1)
    assert (one.registers, one.stack_bytes, one.spills, one.mfma, one.ldg128) == (5, 0, 0, 0, 0)
    rows = [(row.line, row.text.split()[0]) for row in sass_rows(text, "kernel.py")]
    assert rows == [
        (7, "global_load_dwordx4"), (0, "LBB0_1:"), (9, "v_mfma_f32_32x32x8_f16"),
        (9, "scratch_store_dword"), (9, "scratch_load_dword"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "\t.amdgcn_target",
        "\t.amdgcn_target\namdhsa.kernels:\n  - .name: k\n    .vgpr_count: 1",
        "\t.amdgcn_target\n" + "x" * 1_000_000,
        "\t.amdgcn_target\namdhsa.kernels:\n" + "  - .a: 1\n    .name: k\n" * 10_000,
        "\t.amdgcn_target\n\x00\ufffe",
    ],
)
def test_any_text_is_read(text: str) -> None:
    for reading, _ in amdgcn.all_read(text.encode()).values():
        assert reading.readable


def test_a_kernel_is_compiled_for_them_beside_the_others(sandbox: ProcessSandbox) -> None:
    checked = check(WITH_AMD, asked(HEAD + ADD + ENTRY + LAUNCH), sandbox)
    assert set(checked) == {"sm_90a", *AMDS}
    for target in AMDS:
        (kernel,) = checked[target].shown.kernels
        assert (kernel.message, kernel.spills, kernel.mfma) == ("", 0, 0)
        assert kernel.registers > 0
        (listing,) = checked[target].listings.kernels
        assert "_store_dword" in listing.sass
        assert any(line and not line.startswith("0") for line in listing.sass.split("\n"))


def test_host_code_sees_such_a_device(sandbox: ProcessSandbox) -> None:
    choose = (
        "    import torch\n"
        "    amd = triton.runtime.driver.active.get_current_target().backend == 'hip'\n"
        "    assert amd == (torch.version.hip is not None) == (torch.version.cuda is None)\n"
        "    block = 64 if amd else 128\n"
        "    add[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)\n"
    )
    checked = check(WITH_AMD, asked(HEAD + ADD + ENTRY + choose), sandbox)
    configs = {target: report.shown.kernels[0].config.split(",")[0] for target, report in checked.items()}
    assert configs == {"sm_90a": "BLOCK=128", **dict.fromkeys(AMDS, "BLOCK=64")}


def test_what_only_they_refuse_is_no_verdict() -> None:
    refused = (RejectedCase("gpu_ranked", "Would not run.", None),)
    theirs = {target: TargetReport(CompiledFor(target), refused=refused) for target in AMDS}
    taken = {"sm_90a": TargetReport(CompiledFor("sm_90a"))}
    every = dataclasses.replace(WITH_AMD, compile_for=("sm_90a", "sm_100a", *AMDS))
    assert target_rejections.as_cases(every, {**taken, **theirs, "sm_100a": TargetReport(CompiledFor("sm_100a"))}) == ()
    both = {name: TargetReport(CompiledFor(name), refused=refused) for name in ("sm_90a", "sm_100a")}
    cases = target_rejections.as_cases(every, {**both, **{name: TargetReport(CompiledFor(name)) for name in AMDS}})
    assert [case.verdict for case in cases] == [Verdict.compile_error]


def test_only_languages_that_can_are_compiled_for_them() -> None:
    for language in Language:
        vendors = {TARGETS[target].vendor for target in targets_of(WITH_AMD, language)}
        assert vendors == set(languages.of(language).compiles_for), language
