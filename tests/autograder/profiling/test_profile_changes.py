"""Two profiles side by side: what is told of, in which words, and what is not."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest

from autograder import profile_changes
from autograder.profile_changes import GROUPS, Group, Unit, shown
from autograder.profiles import Mix, Span, SpanKind, Stall, StalledFor, Timeline
from tests.doubles.profiles import KERNEL, PROFILE

LAST = "your last one"


def profile(*, launches=1, busy_ns=934_300, call_ns=962_300, mix=None, stalls=None, **figures):
    """The double's, with other figures of its one kernel."""
    changes = {"figures": {**KERNEL.figures, **figures}, "calls": launches}
    if mix is not None:
        changes["mix"] = mix
    if stalls is not None:
        changes["stalls"] = tuple(StalledFor(reason, samples) for reason, samples in stalls.items())
    spans = tuple(Span(SpanKind.kernel, "k", number, number + 1) for number in range(launches))
    timeline = Timeline(spans, call_ns, busy_ns)
    return dataclasses.replace(PROFILE, kernels=(dataclasses.replace(KERNEL, **changes),), timeline=timeline)


def told(now, before=None):
    return profile_changes.changes(now, before or profile(), LAST).sentences


def row(found, name):
    return next(one for one in found.rows if one.name == name)


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        (
            profile(dram_read_bytes=24e6), profile(dram_read_bytes=12.6e6),
            "It reads 1.9 times as many bytes from memory as your last one: 24.0 MB against 12.6 MB.",
        ),
        (
            profile(dram_written_bytes=1e9), profile(dram_written_bytes=8e8),
            "It writes 25 % more bytes to memory than your last one: 1.00 GB against 800 MB.",
        ),
        (
            profile(registers=16.0), profile(),
            "It uses 33 % fewer registers per thread than your last one: 16 against 24.",
        ),
        (
            profile(instructions=4e3), profile(),
            "It executes 99.9 % fewer instructions than your last one: 4,000 against 4,000,000.",
        ),
        (
            profile(busy_ns=500_000), profile(busy_ns=500_000, call_ns=2_000_000),
            "It leaves the device idle for 69 % less time than your last one: 462 µs against 1.50 ms.",
        ),
        (
            profile(shared_bytes=65536.0), profile(),
            "It uses 64 times as many bytes of shared memory per block as your last one: 64 KiB against 1 KiB.",
        ),
        (
            profile(occupancy_percent=45.0), profile(),
            "It reaches an occupancy of 45 %, against 90 % in your last one.",
        ),
        (
            profile(mix={Mix.tensor: 65536}), profile(mix={Mix.integer: 65536}),
            "It executes 65,536 instructions of the tensor cores, against none in your last one.",
        ),
        (
            profile(shared_load_conflicts=0.0, shared_store_conflicts=0.0),
            profile(shared_load_conflicts=2e6, shared_store_conflicts=0.0),
            "It has no bank conflicts, against 2,000,000 in your last one.",
        ),
        (
            profile(stalls={Stall.barrier: 60, Stall.selected: 40}), profile(stalls={Stall.selected: 100}),
            "Its warps wait in 60 % of their samples because of “block barrier”, against 0 % in your last one.",
        ),
    ],
)  # fmt: skip
def test_a_difference_is_said_in_a_sentence(now, before, said):
    assert told(now, before) == (said,)


@pytest.mark.parametrize(
    ("busy_ns", "said"),
    [
        (2 * 934_300, "It takes 2.0 times as much time on the device as your last one: 1.87 ms against 934 µs."),
        (934_300 * 3 // 4, "It takes 25 % less time on the device than your last one: 701 µs against 934 µs."),
        (950_000, "It takes about as much time on the device as your last one: 950 µs against 934 µs."),
        (0, ""),
    ],
)
def test_the_devices_time_is_said_first(busy_ns, said):
    assert profile_changes.changes(profile(busy_ns=busy_ns), profile(), LAST).headline == said


def test_the_largest_difference_of_three_groups_is_told_largest_first():
    now = profile(
        dram_read_bytes=54e8, dram_written_bytes=26e8, registers=48.0, occupancy_percent=60.0,
        instructions=2e7, stalls={Stall.barrier: 300, Stall.global_memory: 700},
    )  # fmt: skip
    first, second, third = told(now)
    assert first.startswith("It reads 10 times as many bytes")
    assert second.startswith("It executes 5.0 times as many instructions")
    assert third.startswith("It uses 2.0 times as many registers")


@pytest.mark.parametrize("change", [{}, {"dram_read_bytes": 5.6e8}, {"shared_load_conflicts": 9e3}, {"waves": 9.0}])
def test_what_may_be_chance_or_is_next_to_nothing_is_not_told(change):
    assert told(profile(**change)) == ()


def test_what_a_kernel_does_counts_once_for_each_launch():
    found = profile_changes.changes(profile(launches=8), profile(), LAST)
    assert (row(found, "Launches").now, row(found, "Bytes read").now) == (8.0, 8 * 5.4e8)
    assert row(found, "Registers per thread").now == row(found, "Registers per thread").before
    assert row(found, "Bytes against the least possible").before == pytest.approx((5.4e8 + 5.2e8) / 8e8)


def test_a_figure_that_was_not_counted_is_listed_and_not_told():
    found = profile_changes.changes(profile(), profile(registers=None), LAST)
    assert (row(found, "Registers per thread").before, row(found, "Registers per thread").change) == (None, "")
    assert shown(Unit.number, None) == "–"
    assert found.sentences == ()


def test_rows_stand_in_their_groups_and_every_group_has_a_title():
    groups = [one.group for one in profile_changes.changes(profile(), profile(), LAST).rows]
    assert set(GROUPS) == set(Group) == set(groups)
    assert sum(one is not other for one, other in pairwise(groups)) == len(Group) - 1


def test_what_limits_a_comparison_is_said():
    bare = dataclasses.replace(PROFILE, kernels=())
    part = dataclasses.replace(PROFILE, kernels=(dataclasses.replace(KERNEL, share=0.6),), tool="another")
    assert profile_changes.changes(bare, PROFILE, LAST).notes == (
        "Nothing was counted in this one, so only times are side by side.",
    )
    assert profile_changes.changes(PROFILE, part, LAST).notes == (
        "The kernels counted in your last one hold 60% of the device's time; others are left out.",
        "Another version of the profiler counted your last one, so small differences may be its own.",
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"case": "large"}, "a profile of the case large, and this one of tiny"),
        ({"size": "n=9"}, "The case tiny had a different size then: n=9 instead of n=1,000."),
        ({"kernels": (), "timeline": Timeline()}, "Nothing was traced or counted in it."),
    ],
)
def test_profiles_of_other_work_are_not_compared(change, said):
    found = profile_changes.why_not(PROFILE, dataclasses.replace(PROFILE, **change))
    assert said in found if said else found == ""


def test_a_profile_without_anything_is_compared_with_none():
    bare = dataclasses.replace(PROFILE, kernels=(), timeline=Timeline())
    assert profile_changes.why_not(bare, PROFILE) == "Nothing was traced or counted in this one."


def test_every_number_has_its_unit():
    assert [shown(unit, 1536.0) for unit in Unit] == ["1.54 ms", "1.54 kB", "1,536 KiB", "1,536", "1536 %", "1,536×"]
