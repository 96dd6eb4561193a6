"""When those who wait have their result: against a simulation that does all the slow way, and in a real queue."""

from __future__ import annotations

import heapq
import random
import statistics
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from autograder.contract import Lane
from server.grading import schedule
from server.grading.calibration import ENOUGH, NARROWEST, WIDEST, Calibration, Past, calibrate
from server.grading.forecast import LaneForecast, Wait, forecast, store_forecasts
from server.grading.policy import Look, Queue, Waiting, order
from server.grading.schedule import Bench, Busy, Expected, Planned, expect
from server.grading.service_times import EACH, GUESS_S, Job, ServiceTimes
from server.grading.service_times import ENOUGH as ENOUGH_TIMES
from server.grading.snapshots import Snapshots
from server.models import Forecast, Line, Mode, Work
from tests.doubles.world import START, World, passed

JOB = Job(1, Mode.submission, Work.all)
CHECK = Job(1, Mode.submission, Work.check)
MEASURE = Job(1, Mode.submission, Work.measure)


def times(**seconds: list[float]) -> ServiceTimes:
    by_name = {"all": JOB, "check": CHECK, "measure": MEASURE}
    return ServiceTimes.of_rows([(by_name[name], s) for name, each in seconds.items() for s in each])


def planned(*jobs: Job) -> list[Planned]:
    return [Planned(index, job) for index, job in enumerate(jobs)]


# --- the schedule ---------------------------------------------------------------------------------------------------


def test_with_one_time_there_is_no_doubt() -> None:
    found = expect(planned(*[JOB] * 5), [Bench(2)], times(all=[10.0] * 5))
    assert [found[i] for i in range(5)] == [Expected(t, t, t) for t in (10.0, 10.0, 20.0, 20.0, 30.0)]


def test_what_runs_has_to_end_first() -> None:
    found = expect(planned(JOB, JOB), [Bench(1, busy=(Busy(JOB, 7.0),))], times(all=[10.0] * 5))
    assert [found[0].likely_s, found[1].likely_s] == [13.0, 23.0]


def test_what_outlasts_every_time_is_not_taken_for_over() -> None:
    found = expect(planned(JOB), [Bench(1, busy=(Busy(JOB, 500.0),))], times(all=[10.0] * 5))
    assert found[0].low_s < found[0].high_s
    assert found[0].high_s > 100.0


def test_more_running_than_slots_end_first() -> None:
    busy = tuple(Busy(JOB, s) for s in (2.0, 6.0))
    found = expect(planned(JOB), [Bench(1, busy=busy)], times(all=[10.0] * 5))
    assert found[0].likely_s == 18.0


def test_a_slot_takes_only_what_its_node_does() -> None:
    benches = [Bench(1, frozenset({Work.check})), Bench(1, frozenset({Work.measure}))]
    found = expect(planned(CHECK, CHECK, MEASURE), benches, times(check=[5.0] * 5, measure=[30.0] * 5))
    assert [found[i].likely_s for i in range(3)] == [5.0, 10.0, 30.0]


def test_what_no_node_does_has_no_time() -> None:
    found = expect(planned(CHECK, MEASURE), [Bench(1, frozenset({Work.check}))], times(check=[5.0] * 5))
    assert list(found) == [0]


def test_nobody_grades_nothing_is_said() -> None:
    assert expect(planned(JOB), [], times(all=[1.0] * 5)) == {}
    assert expect(planned(JOB), [Bench(0)], times(all=[1.0] * 5)) == {}


def test_the_same_queue_gets_the_same_answer() -> None:
    queue, measured = planned(*[JOB] * 40), times(all=[1.0, 2.0, 5.0, 9.0, 20.0])
    assert expect(queue, [Bench(3)], measured) == expect(queue, [Bench(3)], measured)


def test_a_queue_too_long_goes_on_at_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "MOST", 100)
    found = expect(planned(*[JOB] * 250), [Bench(1)], times(all=[2.0] * 5))
    assert not found[99].approximate
    assert found[249].approximate
    assert found[249].likely_s == pytest.approx(500.0)


def brute_force(items: list[Waiting], slots: int, seconds: dict[int, float]) -> dict[int, float]:
    """The policy's own queue, event by event: nobody is sorted in advance."""
    queue, ends, running = Queue(Look(now=START, waiting=items, slots=slots)), {}, []
    now = 0.0
    while True:
        while len(running) < slots and (item := queue.next()) is not None:
            queue.take(item)
            ends[item.id] = now + seconds[item.id]
            heapq.heappush(running, (ends[item.id], item.id, item))
        if not running:
            return ends
        now, _, item = heapq.heappop(running)
        queue.ended(item)


waiting = st.builds(
    lambda user, course, late, line: (user, course, late, line),
    st.integers(1, 4), st.integers(1, 2), st.integers(0, 900), st.sampled_from([Line.submission, Line.run]),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(waiting, min_size=1, max_size=30), st.integers(1, 4), st.floats(1.0, 50.0))
def test_it_agrees_with_the_policy_run_event_by_event(
    who: list[tuple[int, int, int, Line]], slots: int, seconds: float
) -> None:
    items = [
        Waiting(index, user, course, line, START - timedelta(seconds=late))
        for index, (user, course, late, line) in enumerate(who)
    ]
    slow = brute_force(items, slots, dict.fromkeys(range(len(items)), seconds))
    queue = [Planned(item.id, JOB) for item in order(Look(now=START, waiting=items, slots=slots))]
    found = expect(queue, [Bench(slots)], times(all=[seconds] * 5), draws=1)
    assert {item: each.likely_s for item, each in found.items()} == pytest.approx(slow)


def test_its_percentiles_are_those_of_many_slow_runs() -> None:
    samples = [3.0, 4.0, 6.0, 9.0, 30.0]
    items = [Waiting(index, index, 1, Line.submission, START) for index in range(20)]
    chosen = random.Random(7)
    ends = [brute_force(items, 3, {item.id: chosen.choice(samples) for item in items})[19] for _ in range(4000)]
    deciles = statistics.quantiles(ends, n=10)
    found = expect(planned(*[JOB] * 20), [Bench(3)], times(all=samples), draws=4000)[19]
    assert found.low_s == pytest.approx(deciles[0], rel=0.05)
    assert found.likely_s == pytest.approx(deciles[4], rel=0.05)
    assert found.high_s == pytest.approx(deciles[8], rel=0.05)


# --- the times ------------------------------------------------------------------------------------------------------


def test_a_job_borrows_from_its_lane_until_it_has_enough() -> None:
    other = Job(2, Mode.submission, Work.all)
    few = ServiceTimes.of_rows([(JOB, 1.0), *[(other, 9.0)] * 6])
    assert 9.0 in few.of(JOB)
    many = ServiceTimes.of_rows([*[(JOB, 1.0)] * ENOUGH_TIMES, *[(other, 9.0)] * 6])
    assert set(many.of(JOB)) == {1.0}


def test_only_the_newest_of_a_job_count() -> None:
    assert set(ServiceTimes.of_rows([*[(JOB, 1.0)] * EACH, (JOB, 99.0)]).of(JOB)) == {1.0}


def test_with_nothing_measured_it_is_a_guess_and_says_so() -> None:
    assert ServiceTimes().of(JOB) == GUESS_S
    assert not ServiceTimes().measured


# --- the calibration ------------------------------------------------------------------------------------------------


def past(came_s: float, *, scale: float = 1.0) -> Past:
    shown = Calibration(down=scale, up=scale).apply(Expected(80.0, 100.0, 125.0))
    return Past(shown.low_s, shown.likely_s, shown.high_s, scale, scale, came_s)


def test_with_few_estimates_nothing_is_stretched() -> None:
    found = calibrate([past(500.0)] * (ENOUGH - 1))
    assert (found.down, found.up, found.right, found.total) == (1.0, 1.0, 0, ENOUGH - 1)


def test_estimates_that_were_too_early_stretch_the_late_side_only() -> None:
    found = calibrate([past(200.0)] * 40)
    assert found.up > 2.5
    assert found.down == NARROWEST
    assert found.apply(Expected(80.0, 100.0, 125.0)).high_s >= 199.0


def test_estimates_that_were_too_wide_become_narrower() -> None:
    found = calibrate([past(101.0 if index % 2 else 99.0) for index in range(40)])
    assert (found.down, found.up) == (NARROWEST, NARROWEST)


def test_one_absurd_wait_does_not_make_the_next_absurd() -> None:
    assert calibrate([past(1e9)] * 40).up == WIDEST


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_what_was_stretched_already_is_not_stretched_twice(scale: float) -> None:
    chosen = random.Random(3)
    came = [100.0 * chosen.lognormvariate(0.0, 0.5) for _ in range(400)]
    plain, stretched = calibrate([past(c) for c in came]), calibrate([past(c, scale=scale) for c in came])
    assert stretched.up == pytest.approx(plain.up, rel=0.01)
    assert stretched.down == pytest.approx(plain.down, rel=0.01)


def test_calibrated_estimates_hold_what_they_promise() -> None:
    """Waits that grow as at a deadline, forecast by somebody who knows nothing of it."""
    chosen = random.Random(5)
    seen: list[Past] = []
    for _ in range(1500):
        likely = chosen.uniform(20.0, 600.0)
        scale = calibrate(seen[-400:])
        shown = scale.apply(Expected(likely * 0.9, likely, likely * 1.1))
        came = likely * chosen.lognormvariate(0.3, 0.4)
        seen.append(Past(shown.low_s, shown.likely_s, shown.high_s, scale.down, scale.up, came))
    late = seen[500:]
    assert 0.75 <= sum(item.was_right for item in late) / len(late) <= 0.9


# --- in a real queue ------------------------------------------------------------------------------------------------


@pytest.fixture
def world(database_url: str, tmp_path: Path) -> Iterator[World]:
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


def look(world: World) -> LaneForecast:
    with world.database.reading() as session:
        return forecast(session, Lane.cpu, world.now)


def graded(world: World, count: int, seconds: float) -> None:
    for _ in range(count):
        world.submit()
        task = world.take()
        world.wait(seconds)
        world.finish(task)


def stored(world: World) -> list[Forecast]:
    with world.database.reading() as session:
        rows = list(session.scalars(select(Forecast).order_by(Forecast.submission_id)))
        session.expunge_all()
        return rows


def store(world: World) -> int:
    with world.database.transaction() as session:
        return store_forecasts(session, world.now)


def test_it_says_how_many_are_before_and_how_long_it_takes(world: World) -> None:
    graded(world, 6, 10.0)
    world.submit()
    world.take()
    world.wait(4.0)
    ids = [world.submission(world.submit(person, place_at=world.now)).id for person in ("Alice", "Bob")]
    found = look(world)
    assert {found.waits[item].ahead for item in ids} == {0, 1}
    assert sorted(round(found.waits[item].likely_s or 0.0) for item in ids) == [16, 26]
    assert (found.slots, found.nodes, len(found.running)) == (1, 1, 1)


def test_without_a_node_there_is_a_place_and_no_time(world: World) -> None:
    item = world.submission(world.submit()).id
    world.wait(3600.0, nodes_live=False)
    wait = look(world).waits[item]
    assert (wait.ahead, wait.has_node, wait.likely_s) == (0, False, None)
    assert store(world) == 0


def test_before_anything_was_measured_it_is_called_a_guess(world: World) -> None:
    item = world.submission(world.submit()).id
    wait = look(world).waits[item]
    assert not wait.measured
    assert wait.low_s is not None
    assert wait.high_s is not None
    assert wait.low_s < wait.high_s


def test_an_estimate_is_stored_once_and_held_against_what_came(world: World) -> None:
    graded(world, 6, 10.0)
    first = world.submission(world.submit()).id
    assert store(world) == 1
    made_at = world.now
    world.wait(5.0)
    assert store(world) == 0
    task = world.take()
    world.wait(10.0)
    world.finish(task)
    row = stored(world)[-1]
    assert (row.submission_id, row.made_at, row.position) == (first, made_at, 0)
    assert row.came_s == pytest.approx(15.0)


def test_what_was_superseded_says_nothing_about_the_estimates(world: World) -> None:
    old = world.submit()
    store(world)
    new = world.submit()
    with world.database.transaction() as session:
        row = session.merge(world.submission(old))
        row.superseded_by_id, row.line = world.submission(new).id, Line.superseded
    world.finish(world.take(), passed())
    assert {row.submission_id: row.came_s for row in stored(world)}[world.submission(old).id] is None


def test_past_misses_widen_what_is_shown_next(world: World) -> None:
    graded(world, 6, 10.0)
    for _ in range(ENOUGH):
        world.submit()
        store(world)
        task = world.take()
        world.wait(10.0)
        world.finish(task)
    with world.database.transaction() as session:
        session.execute(update(Forecast).values(came_s=60.0))
    item = world.submission(world.submit()).id
    found = look(world)
    assert found.calibrations[Mode.submission].right == 0
    wait = found.waits[item]
    assert wait.high_s is not None
    assert wait.high_s > 12.0


# --- shared among viewers -------------------------------------------------------------------------------------------


class Clock:
    """A clock of the test's own."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("server.grading.snapshots.monotonic", made)
    return made


class Viewer:
    """Asks for waits with a session of its own each time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.snapshots = Snapshots()

    def wait(self, public_id: str) -> Wait | None:
        with self.world.database.reading() as session:
            return self.snapshots.wait_of(session, self.world.submission(public_id))

    def newest(self) -> LaneForecast:
        with self.world.database.reading() as session:
            return self.snapshots.newest(session, Lane.cpu)


def test_however_many_ask_the_lane_is_looked_at_once(world: World, clock: Clock) -> None:
    submissions = [world.submit() for _ in range(3)]
    viewer = Viewer(world)
    for _ in range(10):
        assert all(viewer.wait(item) is not None for item in submissions)
    assert viewer.snapshots.looks == 1
    clock.now += 2.1
    assert viewer.snapshots.peek(Lane.cpu) is None
    viewer.newest()
    assert viewer.snapshots.looks == 2
    assert viewer.snapshots.peek(Lane.cpu) is not None


def test_who_came_a_moment_ago_is_looked_for(world: World, clock: Clock) -> None:
    viewer = Viewer(world)
    viewer.newest()
    clock.now += 0.01
    assert viewer.wait(world.submit()) is not None


def test_newcomers_cannot_keep_a_process_busy(world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = Viewer(world)

    def slow(*arguments: object) -> LaneForecast:
        clock.now += 0.2
        return forecast(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("server.grading.snapshots.forecast", slow)
    found = [viewer.wait(world.submit()) for _ in range(6)]
    assert None in found
    assert viewer.snapshots.looks <= 4


def test_while_somebody_looks_others_see_the_look_before(
    world: World, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    viewer = Viewer(world)
    before = viewer.newest()
    clock.now += 2.1
    seen: list[LaneForecast | None] = []

    def slow(*arguments: object) -> LaneForecast:
        seen.append(viewer.snapshots.peek(Lane.cpu))
        return forecast(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("server.grading.snapshots.forecast", slow)
    assert viewer.newest() is not before
    assert seen == [before]
