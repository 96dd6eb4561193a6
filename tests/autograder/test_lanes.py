from __future__ import annotations

import pytest

from autograder.contract import Lane
from autograder.errors import GpuError
from autograder.lanes import DEVICES, check, expanded, lane_of


@pytest.mark.parametrize(
    ("name", "capability", "lane"),
    [
        ("NVIDIA H200", (9, 0), Lane.h200),
        ("NVIDIA H100 80GB HBM3", (9, 0), Lane.h100),
        ("NVIDIA B200", (10, 0), Lane.b200),
    ],
)
def test_a_device_has_the_lane_of_its_name_and_capability(name, capability, lane):
    assert lane_of(name, capability) is lane
    check(lane, name, capability)
    for other in set(DEVICES) - {lane}:
        with pytest.raises(GpuError, match="no device of the lane"):
            check(other, name, capability)


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA GH200 480GB", (9, 0)),
        ("NVIDIA GB200", (10, 0)),
        ("NVIDIA H100 PCIe", (9, 0)),
        ("NVIDIA H200 NVL", (9, 0)),
        ("NVIDIA H200 MIG 1g.18gb", (9, 0)),
        ("NVIDIA H200", (8, 0)),
        ("NVIDIA A100-SXM4-80GB", (8, 0)),
        ("", (0, 0)),
    ],
)
def test_a_device_like_one_of_a_lane_is_none_of_it(name, capability):
    with pytest.raises(GpuError, match="belongs to no lane"):
        lane_of(name, capability)


def test_every_lane_but_the_cpus_has_a_device():
    assert set(DEVICES) == set(Lane) - {Lane.cpu}


def test_gpu_in_a_manifest_is_every_lane_with_a_device():
    said = {
        "lane": {"cpu": {"pairs": 7}, "gpu": {"pairs": 25, "r_zero": 3.0}, "h100": {"r_zero": 4.0}},
        "case": [
            {"name": "large", "lanes": ["gpu"]},
            {"name": "small"},
            {"name": "odd", "lanes": ["cpu", "h100", "gpu"]},
        ],
        "family": [{"lanes": ["gpu"]}],
    }

    found = expanded(said)

    devices = [lane.value for lane in DEVICES]
    assert set(found["lane"]) == {"cpu", *devices}
    assert found["lane"]["h100"] == {"pairs": 25, "r_zero": 4.0}
    assert found["lane"]["b200"] == {"pairs": 25, "r_zero": 3.0}
    assert [set(case.get("lanes", ())) for case in found["case"]] == [set(devices), set(), {"cpu", *devices}]
    assert found["family"] == [{"lanes": devices}]
    assert "gpu" in said["lane"], "what was read is not changed"


def test_what_has_another_shape_is_left_for_the_reader_to_refuse():
    said = {"lane": ["gpu"], "case": [{"lanes": "gpu"}, 3], "family": {"lanes": ["gpu"]}}

    assert expanded(said) == said
