"""A result against the hardware's limits: where it stands, its samples, what to try next, and where to read on."""

from __future__ import annotations

import dataclasses
import math

import pytest

from autograder.assignment import Case
from autograder.contract import CaseResult, CompiledFor, CompiledKernel, Lane, Measurement, Mode, Pattern, Verdict
from autograder.lanes import SHEETS
from server.pages import formats
from server.pages.advice import advise
from server.pages.help import BY_PATTERN, BY_VERDICT, Section, section_for, sections
from server.pages.roofline import REFERENCE, THIS, roofline
from server.pages.spread import MOST_DRAWN, spreads
from tests.doubles.world import manifest, measurement, passed

ADD = manifest(
    cases=(Case("small", {"n": 5}, "float32"), Case("large", {"n": 2**27}, "float32", ranked=True)),
    techniques=("coalescing", "masks"),
)
BYTES = 3.0 * 4 * 2**27
LIMIT_US = BYTES / SHEETS[Lane.h200].memory_tb_s / 1e6


def add(share: float, **changes: object) -> Measurement:
    """A vector addition that reaches this share of the H200's bandwidth."""
    plain = measurement("large", 1.0, time_us=LIMIT_US / share)
    return dataclasses.replace(plain, flops=float(2**27), bytes_moved=BYTES, **changes)  # type: ignore[arg-type]


def matmul(share: float, dtype: str = "float16") -> tuple[object, Measurement]:
    spec = manifest(cases=(Case("large", {"n": 4096}, dtype, ranked=True),))
    flops = 2.0 * 8192**3
    time_us = flops / SHEETS[Lane.h200].tflops[dtype] / 1e6 / share
    plain = measurement("large", 1.0, time_us=time_us)
    return spec, dataclasses.replace(plain, flops=flops, bytes_moved=3.0 * 2 * 8192**2)


def steps(found: object, *compiled: CompiledFor) -> str:
    return " ".join(advise(found, compiled, ()).steps)  # type: ignore[arg-type]


# --- where it stands --------------------------------------------------------------------------------------------------


def test_a_memory_bound_result_is_held_against_the_bandwidth() -> None:
    found = roofline(ADD, Lane.h200, [add(0.61)])
    assert found is not None
    (case,) = found.cases
    assert case.is_memory_bound
    assert not case.fits_cache
    assert case.share == pytest.approx(0.61)
    assert case.intensity == pytest.approx(1 / 12)
    assert case.this.tb_s == pytest.approx(0.61 * 4.8)
    lead = advise(found, (), ADD.techniques).lead
    assert lead.startswith("Memory-bound: 1.61 GB in 550 µs is 2.93 TB/s, 61 % of the H200's bandwidth.")


def test_a_compute_bound_result_is_held_against_its_types_peak() -> None:
    spec, item = matmul(0.3)
    found = roofline(spec, Lane.h200, [item])
    assert found is not None
    assert not found.cases[0].is_memory_bound
    assert found.cases[0].share == pytest.approx(0.3)
    assert found.peaks == {"float16": 989.4}
    assert "30 % of the H200's peak for float16" in advise(found, (), ()).lead


def test_reference_last_version_and_milestones_stand_beside_it_in_the_same_work() -> None:
    last = ("Submission 3", {"large": 1000.0, "gone": 5.0})
    found = roofline(ADD, Lane.h200, [add(0.5)], last=last, milestones=[("1_small_blocks", 2.0)])
    assert found is not None
    dots = {dot.label: dot for dot in found.cases[0].dots}
    assert list(dots) == ["this one", "Submission 3", "reference", "1_small_blocks"]
    assert dots["Submission 3"].time_us == 1000.0
    assert dots["1_small_blocks"].time_us == pytest.approx(2 * dots["reference"].time_us)
    assert dots["1_small_blocks"].tflops == pytest.approx(dots["reference"].tflops / 2)
    assert [dot["who"] for dot in found.data["dots"]][:3] == [THIS, "last", REFERENCE]


def test_there_is_no_roofline_without_a_data_sheet_or_of_a_hidden_case() -> None:
    assert roofline(ADD, Lane.cpu, [add(0.5)]) is None
    assert roofline(ADD, Lane.h200, []) is None
    hidden = dataclasses.replace(add(0.5), case="hidden n=7919")
    assert roofline(ADD, Lane.h200, [hidden]) is None
    both = roofline(ADD, Lane.h200, [hidden, add(0.5)])
    assert both is not None
    assert [case.case for case in both.cases] == ["large"]


def test_a_rung_that_calculates_nothing_is_drawn_by_its_traffic() -> None:
    found = roofline(ADD, Lane.h200, [dataclasses.replace(add(0.5), flops=0.0)])
    assert found is not None
    assert not found.calculates
    assert found.cases[0].is_memory_bound
    assert found.data["dots"][0]["x"] == 0


def test_every_number_of_the_chart_can_be_drawn() -> None:
    found = roofline(ADD, Lane.b200, [dataclasses.replace(add(0.5), reference_us=0.0)], milestones=[("m", 1.0)])
    assert found is not None
    assert [dot["who"] for dot in found.data["dots"]] == [THIS]
    assert all(math.isfinite(dot[name]) for dot in found.data["dots"] for name in ("x", "tflops", "tb"))


# --- what to try next -------------------------------------------------------------------------------------------------


def test_advice_follows_the_share_of_the_bandwidth() -> None:
    slow, half, full = (roofline(ADD, Lane.h200, [add(share)]) for share in (0.2, 0.6, 0.93))
    assert steps(slow).startswith("Coalesce")
    assert "Coalesce" not in steps(half)
    assert steps(half).startswith("Fetch 16 bytes")
    assert "Only moving less would be faster" in steps(full)
    wide = CompiledKernel("add", "one", 0, "", "", ldg128=2)
    assert "16 bytes" not in steps(half, CompiledFor("sm_90a", (wide,)))
    assert "16 bytes" in steps(half, CompiledFor("sm_90a", (dataclasses.replace(wide, ldg128=0),)))


def test_tensor_cores_are_advised_where_the_machine_code_has_none_and_the_type_fits() -> None:
    spec, item = matmul(0.05)
    found = roofline(spec, Lane.h200, [item])
    plain = CompiledKernel("matmul", "large", 0, "", "", registers=40)
    with_cores = dataclasses.replace(plain, wgmma=16)
    assert "tensor cores" in steps(found, CompiledFor("sm_90a", (plain,)))
    assert "tensor cores" not in steps(found, CompiledFor("sm_90a", (with_cores,)))
    # What is compiled for another device says nothing of this one.
    assert "tensor cores" in steps(found, CompiledFor("sm_100a", (dataclasses.replace(plain, tcgen05=9),)))
    spec, item = matmul(0.05, "float32")
    assert "tensor cores" not in steps(roofline(spec, Lane.h200, [item]))


def test_spills_come_first() -> None:
    spilling = CompiledKernel("add", "large", 0, "", "", spills=12)
    found = roofline(ADD, Lane.h200, [add(0.6)])
    assert steps(found, CompiledFor("sm_90a", (spilling,))).startswith("`add` spills: 12 loads and stores")


def test_the_case_that_is_furthest_from_its_limit_is_the_one_to_look_at() -> None:
    spec = manifest(cases=(*ADD.cases, Case("other", {"n": 2**27}, "float16", ranked=True)))
    found = roofline(spec, Lane.h200, [add(0.9), add(0.4, case="other")])
    assert found is not None
    assert advise(found, (), ()).case == "other"


def test_a_short_call_is_told_apart() -> None:
    short = dataclasses.replace(add(0.5), bytes_moved=1e6, flops=1e5, time_us=6.0)
    found = roofline(ADD, Lane.h200, [short])
    assert found is not None
    advice = advise(found, (), ())
    assert advice.steps[0].startswith("Much of so short a call")
    assert "fits into the L2 cache" in advice.lead


# --- samples ----------------------------------------------------------------------------------------------------------


def test_samples_are_those_that_count_and_of_public_cases_only() -> None:
    public, hidden = measurement("large", 2.0, spread=0.1), measurement("hidden 7")
    (found,) = spreads([public, hidden], ["large"])
    ours, reference = found.sides
    assert ours.times_us == pytest.approx((180.0, 200.0, 220.0))
    assert (ours.low_us, ours.median_us, ours.high_us) == pytest.approx((190.0, 200.0, 210.0))
    assert reference.median_us == 100.0


def test_many_samples_are_thinned_for_the_picture_and_one_alone_is_none() -> None:
    item = measurement("large")
    many = dataclasses.replace(item, pairs=item.pairs * 1000)
    (found,) = spreads([many], ["large"])
    assert len(found.sides[0].times_us) == 3000
    assert all(len(side["times"]) <= MOST_DRAWN for side in found.data["sides"])
    assert spreads([dataclasses.replace(item, pairs=item.pairs[:1])], ["large"]) == ()


# --- where to read on -------------------------------------------------------------------------------------------------

HANDOUT = "# T\n\n## The idea\n\nx\n\n## What to write\n\nx\n\n## Common *mistakes*\n\nx\n"


def test_a_handouts_sections_are_found_by_their_anchors() -> None:
    assert sections(HANDOUT)[-1] == Section("common-mistakes", "Common mistakes")
    found = section_for(HANDOUT, Verdict.wrong_answer, Pattern.untouched)
    assert found == Section("what-to-write", "What to write")
    assert section_for(HANDOUT, Verdict.illegal_access, None) == Section("common-mistakes", "Common mistakes")
    # It has no such section, and where nothing went wrong there is nothing to read on.
    assert section_for(HANDOUT, Verdict.time_limit, None) is None
    assert section_for(HANDOUT, Verdict.passed, None) is None


def test_every_pattern_and_every_fault_of_a_students_leads_somewhere() -> None:
    assert set(BY_PATTERN) == set(Pattern)
    assert set(BY_VERDICT) == set(Verdict) - {Verdict.passed, Verdict.grader_error}


def test_rates_and_amounts_are_written_with_the_prefix_that_fits() -> None:
    assert formats.rate(3.83, "B") == "3.83 TB/s"
    assert formats.rate(0.0402, "FLOP") == "40.2 GFLOP/s"
    assert formats.rate(0.0, "B") == "0.00 MB/s"
    assert formats.amount(1.61e9, "B") == "1.61 GB"
    assert formats.amount(12, "B") == "12 B"
    assert [formats.percent(part) for part in (0.61, 0.061, 2.05)] == ["61 %", "6.1 %", "205 %"]


# --- on the page ------------------------------------------------------------------------------------------------------


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url


def graded(world, ratio, **changes):
    return world.grade(passed(ratio), node="forge", **{"lane": Lane.h200, **changes})


def test_the_page_has_the_picture_the_numbers_and_the_advice(world, visit):
    first = graded(world, 3.0)
    second = graded(world, 2.0)
    text = visit("Alice", f"/submissions/{second}").text
    assert "Against the H200's limits" in text
    assert "Memory-bound: 49.2 kB in 200 µs" in text
    assert "What to try next" in text
    assert "Submission 1" in text
    assert "How the times are spread" in text
    assert "This one: median 200 µs" in text
    # The first has none before it.
    assert "Submission 2" not in visit("Alice", f"/submissions/{first}").text


def test_a_run_and_another_students_versions_are_not_the_last_one(world, visit):
    graded(world, 3.0, person="Bob")
    graded(world, 4.0, mode=Mode.run)
    name = graded(world, 2.0)
    text = visit("Alice", f"/submissions/{name}").text
    assert "this one" in text
    assert "Submission 1 300" not in text


def test_the_cpu_lane_says_why_it_has_no_roofline(world, visit):
    name = world.grade(passed(1.0), lane=Lane.cpu)
    text = visit("Alice", f"/submissions/{name}").text
    assert "No roofline: the CPU lane's times are an interpreter's" in text
    assert "limits of" not in text
    assert "What to try next" not in text


def test_a_held_result_gets_no_advice_and_says_what_held_means(world, visit):
    name = world.grade(passed(0.1, held=True), node="forge", lane=Lane.h200)
    text = visit("Alice", f"/submissions/{name}").text
    assert "What held means" in text
    assert "an honest kernel can be held" in text
    assert "What to try next" not in text


def test_the_times_of_a_hidden_case_are_in_no_picture(world, visit):
    result = passed(2.0)
    hidden = dataclasses.replace(measurement("hidden 7 of 13", 1.5, time_us=7919.0))
    case = dataclasses.replace(result.cases[2], ranked=True)
    result = dataclasses.replace(result, cases=(*result.cases[:2], case), measurements=(*result.measurements, hidden))
    assert isinstance(case, CaseResult)
    name = world.grade(result, node="forge", lane=Lane.h200)
    assert "11.9 ms" not in visit("Alice", f"/submissions/{name}").text
    staff = visit("Tom", f"/submissions/{name}").text
    assert "11.9 ms" in staff
    assert staff.count("This one: median") == 1
