"""Which kernels are picked, what a timeline has, and where profiles are refused."""

from __future__ import annotations

import pytest
import torch

from autograder.profiling import able, target
from autograder.profiling.asking import Ran
from autograder.profiling.session import picked
from autograder.protocol import TensorSpec


def ran(name, ns):
    return Ran(name, name, 1, ns)


def test_the_kernels_that_hold_the_time_are_picked_not_the_first():
    kernels = [ran("fill", 10), ran("long", 800), ran("short", 30), ran("half", 160)]
    assert [one.name for one in picked(kernels)] == ["long", "half"]


def test_one_is_picked_at_least_and_three_at_most():
    assert [one.name for one in picked([ran("only", 0)])] == ["only"]
    assert len(picked([ran(str(number), 100) for number in range(30)])) == 1
    assert len(picked([ran(str(number), 100) for number in range(5)])) == 3
    assert picked([]) == []


def traced(device, host, begin=100, end=200):
    return target.traced(device, host, target._Times(begin, end))


def test_a_timeline_begins_with_the_call_and_ends_with_the_devices_last_work(monkeypatch):
    monkeypatch.setattr(target, "LEAST_HOST_NS", 5)
    ran = [("kernel", "before", 10, 60), ("kernel", "f", 120, 160), ("copy", "c", 150, 170)]
    ran.append(("kernel", "f", 250, 260))
    host = [("launch", 90, 95), ("launch", 105, 115), ("tiny", 116, 118), ("clock", 230, 300)]
    found = traced(ran, host)
    assert found["call_ns"] == 160
    assert found["busy_ns"] == 60
    assert found["kernels"] == [{"name": "f", "shown": "f", "calls": 2, "ns": 50}]
    assert found["spans"] == [
        ["host", "launch", 5, 15], ["kernel", "f", 20, 60], ["copy", "c", 50, 70], ["kernel", "f", 150, 160]
    ]  # fmt: skip


def test_a_call_that_runs_nothing_has_no_kernels():
    assert traced([], [])["kernels"] == []
    assert traced([], [])["busy_ns"] == 0


def test_a_timeline_is_cut_and_says_by_how_much():
    found = traced([("kernel", "f", 100 + number, 101 + number) for number in range(1000)], [])
    assert (len(found["spans"]), found["left_out"]) == (600, 400)
    assert found["kernels"][0]["calls"] == 1000


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("RmProfilingAdminOnly: 0\n", ""),
        ("EnableMSI: 1\nRmProfilingAdminOnly: 1\n", "NVreg_RestrictProfilingToAdminUsers"),
        ("EnableMSI: 1\n", "NVreg_RestrictProfilingToAdminUsers"),
        (None, "does not say"),
    ],
)
def test_a_machine_whose_driver_keeps_counters_for_administrators_makes_no_profiles(tmp_path, parameters, said):
    path = tmp_path / "params"
    if parameters is not None:
        path.write_text(parameters)
    found = able.why_not("/usr/bin/ncu", path)
    assert said in found
    assert bool(found) == bool(said)


def test_a_machine_without_the_tool_makes_none(tmp_path):
    assert able.find_tool([str(tmp_path)], tmp_path) == ""
    assert "not installed" in able.why_not("")
    (tmp_path / "2025.3").mkdir()
    tool = tmp_path / "2025.3" / "ncu"
    tool.touch(0o755)
    assert able.find_tool([], tmp_path) == str(tool)


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize(
    ("place", "size"),
    [
        (((3, 5), (7, 1), 1024), 4 * 19),
        (((4,), (2,), 1024 + 8), 8 + 4 * 7),
        (((0, 5), (5, 1), 1024), 0),
    ],
)
def test_the_sanitizer_s_tensors_end_with_their_last_element(tmp_path, writable, place, size):
    spec = TensorSpec("x", "float32", *place, 4096, writable=writable)
    numbers = torch.arange(1024, dtype=torch.float32)
    (tmp_path / "x").write_bytes(numbers.numpy().tobytes())
    exact = target.tensor_of(spec, tmp_path, "cpu", exact=True)
    whole = target.tensor_of(spec, tmp_path, "cpu", exact=False)
    assert exact.untyped_storage().nbytes() == size
    assert whole.untyped_storage().nbytes() == 4096
    assert torch.equal(exact, whole)
    assert exact.stride() == whole.stride() == spec.stride
    if not writable and exact.numel():
        assert exact.flatten()[0] == spec.offset // 4
