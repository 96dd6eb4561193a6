from __future__ import annotations

import pytest

from autograder.contract import Lane
from autograder.errors import GpuError
from autograder.gpu.lanes import NAMES, check, lane_of


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
    for other in set(NAMES) - {lane}:
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
