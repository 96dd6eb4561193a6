from __future__ import annotations

import pytest

from autograder.contract import Lane, Throttle
from autograder.errors import GpuError
from tests.doubles.nvml import FakeNvml
from worker import nvml
from worker.node_errors import GpuUnknownError
from worker.nvml import Use, open_gpu


def test_the_only_gpu_needs_no_name_and_one_of_several_does():
    assert open_gpu(nvml=FakeNvml()).uuid == "GPU-aaaa"
    two = FakeNvml(uuids=("GPU-aaaa", "GPU-bbbb"))
    assert open_gpu("GPU-b", nvml=two).uuid == "GPU-bbbb"
    with pytest.raises(GpuUnknownError, match="there are: GPU-aaaa, GPU-bbbb"):
        open_gpu(nvml=two)
    with pytest.raises(GpuUnknownError, match="GPU-c"):
        open_gpu("GPU-c", nvml=two)


def test_without_a_gpu_package_or_driver_there_is_none(monkeypatch):
    assert open_gpu(nvml=FakeNvml(uuids=())) is None
    with pytest.raises(GpuUnknownError, match="there are: none"):
        open_gpu("GPU-a", nvml=FakeNvml(uuids=()))
    monkeypatch.setattr(nvml, "LIBRARY", "there_is_no_such_package")
    assert open_gpu() is None


def test_its_lane_is_that_of_its_name_and_capability():
    assert open_gpu(nvml=FakeNvml()).lane() is Lane.h200
    with pytest.raises(GpuError, match="no lane"):
        open_gpu(nvml=FakeNvml(name="NVIDIA A10", capability=(8, 6))).lane()


def test_a_look_names_what_keeps_the_clocks_down():
    fake = FakeNvml(reasons=0x4 | 0x40, sm_mhz=1305, power_mw=699_500)
    look = open_gpu(nvml=fake).look()
    assert (look.sm_mhz, look.memory_mhz, look.temperature_c, look.power_w) == (1305, 3201, 41, 699.5)
    assert look.throttled == (Throttle.power_cap, Throttle.hardware_thermal)
    fake.answers = False
    assert open_gpu(nvml=fake).look() is None


def test_what_the_driver_does_not_tell_is_nothing_and_not_made_up():
    gpu = open_gpu(nvml=FakeNvml(processes=None, ecc=None, tells_xids=False, xids=[31]))
    assert (gpu.users(), gpu.uncorrected_ecc(), gpu.xids()) == (None, None, ())


def test_errors_of_the_driver_are_told_once():
    fake = FakeNvml(xids=[31, 45], processes=[(7, 5), (8, None)])
    gpu = open_gpu(nvml=fake)
    assert gpu.xids() == (31, 45)
    assert gpu.xids() == ()
    assert gpu.users() == (Use(7, 5), Use(8, None))
