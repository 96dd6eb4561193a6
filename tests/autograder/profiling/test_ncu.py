"""The tool's CSV as figures, stalls, lines and advice. The files are of a kernel of ours on an H200 (2025.3.1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.profiles import Figure, Mix, Stall
from autograder.profiling import ncu

HERE = Path(__file__).parent
KERNEL = "void vectors<32>(const float4 *, float4 *, long)"


def page(name):
    return (HERE / f"{name}.csv").read_text(encoding="utf-8")


def test_a_row_of_counters_becomes_figures_in_our_units():
    (launch,) = ncu.launches(page("raw"))
    assert launch.name == KERNEL
    assert launch.missing == {}
    assert launch.figures[Figure.duration_us] == pytest.approx(48.544)
    assert launch.figures[Figure.dram_bytes_per_s] == pytest.approx(2_351_303_889_255.11)
    assert launch.figures[Figure.shared_bytes] == 5248
    assert launch.figures[Figure.occupancy_percent] == pytest.approx(92.03)
    assert launch.figures[Figure.global_load_sectors] / launch.figures[Figure.global_load_requests] == 16
    assert launch.figures[Figure.local_load_bytes] == 0
    assert launch.stalls[Stall.global_memory] == 1800
    assert launch.stalls[Stall.shared_memory] == 1590
    assert Stall.sleeping not in launch.stalls


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"48,544.00"', '"nan"', "no number"),
        ('"48,544.00"', '""', "no number"),
        ('"48,544.00"', '"no data"', "no number"),
        ('"gpu__time_duration.sum"', '"gpu__another_name.sum"', "does not have the counter"),
        ('"ns"', '"fortnight seconds"', "unit that is not known"),
    ],
)
def test_what_is_not_a_number_is_missing_with_the_reason(before, after, said):
    text = page("raw")
    assert before in text
    (launch,) = ncu.launches(text.replace(before, after, 1))
    assert Figure.duration_us not in launch.figures
    assert said in launch.missing[Figure.duration_us]
    assert Figure.registers in launch.figures


@pytest.mark.parametrize("text", ["", "==ERROR== nothing\n", '"ID","Kernel Name"\n', "\0\0", '"a'])
def test_what_is_no_page_of_counters_has_no_launches(text):
    assert ncu.launches(text) == []
    assert ncu.instructions(text, "v.cu") == {}
    assert ncu.hints(text) == {}


def test_instructions_have_their_line_of_the_students_file_and_no_other():
    (rows,) = ncu.instructions(page("source"), "v.cu").values()
    loads = [row for row in rows if row.opcode.startswith("LDG")]
    assert [(row.line, row.opcode, row.executed) for row in loads] == [(17, "LDG.E.128", 131072)]
    assert sum(row.samples for row in rows if row.line == 17) == 1884
    assert {row.line for row in ncu.instructions(page("source"), "other.cu")[next(iter(_kernels()))]} == {0}


def test_an_instruction_that_stands_under_several_lines_counts_once_for_the_students():
    head = '"Line No","Source","Address","Source","# Samples","Instructions Executed","stall_wait"\n'
    row = '"","","0x10","  FFMA R1, R2, R3, R4","5","32","5"\n'
    library = f'"File Path","/lib/standard.py"\n"Function Name","f"\n{head}"170","a + b","-","-","5","32","5"\n{row}'
    own = f'"File Path","/tmp/k.py"\n"Function Name","f"\n{head}"9","x","-","-","5","32","5"\n{row}{row}'
    for text in (library + own, own + library):
        assert ncu.instructions(text, "k.py") == {"f": [ncu.Instruction(9, "FFMA", 32, 5, {Stall.fixed_latency: 5})]}


def _kernels():
    return ncu.instructions(page("source"), "v.cu")


def test_samples_at_an_instruction_have_their_reasons():
    (rows,) = _kernels().values()
    waiting = max(rows, key=lambda row: row.samples)
    assert sum(waiting.stalls.values()) == waiting.samples
    assert waiting.stalls[Stall.global_memory] > waiting.samples / 2


@pytest.mark.parametrize(
    ("instruction", "kind"),
    [
        ("      @P0 LDG.E.128 R4, desc[UR4][R2.64]", Mix.global_load_128),
        ("LDG.E.U16 R4, [R2]", Mix.global_load_32),
        ("STG.E.64 [R2], R4", Mix.global_store_64),
        ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8]", Mix.tensor),
        ("HMMA.16816.F32 R4, R4, R8, R4", Mix.tensor),
        ("UTMALDG.2D [UR8], [UR4]", Mix.tma),
        ("LDGSTS.E.BYPASS.128 [R4], [R2.64]", Mix.async_copy),
        ("MUFU.EX2 R4, R4", Mix.special),
        ("@!P1 FFMA R4, R4, R5, R6", Mix.floating),
        ("LDS.128 R4, [R2]", Mix.shared),
        ("LDL R4, [R1]", Mix.local),
        ("RED.E.ADD [R2], R4", Mix.atomic),
        ("REDUX.SUM UR4, R4", Mix.move),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", Mix.barrier),
        ("BRA 0x100", Mix.control),
        ("IMAD.MOV.U32 R1, RZ, RZ, R2", Mix.integer),
        ("QUUX R1", Mix.other),
    ],
)
def test_instructions_are_told_by_what_they_do(instruction, kind):
    assert ncu.mix_of(ncu.opcode_of(instruction)) is kind


@pytest.mark.parametrize("text", ["", ".L_x_1:", "return core.maximum(a, b)", "{", "@P0"])
def test_what_is_no_instruction_has_no_opcode(text):
    assert ncu.opcode_of(text) == ""


def test_advice_has_the_estimates_for_the_whole_kernel_first_and_no_links():
    (found,) = ncu.hints(page("details")).values()
    assert (found[0].rule, found[0].estimate_percent, found[0].topic) == (
        "UncoalescedSharedAccess", 92.98, "bank conflicts"
    )  # fmt: skip
    estimates = [hint.estimate_percent for hint in found]
    assert estimates == sorted(estimates, key=lambda one: -(one or 0))
    # The estimate of this one is about the pipelines only.
    assert next(hint for hint in found if hint.rule == "HighPipeUtilization").estimate_percent is None
    assert not any("http" in hint.text for hint in found)


@pytest.mark.parametrize(
    "name",
    [
        "_Z7vectorsILi32EEvPK6float4PS0_l", KERNEL, "void vectors<(int)32>(const float4 *, float4 *, long)", "vectors",
        "void (anonymous namespace)::vectors<A<1, B>>(int)", "_ZN2at7vectorsIfEEvi", "void at::vectors<float>(int)",
    ],
)  # fmt: skip
def test_a_kernel_is_known_by_its_bare_name_however_a_page_writes_it(name):
    assert ncu.base_of(name) == "vectors"


def test_kernels_of_two_pages_are_matched_whole_first():
    assert ncu.matched(["f<1>", "f<2>"], ["f<2>", "f<(int)1>"]) == {"f<2>": "f<2>", "f<1>": "f<(int)1>"}
    assert ncu.matched(["g"], ["f"]) == {}


def test_the_command_names_the_kernels_as_compiled_and_leaves_the_clocks_alone():
    command = ncu.command("/x/ncu", ["_Z1fi", "_Z1g.x"], "/tmp/r", ["python", "x"])
    assert command[:1] + command[-2:] == ["/x/ncu", "python", "x"]
    assert command[command.index("--kernel-id") + 1] == r"::regex:^(_Z1fi|_Z1g\.x)$:1"
    assert command[command.index("--clock-control") + 1] == "none"


@pytest.mark.parametrize(("said", "found"), [("==ERROR== ERR_NVGPUCTRPERM", "refused the counters"), ("fine", "")])
def test_known_errors_are_explained(said, found):
    assert found in ncu.why(said)
    assert bool(ncu.why(said)) == bool(found)
