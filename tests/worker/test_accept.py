"""What acceptance makes of the red team's table; the rest runs whole in `tests/client/test_node_accept.py`."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest

from autograder.contract import Language
from worker import accept
from worker.accept import _Accept


def read(tmp_path, table, status=0):
    made = _Accept.__new__(_Accept)
    made._problems = []
    out = tmp_path / "table.json"
    if table is not None:
        out.write_text(json.dumps(table))
    done = subprocess.CompletedProcess([], status, "no path: there is no GPU here", "it broke")
    return made._read_red_team(out, done), made._problems


def row(outcome):
    return {"attack": "passed_x", "lane": "cpu", "sandbox": "process", "verdict": "passed", "outcome": outcome}


@pytest.mark.parametrize("outcome", accept.FINE)
def test_what_is_as_expected_is_counted_and_no_more(tmp_path, outcome):
    found, problems = read(tmp_path, {"rows": [row(outcome)], "counts": {"rows": 1}, "ok": True})
    assert (found["differing"], found["counts"], problems) == ([], {"rows": 1}, [])


def test_every_attack_that_got_through_is_a_problem_and_in_the_report(tmp_path):
    rows = [row("escape"), row("as expected"), row("false hold")]
    found, problems = read(tmp_path, {"rows": rows, "counts": {"rows": 3}, "ok": False}, status=1)
    assert [one["outcome"] for one in found["differing"]] == ["escape", "false hold"]
    assert problems == ["red team: passed_x: escape (passed)", "red team: passed_x: false hold (passed)"]


def test_a_red_team_that_broke_is_a_problem_and_one_without_a_path_is_none(tmp_path):
    assert "status 3: it broke" in read(tmp_path, None, status=3)[1][0]
    found, problems = read(tmp_path, None, status=accept.NO_PATH)
    assert ("no GPU here" in found["skipped"], problems) == (True, [])


def test_the_shape_is_that_of_the_red_teams_own_table():
    table = pytest.importorskip("tests.redteam.table")
    assert set(accept.FINE) == {str(outcome) for outcome in table.FINE}


def interrupted(monkeypatch, plan="quick"):
    """An acceptance that somebody ends at the second of its rungs."""
    said = []
    made = _Accept.__new__(_Accept)
    made._problems, made._works, made._interrupted, made._say = [], True, False, said.append
    made._plan = SimpleNamespace(red_team=plan, parts=accept.PARTS)
    made.document = {}
    done = {"outcome": "passed", "seconds": 2.0}

    def rung(found, language, path):
        found["check"] = done
        if found["slug"] == "softmax":
            raise KeyboardInterrupt
        found["measure"] = done

    kernels = [("vector_add", Language.triton, None), ("softmax", Language.triton, None)]
    monkeypatch.setattr(made, "_kernels", lambda: kernels)
    monkeypatch.setattr(made, "_rung", rung)
    return made, said


def test_who_interrupts_has_what_was_found_before(monkeypatch):
    made, said = interrupted(monkeypatch)
    monkeypatch.setattr(made, "_sandbox", dict)
    monkeypatch.setattr(made, "_self_test", list)
    monkeypatch.setattr(made, "_noise", dict)
    monkeypatch.setattr(made, "_left_behind", dict)
    made.all()
    made.after()
    assert [(one["slug"], "check" in one, "measure" in one) for one in made.document["rungs"]] == [
        ("vector_add", True, True),
        ("softmax", True, False),
    ]
    assert made.document["problems"] == ["rungs: interrupted; tests that are not listed were not run"]
    assert (made.document["accepted"], made.document["red_team"]) == (False, {"skipped": "interrupted before"})
    assert "  vector_add (triton): passed in 2.0 s, passed in 2.0 s" in said
    assert any(line.startswith("rungs: interrupted; tests that are not listed were not run (") for line in said)
    assert any(line.startswith("red team: not tried: interrupted before (") for line in said)


def test_a_part_that_breaks_keeps_what_it_had_found(monkeypatch):
    made, _ = interrupted(monkeypatch)

    def broken():
        yield "vector_add", Language.triton, None
        raise OSError(5, "the disk")

    monkeypatch.setattr(made, "_kernels", broken)
    made._fill("rungs", made._rungs)
    assert [one["slug"] for one in made.document["rungs"]] == ["vector_add"]
    assert made._problems == ["rungs: OSError(5, 'the disk')"]
    assert not made._interrupted


def test_after_an_interruption_nothing_more_is_begun_that_needs_the_judge(monkeypatch):
    made, _ = interrupted(monkeypatch)

    def ended():
        raise KeyboardInterrupt

    def never():
        pytest.fail("begun all the same")

    monkeypatch.setattr(made, "_sandbox", dict)
    monkeypatch.setattr(made, "_self_test", ended)
    monkeypatch.setattr(made, "_noise", never)
    monkeypatch.setattr(made, "_kernels", never)
    monkeypatch.setattr(made, "_left_behind", dict)
    made.all()
    made.after()
    assert (made.document["self_test"], made.document["noise"], made.document["rungs"]) == (None, None, None)
    assert made.document["problems"] == ["self test: interrupted; tests that are not listed were not run"]


def test_who_interrupts_the_golden_kernel_has_what_it_sang(monkeypatch):
    made, _ = interrupted(monkeypatch)
    made._plan.gradings = 3
    songs = iter([{"trouble": ""}])

    def song():
        for one in songs:
            return one
        raise KeyboardInterrupt

    monkeypatch.setattr(made, "_song", song)
    made._fill("noise", made._noise)
    assert made.document["noise"] == {"songs": [{"trouble": ""}], "doubtful": 0, "calibration": None}


@pytest.mark.parametrize(("interrupted_before", "ended"), [(True, "kill"), (False, "close")])
def test_who_interrupts_does_not_wait_for_the_judge(monkeypatch, interrupted_before, ended):
    made, _ = interrupted(monkeypatch)
    how = []
    judge = SimpleNamespace(kill=lambda: how.append("kill"), close=lambda: how.append("close"))
    made._node, made._interrupted = SimpleNamespace(judge=judge), interrupted_before
    made.end_judge()
    assert how == [ended]


def test_who_interrupts_while_the_judge_ends_has_what_was_found(monkeypatch):
    made, _ = interrupted(monkeypatch)
    killed = []

    def close():
        raise KeyboardInterrupt

    made._node = SimpleNamespace(judge=SimpleNamespace(kill=lambda: killed.append(True), close=close))
    monkeypatch.setattr(made, "_left_behind", dict)
    made.end_judge()
    made.after()
    assert killed == [True]
    assert made.document["problems"] == ["the judge: interrupted; tests that are not listed were not run"]
    assert (made.document["accepted"], made.document["red_team"]) == (False, {"skipped": "interrupted before"})
