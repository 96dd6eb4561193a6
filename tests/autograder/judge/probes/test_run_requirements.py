"""What a rung may ask of a profiled call: told from the trace and the counters, as far as those go."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from autograder.assignment import RunRequirement, load_assignment
from autograder.contract import GradeRequest, Lane, Language, Mode, Work
from autograder.errors import ManifestError
from autograder.judge.probes.profiling import case_of
from autograder.judge.probes.run_requirements import evaluate
from autograder.profiles import Figure, Mix, ProfiledKernel, Span, SpanKind, Timeline
from tests.doubles.profiles import PROFILE

ROOT = Path(__file__).parents[4]
GEMM = load_assignment(ROOT / "assignments" / "gemm_tensor_core")
COUNTED = {Figure.dram_read_bytes.value: 6e8, Figure.dram_written_bytes.value: 2e8}


def profile(*names, share=1.0, calls=1, left_out=0, mix=None, figures=COUNTED, **changes):
    """A call of these launches, of whose kernels one was counted; the least bytes are 800 MB."""
    kernel = ProfiledKernel("k", share, calls, figures, {Mix.tensor.value: 64} if mix is None else mix)
    spans = tuple(Span(SpanKind.kernel, name, number, number + 1) for number, name in enumerate(names or ("k",)))
    timeline = Timeline((Span(SpanKind.host, "cuLaunchKernel", 0, 1), *spans), 9, 5, left_out)
    return dataclasses.replace(PROFILE, kernels=(kernel,), timeline=timeline, missing={}, **changes)


def told(found, **asked):
    rung = dataclasses.replace(GEMM, run_requirements=(RunRequirement("r", "about", "tiny", **asked),))
    (result,) = evaluate(rung, Lane.h200, found)
    assert (result.group, result.target) == ("", "h200")
    return result.met, result.message


@pytest.mark.parametrize(
    ("found", "asked", "met"),
    [
        (profile(), {"launches": "== 1"}, True),
        (profile("k", "void at::native::fill"), {"launches": "== 1"}, False),
        # Launches that are not listed can only be more.
        (profile(left_out=3), {"launches": "== 1"}, None),
        (profile("k", "k", left_out=3), {"launches": "== 1"}, False),
        (profile("k", "k", left_out=3), {"launches": "<= 1"}, False),
        (profile(), {"library_kernels": "== 0"}, True),
        (profile("sm90_xmma_gemm_f16", "k"), {"library_kernels": "== 0"}, False),
        (profile(), {"tensor": "> 0"}, True),
        (profile(share=0.4), {"tensor": "> 0"}, True),
        (profile(mix={"integer": 9}), {"tensor": "> 0"}, False),
        (profile(mix={"integer": 9}, share=0.4), {"tensor": "> 0"}, None),
        (profile(mix={}), {"tensor": "> 0"}, None),
        (profile(mix={"tma": 5}, calls=3), {"tma": ">= 15"}, True),
        (profile(mix={"async_copy": 5}), {"async_copy": "> 0", "tma": "> 0"}, False),
        (profile(mix={"global_load_128": 5}), {"global_load_128": "> 0", "global_store_128": "== 0"}, True),
        (profile(), {"traffic": "<= 110"}, True),
        (profile(calls=2), {"traffic": "<= 110"}, False),
        (profile(share=0.4), {"traffic": "<= 110"}, None),
        (profile(share=0.4, calls=2), {"traffic": "<= 110"}, False),
        (profile(figures={}), {"traffic": "<= 110"}, None),
        (profile(mix={}), {"tensor": "> 0", "launches": "== 2"}, False),
    ],
)
def test_a_requirement_is_met_or_not_or_cannot_be_told(found, asked, met):
    assert told(found, **asked)[0] is met


def test_the_number_is_told_or_why_there_is_none():
    assert told(profile("k", "k"), launches="== 1") == (False, "`launches` is 2.")
    assert told(profile(share=0.4), traffic="<= 110") == (
        None, "`traffic` is 100 at least; not every kernel was counted."
    )  # fmt: skip
    bare = dataclasses.replace(
        PROFILE, kernels=(), timeline=Timeline(), missing={"counters": "No ncu.", "trace": "Off."}
    )
    assert told(bare, tensor="> 0") == (None, "`tensor` was not counted: No ncu.")
    assert told(bare, launches="== 1") == (None, "`launches` was not counted: Off.")


def test_launches_over_less_and_less_data_count_by_their_time():
    found = profile("k", "k", calls=2)
    spans = (Span(SpanKind.kernel, "k", 0, 100), Span(SpanKind.kernel, "k", 100, 105))
    found = dataclasses.replace(found, timeline=dataclasses.replace(found.timeline, spans=spans))
    assert told(found, traffic="<= 110") == (True, "`traffic` is 105.")
    alike = (spans[0], dataclasses.replace(spans[1], end_ns=220))
    found = dataclasses.replace(found, timeline=dataclasses.replace(found.timeline, spans=alike))
    assert told(found, traffic="<= 110") == (False, "`traffic` is 200.")


def test_the_case_that_is_profiled_unasked_is_one_that_a_requirement_is_on():
    """A student who chooses no case learns whether the requirement is met."""
    for path in sorted((ROOT / "assignments").glob("*/assignment.toml")):
        rung = load_assignment(path.parent)
        if Lane.h200 in rung.lanes and rung.run_requirements:
            request = GradeRequest(rung.slug, "", Language.triton, Lane.h200, Mode.profile, "", "x.py", Work.profile)
            assert case_of(rung, request).name in {one.case for one in rung.run_requirements}, rung.slug


def test_only_requirements_on_the_profiled_case_are_told():
    assert evaluate(GEMM, Lane.h200, PROFILE) == ()
    found = evaluate(GEMM, Lane.h200, dataclasses.replace(profile(), case="gpu_ranked_large"))
    assert [(one.rule, one.met) for one in found] == [("library_kernels == 0, tensor > 0", True)]


def test_every_rung_from_14_on_that_is_run_on_a_gpu_states_its_own():
    rungs = [load_assignment(path.parent) for path in sorted((ROOT / "assignments").glob("*/assignment.toml"))]
    late = [rung for rung in rungs if rung.rung >= 14 and not rung.challenge and set(rung.lanes) != {"cpu"}]
    assert len(late) >= 5
    assert [rung.slug for rung in late if not rung.run_requirements] == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('case = "gpu_ranked_large"\ntensor', 'case = "ranked"\ntensor', "no public case of a lane with a GPU"),
        ('tensor = "> 0"', 'tensor = "many"', "is no comparison"),
        ('tensor = "> 0"\nlibrary_kernels = "== 0"\n', "", "requires none of launches"),
    ],
)
def test_an_authors_mistake_is_named(tmp_path, old, new, said):
    folder = shutil.copytree(ROOT / "assignments" / "gemm_tensor_core", tmp_path / "gemm_tensor_core")
    manifest = folder / "assignment.toml"
    text = manifest.read_text()
    assert text.count(old) == 1
    manifest.write_text(text.replace(old, new))
    with pytest.raises(ManifestError, match=said):
        load_assignment(folder)
