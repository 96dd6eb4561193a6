"""A node's care around attempts, with the judge's double and a GPU that a test can make ill."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import pytest

from autograder.contract import Lane, Phase, Throttle, Verdict, Work
from tests.doubles.nvml import FakeNvml
from worker import blame, known, selftest
from worker import life as life_module
from worker.baseline import ALLOWANCE_BYTES, Hygiene, take
from worker.calibration import MOST_RATIO, MOST_TIME, Canary, spread
from worker.gpulock import GpuLock
from worker.health import Health
from worker.judge import JudgeProcess
from worker.known import KnownJobs
from worker.life import Device, NodeLife
from worker.node_errors import HandedBackError
from worker.nvml import open_gpu
from worker.settings import LifeConfig
from worker.stopping import Stopping

REPOSITORY = Path(__file__).parents[2]
DOUBLE = (sys.executable, str(REPOSITORY / "tests/doubles/judge.py"))
OURS = "# judge: ours\n"
DIES = "# judge: die\n"


class Bench:
    """A node's care over a judge's double. `golden` and `good` are what its known jobs say to the double."""

    def __init__(self, tmp_path: Path, monkeypatch, lane: Lane = Lane.h200, **config) -> None:
        self.work = tmp_path
        self.golden, self.good = tmp_path / "golden.py", tmp_path / "good.py"
        for path in (self.golden, self.good):
            path.write_text("")
        monkeypatch.setattr(known, "GOLDEN", self.golden)
        monkeypatch.setattr(known, "KNOWN_GOOD", self.good)
        self.fake = FakeNvml()
        self.now = 1000.0
        self.stopping = Stopping(600)
        self.judge = JudgeProcess(DOUBLE, tmp_path / "judge.log", stopping=self.stopping)
        self.jobs = KnownJobs(self.judge, tmp_path / "known", lane)
        gpu = open_gpu(nvml=self.fake)
        self.health = Health(tmp_path / "health.json", 60.0, lambda: self.now, lambda: self.now)
        device = Device(GpuLock(tmp_path / "locks", gpu.uuid), gpu, Hygiene(gpu, take(gpu), lambda pids: pids))
        self.life = NodeLife(
            LifeConfig(**config), self.jobs, device, self.health, work=tmp_path, stopping=self.stopping
        )

    def attempt(self, source: str, work: Work = Work.measure, *xids: int):
        """One attempt as the grader makes it."""
        with self.life.attempt(work, patience_s=1) as attempt:
            outcome = self.jobs.run(source, work)
            self.fake.xids.extend(xids)
        return self.life.settled(outcome.result, attempt), attempt


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    made: list[Bench] = []

    def make(**options) -> Bench:
        made.append(Bench(tmp_path, monkeypatch, **options))
        return made[-1]

    yield make
    for one in made:
        one.judge.kill()


# --- whose fault -----------------------------------------------------------------------------------------------------


def test_a_fault_that_ended_the_runner_is_the_students_where_the_node_is_well(bench):
    judged, attempt = bench().attempt("# judge: verdict illegal_access\n", Work.check, 31)
    assert (judged.node, judged.suspect, judged.result.verdict) == ("", "", Verdict.illegal_access)
    assert attempt.with_facts(judged.result).gpu.xids == (31,)


@pytest.mark.parametrize("broken", [OURS, DIES])
def test_a_fault_that_took_the_judge_along_accuses_nobody_and_is_not_tried_on_any_node(bench, broken):
    node = bench()
    judged, _ = node.attempt(broken, Work.check, 31)
    assert (judged.node, judged.result, node.life.trouble()) == ("", None, "")
    assert "Xid 31" in judged.suspect


def test_a_failure_of_ours_without_a_word_from_the_gpu_stays_ours(bench):
    judged, _ = bench().attempt(OURS, Work.check)
    assert (judged.node, judged.suspect, judged.result.verdict) == ("", "", Verdict.grader_error)


def test_an_ordinary_result_asks_for_no_known_job(bench, monkeypatch):
    node = bench()
    monkeypatch.setattr(node.jobs, "good", lambda: pytest.fail("nothing was broken"))
    judged, _ = node.attempt("# judge: verdict illegal_access\n", Work.check)
    assert judged.result.verdict is Verdict.illegal_access


def test_where_the_driver_does_not_tell_its_errors_a_memory_error_is_asked_about(bench):
    result = dataclasses.replace(bench().jobs.run("", Work.check).result, verdict=Verdict.illegal_access)
    assert blame.looks_broken(result, Lane.h200, (), xids_are_told=False)
    assert not blame.looks_broken(result, Lane.h200, (), xids_are_told=True)
    assert not blame.looks_broken(result, Lane.cpu, (), xids_are_told=False)


@pytest.mark.parametrize("broken", [OURS, DIES, "# judge: verdict wrong_answer\n"])
def test_a_node_that_fails_a_known_good_job_is_out_of_service_and_keeps_no_result(bench, broken):
    node = bench()
    node.health.sang()
    node.now = 1500.0
    node.good.write_text(broken)
    judged, _ = node.attempt("# judge: verdict wrong_answer\n", Work.check, 13)
    assert judged.result is None
    assert "known-good job failed" in judged.node
    assert "known-good job failed" in node.life.trouble()
    assert (node.health.remembered.suspect_since, node.health.remembered.suspect_until) == (1000.0, 1500.0)


def test_a_judge_that_a_submission_left_broken_is_replaced_before_the_node_is_blamed(bench, monkeypatch):
    node = bench()
    node.good.write_text(OURS)
    restart = node.jobs.restart

    def mended():
        node.good.write_text("")
        restart()

    monkeypatch.setattr(node.jobs, "restart", mended)
    judged, _ = node.attempt(OURS, Work.check, 43)
    assert (judged.node, node.life.trouble()) == ("", "")


# --- the canary ------------------------------------------------------------------------------------------------------


def test_a_canary_that_fails_cools_down_and_the_second_failure_puts_the_node_out_of_service(bench):
    node = bench(canary_every_jobs=1)
    node.life.after()
    assert node.life.trouble() == ""
    node.now, good_at = 2000.0, node.health.remembered.good_at
    node.golden.write_text(f"# judge: ratio {1 + 2 * MOST_RATIO}\n")
    node.life.after()
    assert "cools down" in node.life.trouble()
    assert not node.health.cooled
    node.now = 2061.0
    assert node.health.cooled
    node.life._busy_at = -1000.0
    node.life.tick()
    assert "failed twice: its ratio with itself is 1.0400" in node.life.trouble()
    assert (node.health.remembered.suspect_since, node.health.remembered.suspect_until) == (good_at, 2061.0)


def test_a_canary_that_sings_after_its_cool_down_is_well_and_nothing_is_suspect(bench):
    node = bench(canary_every_jobs=1)
    node.life.after()
    node.golden.write_text(OURS)
    node.life.after()
    node.golden.write_text("")
    node.now += 61
    node.life._busy_at = -1000.0
    node.life.tick()
    assert node.life.trouble() == ""
    assert node.health.remembered.suspect_since is None


def test_it_sings_when_it_is_quiet_and_waits_for_nobody_while_it_is_not_overdue(bench, monkeypatch):
    node = bench(canary_every_s=100.0)
    began = time.monotonic()
    sung = []
    monkeypatch.setattr(node.life, "_sing", lambda: sung.append(True))
    node.life._sung_at, node.life._busy_at = began - 101, began
    node.life.tick()
    assert sung == [], "something was graded a moment ago"
    node.life._busy_at = began - 1000
    node.life.tick()
    assert sung == [True]
    node.life._sung_at = began
    node.life.tick()
    assert sung == [True], "it is not time"
    node.life._sung_at, node.life._busy_at = began - 201, time.monotonic()
    node.life.tick()
    assert sung == [True, True], "overdue: it does not wait for a quiet moment"


def test_a_hot_gpu_fails_the_canary(bench, monkeypatch):
    monkeypatch.setattr("worker.watch.EVERY_S", 0.01)
    node = bench(canary_every_jobs=1)
    node.fake.reasons = 0x40
    node.golden.write_text("# judge: sleep 0.2\n")
    node.life.after()
    assert Throttle.hardware_thermal in node.life.trouble()


def test_a_slow_song_fails_and_the_first_one_sets_what_is_usual(bench):
    canary = Canary(bench().jobs)
    first = canary.sing()
    assert first.trouble == ""
    slow = dataclasses.replace(first.measurement, time_us=first.measurement.time_us * (1 + 2 * MOST_TIME))
    assert "µs before" in canary._trouble(slow, "")
    assert canary._trouble(first.measurement, "the reference was slowed") == "the reference was slowed"


def test_on_the_cpu_the_canary_has_to_be_right_and_no_more(bench):
    node = bench(lane=Lane.cpu)
    canary = Canary(node.jobs)
    node.golden.write_text("# judge: ratio 3\n")
    assert canary.sing().trouble == ""
    node.golden.write_text("# judge: verdict wrong_answer\n")
    assert "wrong_answer" in canary.sing().trouble


def test_the_noise_floor_is_the_largest_distance_from_the_median_and_the_next_judge_is_told(bench):
    node = bench(self_test=False, canary_every_jobs=1)
    for ratio in ("1.0", "1.01", "0.995"):
        node.golden.write_text(f"# judge: ratio {ratio}\n")
        node.life.after()
    floor = node.life.calibration()
    assert (floor.gradings, floor.lane, floor.ratio, floor.ratio_spread) == (3, Lane.h200, 1.0, 0.01)
    assert floor.time_spread == pytest.approx(0.01)
    assert node.judge._extra["LADDER_NOISE_FLOOR"] == "0.01"
    assert spread([2.0]) == 0.0


# --- before any work -------------------------------------------------------------------------------------------------


def test_a_node_whose_self_test_fails_takes_no_work_and_says_why(bench):
    # The double finds everything right, also what is known to be wrong.
    node = bench(self_test=True)
    node.life.begin()
    assert "self-test failed" in node.life.trouble()
    assert "wrong_answer_last_tile_skipped: passed instead of wrong_answer" in node.life.trouble()
    assert node.health.unfit


def test_a_self_test_that_holds_is_followed_by_the_calibration(bench, monkeypatch):
    monkeypatch.setattr(selftest, "run", lambda *_, **__: [selftest.Tried("passed_known_good", "passed", "", 0.1)])
    node = bench(self_test=True, gradings=3)
    node.life.begin()
    assert node.life.trouble() == ""
    assert node.life.calibration().gradings == 3


# --- a GPU left as it was --------------------------------------------------------------------------------------------


def test_what_is_left_on_the_gpu_is_ended_with_the_judge(bench, monkeypatch):
    node = bench()
    node.attempt("")
    node.fake.used += 2 * ALLOWANCE_BYTES
    ended = []

    def end():
        ended.append(True)
        node.fake.used -= 2 * ALLOWANCE_BYTES

    monkeypatch.setattr(node.jobs, "end", end)
    node.life.after()
    assert (ended, node.life.trouble()) == ([True], "")


def test_a_gpu_that_is_not_as_it_was_stops_the_node_until_it_is(bench, monkeypatch):
    # Without its patience.
    monkeypatch.setattr(Hygiene, "strict", lambda self: self._left())
    node = bench()
    node.fake.used += 2 * ALLOWANCE_BYTES
    node.life.after()
    assert "the GPU is not as it was" in node.life.trouble()
    node.fake.used -= 2 * ALLOWANCE_BYTES
    node.life._busy_at = -1000.0
    node.life.tick()
    assert node.life.trouble() == ""


def test_an_attempt_waits_for_who_has_the_gpu_and_is_given_back_if_that_takes_too_long(bench, tmp_path):
    node = bench()
    other = GpuLock(tmp_path / "locks", node.fake.uuids[0])
    waiting = node.life.attempt(Work.check, patience_s=0)
    with other.held(Work.measure, patience_s=0), pytest.raises(HandedBackError), waiting:
        pass
    beside = node.life.attempt(Work.check, patience_s=0)
    with other.held(Work.check, patience_s=0), beside as attempt:
        attempt.enter(Phase.checking)


# --- what is remembered ----------------------------------------------------------------------------------------------


def test_what_is_suspect_outlives_the_worker_until_the_next_time(tmp_path):
    now = [100.0]
    health = Health(tmp_path / "health.json", 60.0, lambda: now[0], lambda: now[0])
    health.sang()
    now[0] = 200.0
    health.quarantine("it fell ill")
    again = Health(tmp_path / "health.json", 60.0, lambda: now[0], lambda: now[0])
    assert (again.remembered.suspect_since, again.remembered.suspect_until) == (100.0, 200.0)
    assert again.trouble() == "", "who starts it anew has looked"
    now[0] = 300.0
    again.sang()
    assert (again.remembered.good_at, again.remembered.suspect_since) == (300.0, 100.0)
    now[0] = 400.0
    again.quarantine("again")
    again.quarantine("and again")
    assert (again.remembered.suspect_since, again.remembered.suspect_until) == (300.0, 400.0)


def test_a_clock_that_is_set_back_hides_nothing_that_is_suspect_and_draws_out_no_cool_down(tmp_path):
    """A node's clock was an hour ahead when it sang; NTP puts it right before it falls ill."""
    clock, ticks = [10_000.0], [50.0]
    health = Health(tmp_path / "health.json", 60.0, lambda: clock[0], lambda: ticks[0])
    health.sang()
    clock[0], ticks[0] = 10_000.0 - 3600 + 600, 650.0
    health.failed("too slow")
    clock[0], ticks[0] = clock[0] - 7200, 711.0
    assert health.cooled
    health.failed("too slow")
    kept = health.remembered
    # 661 seconds by a clock that nobody sets.
    assert (kept.suspect_since, kept.suspect_until) == (clock[0] - 661, clock[0])


def test_what_an_earlier_worker_remembered_of_the_future_is_no_empty_time(tmp_path):
    Health(tmp_path / "health.json", 60.0, lambda: 10_000.0).sang()
    health = Health(tmp_path / "health.json", 60.0, lambda: 7000.0)
    health.quarantine("it fell ill")
    assert health.remembered.suspect_since <= 7000.0 - 3600
    assert health.remembered.suspect_until == 7000.0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"good_at": 1}', "\x00"])
def test_a_memory_that_cannot_be_read_is_none(tmp_path, text):
    (tmp_path / "health.json").write_text(text)
    assert Health(tmp_path / "health.json", 60.0, time.time).remembered.good_at is None


def test_the_life_thread_ends_when_it_is_asked_to(bench, monkeypatch):
    monkeypatch.setattr(life_module, "TICK_S", 0.01)
    node = bench(canary_every_s=0.001)
    node.life._busy_at = -1000.0
    node.life.start()
    give_up_at = time.monotonic() + 60
    while node.life.calibration() is None:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    node.life.stop()
    assert not node.life._thread.is_alive()
