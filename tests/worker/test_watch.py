from __future__ import annotations

import dataclasses
import time

import pytest

from autograder.contract import ClockSample, GpuFacts, GradeResult, Measurement, Phase, Throttle, Verdict
from tests.doubles.nvml import FakeNvml
from worker import watch
from worker.nvml import open_gpu
from worker.watch import MOST_SAMPLES, Watch, thinned, trouble, with_facts

FACTS = GpuFacts("NVIDIA H200", "GPU-aaaa", "580")
MEASURED = Measurement("c", "event", 1, 1, 1, 1, 1, 1, 1, 1, 1, ())


def sample(at_s, phase=Phase.measuring, *throttled):
    return ClockSample(at_s, phase, 1980, 3201, 50, 400.0, throttled)


def test_it_looks_while_the_attempt_runs_and_knows_the_phase(monkeypatch):
    monkeypatch.setattr(watch, "EVERY_S", 0.01)
    fake = FakeNvml(xids=[13])
    with Watch(open_gpu(nvml=fake)) as seen:
        time.sleep(0.1)
        seen.enter(Phase.measuring)
        fake.reasons, fake.ecc = 0x44, 2
        fake.xids.append(31)
        time.sleep(0.2)
    facts = seen.facts()
    assert {one.phase for one in facts.samples} == {None, Phase.measuring}
    assert facts.throttled == (Throttle.power_cap, Throttle.hardware_thermal)
    assert (facts.uncorrected_ecc, facts.xids) == (2, (31,)), "what was there before is not this attempt's"
    assert "hardware_thermal" in facts.trouble
    assert "2 memory errors" in facts.trouble


@pytest.mark.parametrize("reason", list(Throttle))
def test_heat_and_a_starved_supply_are_the_nodes_fault_and_the_ordinary_power_limit_is_not(reason):
    at_fault = trouble(dataclasses.replace(FACTS, throttled=(reason,)))
    assert bool(at_fault) == (reason in watch.NODE_FAULTS)


def test_a_student_can_cause_a_page_fault_and_no_memory_error():
    assert trouble(dataclasses.replace(FACTS, xids=tuple(sorted(watch.STUDENT_XIDS)))) == ""
    assert "Xid 79" in trouble(dataclasses.replace(FACTS, xids=(31, 79)))


def test_being_throttled_elsewhere_than_in_the_measurement_is_nothing():
    hot = [sample(0.1, Phase.checking, Throttle.hardware_thermal), sample(0.2)]
    assert watch.throttled(hot) == ()


def test_only_so_many_samples_travel_and_those_of_the_measurement_first():
    many = [sample(number / 10, Phase.measuring if number % 2 else Phase.checking) for number in range(90)]
    kept = thinned(many)
    assert len(kept) == MOST_SAMPLES
    assert sum(one.phase is Phase.measuring for one in kept) == 45
    assert [one.at_s for one in kept] == sorted(one.at_s for one in kept)
    assert len(thinned([sample(number) for number in range(1000)])) == MOST_SAMPLES


def test_a_result_measured_on_a_sick_gpu_is_to_be_measured_again_and_its_verdict_stays():
    sick = dataclasses.replace(FACTS, samples=(sample(1.0),), trouble="too hot")
    measured = with_facts(GradeResult(Verdict.passed, "", (), measurements=(MEASURED,)), sick)
    assert (measured.verdict, measured.remeasure, measured.held) == (Verdict.passed, "too hot", False)
    assert measured.environment["gpu clocks"] == "1980 MHz SM, 3201 MHz memory, 50 °C, 400 W while measuring"
    checked = with_facts(GradeResult(Verdict.passed, "", ()), sick)
    assert checked.remeasure == ""
    # How many samples a phase has would tell how long hidden cases took.
    assert measured.for_student().gpu.samples == ()
