"""Receipts of grades: signed, whole for staff, without secrets for students, and enough to work the score out again."""

from __future__ import annotations

import copy
import dataclasses
import json
import stat
from contextlib import ExitStack

import httpx
import pytest
from click.testing import CliRunner
from sqlalchemy import select

from autograder import codec, samples
from autograder.assignment import LanePolicy
from autograder.contract import (
    Batch,
    Bound,
    ClockSample,
    Finding,
    FindingKind,
    Frame,
    GpuFacts,
    Lane,
    Mode,
    StudentError,
    Verdict,
    Work,
)
from autograder.errors import ContractError
from autograder.receipts import Copy, Receipt, issue, read, recompute
from autograder.scores import FORMULA_VERSION, Speed
from autograder.signing import SignatureError, SigningKey
from client.main import main
from server.accounts import accounts
from server.app import create_app
from server.errors import ConflictError
from server.grading import receipt_keys
from server.grading.receipts import receipt_of
from server.models import Assignment, Line, ReceiptKey, Sampling, State, Submission, TokenScope, User
from server.regrades.console import rescore
from tests.doubles.world import SOURCE, case, manifest, measurement, passed, wrong
from tests.server.conftest import NO_TLS, served

SECRET = "SECRET"
GPU = {"lane": Lane.h200}


@pytest.fixture
def database_url(sqlite_url):
    return sqlite_url


@pytest.fixture
def site(world):
    """Clients of the real application, by person."""
    with ExitStack() as stack:
        url = stack.enter_context(served(create_app(world.config)))

        def client(person):
            with world.database.transaction() as session:
                user = session.scalars(select(User).where(User.name == person)).one()
                _row, token = accounts.create_token(session, user, name="test", scopes=TokenScope)
            headers = {"authorization": f"Bearer {token}"}
            return stack.enter_context(httpx.Client(base_url=url, headers=headers, verify=NO_TLS, timeout=60))

        yield client


def secretive():
    """A result in which everything that a student may not see says so."""
    hidden = case(
        f"hidden {SECRET} n=7919",
        Verdict.passed,
        message=SECRET,
        ranked=True,
        seconds=7919.5,
        error=StudentError(SECRET, SECRET, (Frame(3, SECRET, "pass"),)),
    )
    gpu = GpuFacts("NVIDIA H200", "GPU-1", "580", (ClockSample(7919.25, None, 1980, 3201, 50, 300.0),))
    plain = passed(2.0)
    timed = dataclasses.replace(measurement("large", 2.0), held=SECRET)
    return dataclasses.replace(
        plain,
        cases=(*plain.cases[:2], hidden),
        measurements=(timed, dataclasses.replace(measurement(hidden.name, 3.0), flops=7919.0)),
        findings=(Finding(FindingKind.library_call, SECRET, {SECRET: SECRET}),),
        held=True,
        held_reason=SECRET,
        gpu=gpu,
        environment={"image": "sha256:abc", "gpu driver": "580"},
    )


def receipt(world, name):
    with world.database.reading() as session:
        row = session.scalars(select(Submission).where(Submission.public_id == name)).one()
        return receipt_of(session, row, now=world.now)


# --- what is in it ---------------------------------------------------------------------------------------------------


def test_a_receipt_names_everything_that_a_grade_follows_from(world):
    name = world.grade(dataclasses.replace(passed(2.0), environment={"image": "sha256:abc"}), node="forge", **GPU)
    found = receipt(world, name)
    row = world.submission(name)
    assert (found.number, found.submission, found.source_hash) == (name, 1, row.source_hash)
    assert (found.course, found.assignment, found.version, found.lane) == ("gpu", "vector_add", 1, Lane.h200)
    assert found.bundle.startswith("sha256:")
    assert (found.formula.r_full, found.formula.r_zero, found.formula.version) == (1.25, 10.0, FORMULA_VERSION)
    assert {group.name: group.passed for group in found.groups} == {"public": True, "hidden": True}
    assert found.attempts[0].environment == {"image": "sha256:abc"}
    assert found.attempts[0].node == "forge"
    assert len(found.samples[0].measurement.pairs) == 3
    assert found.grade.points == row.points
    assert [(item.reason, item.after) for item in found.changes] == [("graded", row.points)]
    assert recompute(found) == []


def test_a_pools_receipt_has_the_samples_of_all_its_attempts(world):
    same = {**GPU, "source": SOURCE}
    first = world.grade(passed(2.0), node="forge", **same)
    second = world.grade(passed(3.0), node="forge", **same)
    for name in (first, second):
        found = receipt(world, name)
        assert {item.submission for item in found.attempts} == {first, second}
        assert (len(found.samples), recompute(found)) == (2, [])
    assert [item.reason for item in receipt(world, first).changes] == ["graded", "pooled"]


def test_a_receipt_is_made_of_what_is_written_down_and_works_no_interval_out(world, monkeypatch):
    """Those of a full pool take seconds, which a web process has for nobody; whoever checks it works them out."""
    names = [world.grade(passed(ratio), node="forge", source=SOURCE, **GPU) for ratio in (2.0, 3.0)]
    worked_out = []
    with monkeypatch.context() as patched:
        patched.setattr(samples, "interval", lambda attempts: worked_out.append(attempts) or (1.0, 1.0))
        found = [receipt(world, name) for name in names]
    assert worked_out == []
    for name, one in zip(names, found, strict=True):
        row = world.results(name)[-1]
        assert one.grade.speed == Speed(row.ratio, row.ratio_low, row.ratio_high, row.time_us)
        assert (len(one.samples), recompute(one), recompute(one.for_student())) == (2, [], [])


def test_a_receipt_says_of_every_attempt_where_it_was_made(world):
    gpu = GpuFacts("NVIDIA H200", "GPU-1", "580", (ClockSample(1.25, None, 1980, 3201, 50, 300.0),))
    whole = dataclasses.replace(passed(2.0), environment={"image": "sha256:abc"}, promises=("no network",), gpu=gpu)
    name = world.grade(whole, node="forge", **GPU)
    (attempt,) = receipt(world, name).attempts
    assert (attempt.environment, attempt.promises, attempt.gpu) == (whole.environment, whole.promises, gpu)


def by_batches():
    """A result in which both sides' batches rank, and differ."""
    batches = [
        tuple(Batch(10.0 + one, one) for one in taken) for taken in ((200.0, 220.0, 240.0), (100.0, 104.0, 108.0))
    ]
    bound = Bound(1, *batches, (10.0,), sealed_us=200.0, excess=0.9, epsilon=0.06, bounded=False)
    plain = passed(2.0)
    measured = tuple(dataclasses.replace(one, clock="batches", bound=bound) for one in plain.measurements)
    return dataclasses.replace(plain, measurements=measured)


def test_a_ratio_of_batches_has_an_interval_that_follows_from_its_receipt(world):
    speed = receipt(world, world.grade(by_batches(), node="forge", **GPU)).grade.speed
    assert (speed.ratio, speed.low < 2.0 < speed.high) == (pytest.approx(2.0), True)


@pytest.mark.parametrize("result", [wrong(), passed(50.0), passed(0.5, held=True), passed(2.0), by_batches()])
@pytest.mark.parametrize("lane", [Lane.h200, Lane.cpu])
def test_every_grade_follows_from_its_receipt_in_both_copies(world, result, lane):
    name = world.grade(result, node={Lane.h200: "forge", Lane.cpu: "anvil"}[lane], lane=lane)
    whole = receipt(world, name)
    assert recompute(whole) == recompute(whole.for_student()) == []


def test_a_rescored_grade_follows_from_the_points_and_tiers_that_it_was_scored_by(world):
    name = world.grade(passed(2.0), node="forge", **GPU)
    with world.database.transaction() as session:
        world.publish(session, manifest(points=dataclasses.replace(manifest().points, correctness=10)))
        only = session.scalars(select(Assignment)).one()
        rescore(session, only, reason="Fewer points.", apply=True, may_lower=True, now=world.now)
    found = receipt(world, name)
    assert (found.version, found.formula.correctness, recompute(found)) == (1, 10, [])
    assert [item.reason for item in found.changes] == ["graded", "rescored"]


def test_a_receipt_holds_while_only_the_check_counts_of_what_was_sampled(world):
    """Our side failed while it measured: its samples are kept, and the check's result has no speed by them."""
    lanes = {"h200": LanePolicy(speed_points=True, r_full=1.25, r_zero=10.0, apart=True)}
    with world.database.transaction() as session:
        world.publish(session, manifest(lanes=lanes))
    name = world.grade(dataclasses.replace(passed(), measurements=()), node="forge", work=Work.check, **GPU)
    broken = dataclasses.replace(passed(2.0), verdict=Verdict.grader_error, explanation="The GPU fell off the bus.")
    for _ in range(world.config.max_attempts):
        world.finish(world.take("forge"), broken, "forge")
        found = receipt(world, name)
        assert (found.grade.speed, found.samples) == (None, ())
        assert recompute(found) == recompute(found.for_student()) == []
    assert world.state_of(name) is State.failed
    with world.database.reading() as session:
        assert len(session.scalars(select(Sampling)).all()) == world.config.max_attempts


def test_what_has_no_grade_has_no_receipt(world):
    with pytest.raises(ConflictError, match="no grade yet"):
        receipt(world, world.submit())
    run = world.grade(passed(), "Bob", mode=Mode.run, line=Line.run)
    with pytest.raises(ConflictError, match="practice"):
        receipt(world, run)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["grade"].update(points=99.0), "points"),
        (lambda data: data["grade"].update(speed_points=40.0), "speed points"),
        (lambda data: data["grade"]["speed"].update(ratio=1.0), "ratio"),
        (lambda data: data["grade"]["speed"].update(time_us=1.0), "time"),
        (lambda data: data["samples"][0]["measurement"]["pairs"][1].update(submission_event_us=1.0), "ratio"),
        (lambda data: data["cases"][0].update(verdict="wrong_answer"), "correctness points"),
        (lambda data: data["formula"].update(r_zero=3.0), "speed points"),
    ],
)  # fmt: skip
def test_numbers_that_do_not_follow_are_named_whoever_signed_them(world, change, said):
    data = codec.to_json(receipt(world, world.grade(passed(2.0), node="forge", **GPU)))
    change(data)
    assert any(line.startswith(said) for line in recompute(codec.from_json(Receipt, data)))


@pytest.mark.parametrize("tiers", [(0.0, 10.0), (-1.0, 10.0), (10.0, 10.0), (1.25, 1.0)])
def test_tiers_that_no_assignment_has_are_said(world, tiers):
    data = codec.to_json(receipt(world, world.grade(passed(2.0), node="forge", **GPU)))
    data["formula"].update(r_full=tiers[0], r_zero=tiers[1])
    with pytest.raises(ContractError, match="tiers"):
        recompute(codec.from_json(Receipt, data))


def test_another_formula_than_ours_is_said_and_not_guessed_at(world):
    found = receipt(world, world.grade(passed(2.0), node="forge", **GPU))
    with pytest.raises(ContractError, match="version 99"):
        recompute(dataclasses.replace(found, formula=dataclasses.replace(found.formula, version=99)))


# --- who sees what ---------------------------------------------------------------------------------------------------


def test_the_students_copy_holds_nothing_hidden_and_the_staffs_all_of_it(world):
    whole = receipt(world, world.grade(secretive(), node="forge", **GPU))
    theirs = json.dumps(codec.to_json(whole.for_student()))
    assert SECRET not in theirs
    assert "7919" not in theirs
    assert json.dumps(codec.to_json(whole)).count(SECRET) > 5
    assert whole.for_student().withheld == 1
    assert recompute(whole) == []
    with pytest.raises(ContractError, match="hidden"):
        recompute(whole.for_student())


def test_everybody_gets_the_copy_that_is_theirs_by_api_and_page(world, site):
    name = world.grade(secretive(), node="forge", **GPU)
    alice, bob, tom = site("Alice"), site("Bob"), site("Tom")
    for path in (f"/api/v1/submissions/{name}/receipt", f"/api/v1/submissions/{name}"):
        answer = alice.get(path)
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert "7919" not in answer.text
    api = f"/api/v1/submissions/{name}/receipt"
    assert alice.get(api).json()["copy"] == "student"
    assert alice.get(api, params={"copy": "staff"}).status_code == 403
    assert bob.get(api).status_code == 404
    assert tom.get(api).json()["copy"] == "staff"
    assert SECRET in tom.get(api).text
    assert SECRET not in tom.get(api, params={"copy": "student"}).text


def test_a_downloaded_receipt_is_signed_by_a_key_that_the_server_names(world, site):
    name = world.grade(passed(2.0), node="forge", **GPU)
    document = site("Alice").get(f"/api/v1/submissions/{name}/receipt").json()
    keys = site("Bob").get("/api/v1/receipts/keys").json()
    found, signed_by = read(document)
    assert [key["public"] for key in keys] == [signed_by]
    assert (found.number, found.copy, recompute(found)) == (name, Copy.student, [])
    changed = copy.deepcopy(document)
    changed["grade"]["points"] = 100.0
    with pytest.raises(SignatureError, match="changed"):
        read(changed)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_the_private_key_is_the_servers_alone_and_is_made_once(world):
    key = receipt_keys.key_of(world.config)
    assert stat.S_IMODE(world.config.receipt_key.stat().st_mode) == 0o600
    assert receipt_keys.key_of(world.config).public == key.public


def test_a_rotated_key_signs_no_more_and_what_it_signed_can_still_be_checked(world):
    with world.database.transaction() as session:
        old = receipt_keys.key_of(world.config)
        receipt_keys.keep(session, old, now=world.now)
        new = receipt_keys.rotate(session, world.config, now=world.now)
        rows = {row.public: row.retired_at for row in session.scalars(select(ReceiptKey))}
    assert rows == {old.public: world.now, new.public: None}
    assert receipt_keys.key_of(world.config).public == new.public
    assert new.public != old.public


# --- the student's own check -----------------------------------------------------------------------------------------


def verify(path, *arguments):
    result = CliRunner().invoke(main, ["receipt", "verify", str(path), *arguments])
    return result.exit_code, result.output


@pytest.fixture
def signed(world, tmp_path):
    key = SigningKey.generate()
    name = world.grade(passed(2.0), node="forge", **GPU)
    document = issue(receipt(world, name).for_student(), key)
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(document, indent=2))
    return path, document, key


def test_the_command_works_the_score_out_again(signed):
    path, _, key = signed
    status, output = verify(path, "--key", key.public)
    assert status == 0
    assert "OK" in output
    assert "computed again from 3 pairs of 1 attempts" in output
    status, output = verify(path, "--key", key.public, "--json")
    assert json.loads(output)["ratio"] == pytest.approx(2.0)


def test_the_command_names_what_does_not_hold(signed):
    path, document, key = signed
    assert verify(path, "--key", SigningKey.generate().public)[0] == 1
    document["grade"]["points"] = 100.0
    path.write_text(json.dumps(document))
    assert "changed after it was signed" in verify(path, "--key", key.public)[1]
    # One that was signed like this, such as by a stolen key or a mistake of ours.
    path.write_text(json.dumps(key.sign(document)))
    status, output = verify(path, "--key", key.public)
    assert (status, "points: the receipt says 100" in output) == (1, True)


def test_a_file_that_says_something_twice_is_none(signed):
    """Python reads the last of two, which was signed; a person, or another program, may read the first."""
    path, _, key = signed
    text = path.read_text()
    path.write_text(text.replace('"grade": {', '"grade": {"points": 100.0, ', 1))
    status, output = verify(path, "--key", key.public)
    assert status != 0
    assert "twice" in output


@pytest.mark.parametrize("text", ["", "[]", "{", '{"signature": 3}', "\udcff"])
def test_a_file_that_is_no_receipt_is_one_line(tmp_path, text):
    path = tmp_path / "receipt.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    status, output = verify(path, "--key", SigningKey.generate().public)
    assert status in {1, 2}
    assert "Traceback" not in output
