"""Leases expire against what the recorder has heard; what never began costs no attempt."""

from __future__ import annotations

import secrets
from datetime import timedelta

import pytest
from sqlalchemy import select

from autograder.contract import AttemptFailure, AttemptResult, Claim, Kind
from server import alerts
from server.grading import lease_clock, sweep
from server.grading.interface import Outcome
from server.grading.interface import sweep as sweep_once
from server.models import AlertKind, Attempt, AttemptState, State, Tick
from tests.doubles.world import START, World, passed

LEASE_S = 30.0


@pytest.fixture
def world(database_url, tmp_path):
    made = World.make(database_url, tmp_path)
    yield made
    made.database.dispose()


def ticks(world, *ages, heard_ones=True):
    """Ticks so many seconds old."""
    with world.database.transaction() as session:
        for age in ages:
            at = world.now - timedelta(seconds=age)
            nonce = secrets.token_hex(16)
            session.add(Tick(nonce=nonce, made_at=at, heard_at=world.now if heard_ones else None))


def clock(world):
    with world.database.reading() as session:
        return lease_clock.lease_clock(session, now=world.now, lease_s=LEASE_S)


def swept(world):
    with world.database.transaction() as session:
        return sweep_once(session, now=world.now, config=world.config)


def make(world):
    with world.database.transaction() as session:
        return lease_clock.make_tick(session, now=world.now)


def hear(world, nonce):
    with world.database.transaction() as session:
        return lease_clock.hear(session, nonce, now=world.now)


def open_kinds(world):
    with world.database.reading() as session:
        return {(alert.kind, alert.subject) for alert in alerts.open_alerts(session)}


# --- the clock -------------------------------------------------------------------------------------------------------


def test_nothing_was_ever_heard(world):
    assert clock(world) is None
    ticks(world, 0, 2, 4, heard_ones=False)
    assert clock(world) is None


def test_it_stands_at_the_newest_tick_that_was_heard(world):
    ticks(world, *range(7, 50, 2))
    ticks(world, 1, 3, 5, heard_ones=False)
    assert clock(world) == world.now - timedelta(seconds=7)


def test_it_stands_still_until_a_whole_lease_was_heard(world):
    ticks(world, *range(0, 30, 2))
    assert clock(world) is None
    ticks(world, 30)
    assert clock(world) == world.now


@pytest.mark.parametrize(("gap", "runs"), [(10, True), (11, False)])
def test_a_gap_starts_it_again(world, gap, runs):
    ticks(world, *range(0, 20, 2), *range(18 + gap, 90, 2))
    assert (clock(world) is not None) is runs


def test_a_gap_longer_ago_than_a_lease_is_over(world):
    ticks(world, *range(0, 32, 2), 500)
    assert clock(world) == world.now


def test_a_tick_from_the_future_counts_for_nothing_and_is_forgotten(world):
    ticks(world, -3600, *range(0, 40, 2))
    assert clock(world) == world.now
    assert make(world) is None
    with world.database.transaction() as session:
        lease_clock.forget_ticks(session, now=world.now, longest_s=LEASE_S)
    with world.database.reading() as session:
        assert max(session.scalars(select(Tick.made_at))) == world.now


# --- a tick's way ----------------------------------------------------------------------------------------------------


def test_several_dispatchers_make_one_row_of_ticks(world):
    assert make(world)
    assert make(world) is None
    world.wait(2)
    assert make(world)
    assert make(world) is None


def test_a_tick_is_heard_once_and_a_forged_one_never(world):
    nonce = make(world)
    assert hear(world, nonce)
    assert not hear(world, nonce)
    for forged in ("0" * 32, "", "x" * 10_000_000, "\0" * 32, None, 7, [nonce], {"nonce": nonce}):
        assert not hear(world, forged)
    with world.database.reading() as session:
        assert len(session.scalars(select(Tick.nonce)).all()) == 1


def test_a_tick_heard_twice_keeps_when_it_was_heard_first(world):
    nonce = make(world)
    hear(world, nonce)
    world.wait(60)
    hear(world, nonce)
    with world.database.reading() as session:
        assert session.scalars(select(Tick.heard_at)).one() == START


def test_how_far_the_recorder_is_behind(world):
    def behind():
        with world.database.reading() as session:
            return lease_clock.behind_s(session, now=world.now)

    assert behind() == 0.0
    ticks(world, 4, 12, heard_ones=False)
    assert behind() == 12.0
    # One that was lost and overtaken says nothing.
    ticks(world, 6)
    assert behind() == 4.0


def test_old_ticks_are_forgotten(world):
    ticks(world, 0, 600, 10_000)
    ticks(world, 1, 11_000, heard_ones=False)
    with world.database.transaction() as session:
        lease_clock.forget_ticks(session, now=world.now, longest_s=LEASE_S)
    with world.database.reading() as session:
        assert len(session.scalars(select(Tick.nonce)).all()) == 3


# --- what it is for --------------------------------------------------------------------------------------------------


def test_while_the_recorder_is_away_no_lease_expires(world):
    submission = world.submit()
    task = world.take()
    world.claimed(task)
    world.tick()
    world.wait(3600)
    assert swept(world) == 0
    assert world.finish(task) is Outcome.applied
    assert [attempt.state for attempt in world.attempts(submission)] == [AttemptState.finished]


def test_when_it_is_back_living_nodes_have_one_lease_to_be_heard(world):
    submission = world.submit()
    world.claimed(world.take())
    world.tick()
    world.wait(3600)
    ticks(world, 0)
    assert swept(world) == 0
    world.tick()
    assert swept(world) == 1
    assert world.state_of(submission) is State.queued


def test_an_attempt_whose_node_says_nothing_expires_although_others_are_heard(world):
    submission = world.submit()
    world.claimed(world.take())
    world.wait(world.config.lease_s + 1, nodes_live=False)
    assert world.sweep(nodes_live=False) == 1
    assert (world.submission(submission).attempts_made, world.state_of(submission)) == (1, State.queued)
    assert (AlertKind.node_silent, "node:anvil") in open_kinds(world)


def test_a_lease_given_before_the_clock_was_set_back_is_cut(world):
    world.submit()
    world.claimed(world.take())
    world.now -= timedelta(hours=1)
    world.sweep()
    world.wait(world.config.lease_s + 1)
    assert world.sweep() == 1


@pytest.mark.parametrize("jump_s", [900, 7 * 86_400])
def test_a_clock_that_is_set_forward_makes_no_attempt_outlive_its_deadline(world, jump_s):
    """By the clock it is older than its deadline; what was heard meanwhile is a minute."""
    submission = world.submit()
    task = world.take()
    world.claimed(task)
    ticks(world, *range(0, 60, 5))
    world.wait(jump_s)
    for _ in range(3 * int(LEASE_S) // 5):
        world.wait(5)
        ticks(world, 0)
        world.send(Kind.heartbeat, Claim(task.attempt, task.fence, 0.0))
        assert swept(world) == 0
    assert world.finish(task) is Outcome.applied
    assert world.submission(submission).attempts_made == 1


def test_after_that_a_deadline_is_as_long_as_ever(world):
    world.submit()
    task = world.take()
    world.claimed(task)
    world.wait(7 * 86_400)
    lived = 0
    while not swept(world):
        world.wait(10)
        ticks(world, 0)
        world.send(Kind.heartbeat, Claim(task.attempt, task.fence, 0.0))
        lived += 10
        assert lived <= world.config.attempt_deadline_s + 2 * LEASE_S
    assert lived >= world.config.attempt_deadline_s


# --- what costs an attempt -------------------------------------------------------------------------------------------


def lose(world):
    world.take()
    world.wait(world.config.lease_s + 1)
    assert world.sweep() == 1
    world.wait(120)


def test_a_task_that_no_node_ever_took_costs_no_attempt(world):
    submission = world.submit()
    for _ in range(world.config.max_attempts + 1):
        lose(world)
    row = world.submission(submission)
    assert (row.state, row.attempts_made) == (State.queued, 0)
    assert len(world.attempts(submission)) == world.config.max_attempts + 1


def test_but_not_for_ever(world):
    submission = world.submit()
    for _ in range(sweep.FREE_ENDS + world.config.max_attempts):
        lose(world)
    assert world.state_of(submission) is State.failed
    assert (AlertKind.submission_failed, f"submission:{submission}") in open_kinds(world)


def hand_back(world):
    task = world.take()
    world.claimed(task)
    return world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "the node was stopped", handed_back=True))


def test_an_attempt_that_is_handed_back_costs_none(world):
    submission = world.submit()
    place = world.submission(submission).place_at
    for _ in range(world.config.max_attempts + 1):
        assert hand_back(world) is Outcome.applied
        world.wait(120)
    row = world.submission(submission)
    assert (row.state, row.attempts_made, row.place_at) == (State.queued, 0, place)
    last = world.attempts(submission)[-1]
    assert (last.state, last.reason) == (AttemptState.failed, "the node was stopped")
    world.finish(world.take())
    assert world.state_of(submission) is State.done


def test_a_node_that_hands_everything_back_does_not_do_so_for_ever(world):
    submission = world.submit()
    for _ in range(sweep.FREE_ENDS + world.config.max_attempts):
        hand_back(world)
        world.wait(120)
    assert world.state_of(submission) is State.failed


def test_failures_that_count_say_so_to_staff_once(world):
    submission = world.submit()
    for _ in range(world.config.max_attempts):
        task = world.take()
        world.send(Kind.failure, AttemptFailure(task.attempt, task.fence, "no \0 bundle"))
        world.wait(120)
    with world.database.reading() as session:
        (alert,) = alerts.open_alerts(session)
        assert (alert.kind, alert.subject) == (AlertKind.submission_failed, f"submission:{submission}")
        assert "no  bundle" in alert.message
    assert world.attempts(submission)[-1].reason == "no  bundle"


def test_what_a_node_works_on_can_be_fenced_off_at_no_cost(world):
    submission = world.submit()
    task = world.take()
    with world.database.transaction() as session:
        node_id = session.scalars(select(Attempt.node_id)).one()
        assert sweep.fence_off(session, node_id, "its token was replaced", now=world.now, config=world.config) == 1
        assert sweep.fence_off(session, node_id, "its token was replaced", now=world.now, config=world.config) == 0
    row = world.submission(submission)
    assert (row.state, row.attempts_made) == (State.queued, 0)
    assert world.send(Kind.result, AttemptResult(task.attempt, task.fence, passed())) is Outcome.late


def test_ending_an_attempt_that_is_over_changes_nothing(world):
    world.submit()
    task = world.take()
    world.finish(task)
    with world.database.transaction() as session:
        for name in (task.attempt, "0" * 26):
            assert not sweep.end_attempt(session, name, "why", now=world.now, config=world.config)
