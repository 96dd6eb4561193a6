"""What a runner may say, and what becomes of it when it says something else. The runner here is a script."""

from __future__ import annotations

import dataclasses
import json
import mmap
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder import codec
from autograder.assignment import Case, Limits, load_assignment
from autograder.contract import GradeRequest, GradeResult, Lane, Language, Mode, Verdict
from autograder.errors import SandboxError
from autograder.judge.defences import ALL_ON, Defences
from autograder.judge.protocol import runner_client as conversations
from autograder.judge.protocol.batch_buffer import BatchMemory
from autograder.judge.protocol.batch_inputs import DrawnInputs, draw_key
from autograder.judge.protocol.buffers import Buffers
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.loading import load_of
from autograder.judge.protocol.runner_client import COPIES, BatchReply, Budget, CallReply, RunnerClient
from autograder.judge.runners import Runners
from autograder.protocol import MAX_PACKET, WORD
from autograder.sandbox import Exit, Promise, Spent
from tests.autograder.runner_talk import wait_for

DOUBLE = load_assignment(Path(__file__).parents[3] / "fixtures" / "assignments" / "double")
CASE = Case("one", {"m": 2, "n": 3}, "float32")
READY = {"is": "Ready", "versions": {"triton": "3"}}
LOADED = {"is": "Loaded", "signature": "()"}
LIMITS = Limits(import_s=5.0, call_s=5.0)


class OverError(Exception):
    """Ends a script."""


@dataclass
class Script:
    """The runner's end: reads what the judge sends, and has the runner's word to write."""

    end: socket.socket
    word: mmap.mmap | None = None
    heard: list[dict[str, Any]] = field(default_factory=list)

    def say(self, message: dict[str, Any] | bytes) -> None:
        self.end.send(message if isinstance(message, bytes) else json.dumps(message).encode())

    def hear(self) -> dict[str, Any]:
        data, descriptors, _, _ = socket.recv_fds(self.end, MAX_PACKET, 16)
        if not data:
            raise OverError
        message = json.loads(data)
        if message["is"] == "Load":
            self.word = mmap.mmap(descriptors[1], WORD.size)
        self.heard.append(message)
        return message

    def finish(self, nonce: int) -> None:
        assert self.word
        WORD.pack_into(self.word, 0, nonce, 5_000)

    def start(self) -> None:
        """Say what an honest runner says until its first call."""
        self.say(READY)
        self.hear()
        self.say(LOADED)


class ScriptedRunner:
    """A runner without a process."""

    def __init__(self, play: Callable[[Script], None], ending: Exit | None) -> None:
        self.channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ending = ending
        self._over = False
        self.frozen = 0
        self.script = Script(end)
        self._thread = threading.Thread(target=self._run, args=(play, self.script))
        self._thread.start()

    def _run(self, play: Callable[[Script], None], script: Script) -> None:
        try:
            play(script)
        except (OverError, OSError):
            pass
        finally:
            self._over = True
            script.end.close()

    def freeze(self) -> None:
        self.frozen += 1

    def thaw(self) -> None:
        self.frozen -= 1

    def pin_core(self, turn: int) -> None:
        """It is a thread."""

    def poll(self) -> Exit | None:
        return self._ending if self._over else None

    def spent(self) -> Spent:
        """As on a machine that nobody else uses."""
        return Spent(0.0, 0.0)

    def log(self) -> str:
        return ""

    def close(self) -> Exit:
        self.channel.close()
        self._thread.join()
        return self._ending or Exit(code=0)


Talk = Callable[..., RunnerClient]


@pytest.fixture
def talk() -> Iterator[Talk]:
    """Start a conversation with a script."""
    started: list[RunnerClient] = []

    def begin(play: Callable[[Script], None], ending: Exit | None = None, **more: Any) -> RunnerClient:
        defences: Defences = more.get("defences", ALL_ON)
        limits: Limits = more.get("limits", LIMITS)
        conversation = RunnerClient(ScriptedRunner(play, ending), limits, Budget(more.get("total_s", 60.0)), defences)
        started.append(conversation)
        return conversation

    yield begin
    for conversation in started:
        conversation.close()


def opened(conversation: RunnerClient, source: str = "") -> Failure | None:
    conversation.hello()
    return conversation.load(load_of(DOUBLE, Language.triton, source, "double.py"))


def called(conversation: RunnerClient) -> CallReply | Failure:
    buffers = Buffers(DOUBLE, ALL_ON)
    tensors = buffers.make(CASE, {"a": torch.ones(2, 3)})
    try:
        return conversation.call(tensors, {"m": 2, "n": 3, "a_row": 3})
    finally:
        buffers.release(tensors)


def answering(answer: Callable[[Script, int], None]) -> Callable[[Script], None]:
    """A script that loads, and answers its first call."""

    def play(script: Script) -> None:
        script.start()
        answer(script, script.hear()["nonce"])
        script.hear()

    return play


def returned(nonce: int, **more: Any) -> dict[str, Any]:
    return {"is": "Returned", "nonce": nonce, **more}


def honest(script: Script, nonce: int) -> None:
    script.finish(nonce)
    script.say(returned(nonce, launches=[{"kernel": "k", "grid": [4], "calls": 1}], operations={"aten.add": 2}))
    script.say({"is": "Released", "nonce": nonce})


def test_an_honest_call_ends_with_snapshots_and_claims(talk: Talk) -> None:
    conversation = talk(answering(honest))
    assert opened(conversation) is None
    found = called(conversation)
    assert isinstance(found, CallReply)
    assert [snapshot.source.spec.name for snapshot in found.snapshots] == ["a", "out", "negative"]
    assert found.event_us == 5.0
    assert found.operations == {"aten.add": 2}
    assert found.sealed_us > 0
    assert conversation.versions == {"triton": "3"}


def test_a_runner_is_frozen_before_a_call_and_after_it(talk: Talk) -> None:
    conversation = talk(answering(honest))
    opened(conversation)
    runner: Any = conversation._runner
    before = runner.frozen
    called(conversation)
    assert runner.frozen == before


FORGERIES: dict[str, Callable[[Script, int], None]] = {
    "word without its nonce": lambda script, nonce: (script.finish(nonce ^ 1), script.say(returned(nonce))),
    "no word at all": lambda script, nonce: script.say(returned(nonce)),
    "another nonce": lambda script, nonce: (script.finish(nonce), script.say(returned(nonce ^ 1))),
    "an error of another call": lambda script, nonce: script.say(
        {"is": "Raised", "nonce": nonce ^ 1, "stage": "call", "kind": "E", "message": ""}
    ),
    "ready once more": lambda script, _: script.say(READY),
    "loaded once more": lambda script, _: script.say(LOADED),
    "the judge's own words": lambda script, _: script.say({"is": "Call", "nonce": 1, "tensors": [], "scalars": {}}),
    "no JSON": lambda script, _: script.say(b"\xff\x00"),
    "no object": lambda script, _: script.say(b"[1]"),
    "too long": lambda script, _: script.say(b" " * (MAX_PACKET + 5)),
    "too deep": lambda script, _: script.say(b"[" * 60_000),
    "an unknown field": lambda script, nonce: (script.finish(nonce), script.say(returned(nonce, verdict="passed"))),
    "a number as text": lambda script, nonce: (script.finish(nonce), script.say(returned(nonce, written="a"))),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_a_packet_that_does_not_belong_is_a_rule_violation(talk: Talk, name: str) -> None:
    conversation = talk(answering(FORGERIES[name]))
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert (found.verdict, found.ended) == (Verdict.rule_violation, True)


@pytest.mark.parametrize("name", FORGERIES)
def test_without_that_defence_what_does_not_belong_is_passed_over(talk: Talk, name: str) -> None:
    def both(script: Script, nonce: int) -> None:
        FORGERIES[name](script, nonce)
        honest(script, nonce)

    conversation = talk(answering(both), defences=dataclasses.replace(ALL_ON, packets=False))
    opened(conversation)
    assert isinstance(called(conversation), CallReply)


def test_a_word_that_runs_ahead_ends_a_call_only_where_nonces_can_be_guessed(talk: Talk) -> None:
    def ahead(script: Script, nonce: int) -> None:
        script.finish(nonce + 1)
        script.say(returned(nonce))
        script.say({"is": "Released", "nonce": nonce})

    for guessable, kind in ((False, Failure), (True, CallReply)):
        conversation = talk(answering(ahead), defences=dataclasses.replace(ALL_ON, nonce=not guessable))
        opened(conversation)
        assert isinstance(called(conversation), kind)


def test_nonces_are_drawn_and_never_repeat(talk: Talk) -> None:
    heard: list[int] = []

    def play(script: Script) -> None:
        script.start()
        while True:
            heard.append(script.hear()["nonce"])
            honest(script, heard[-1])

    conversation = talk(play)
    opened(conversation)
    for _ in range(5):
        assert isinstance(called(conversation), CallReply)
    assert len(set(heard)) == 5
    assert min(heard) > 2**32


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (Exit(code=0), Verdict.runtime_error),
        (Exit(signal=signal.SIGSEGV), Verdict.illegal_access),
        (Exit(signal=signal.SIGKILL, out_of_memory=True), Verdict.out_of_memory),
        (None, Verdict.rule_violation),
    ],
)
def test_a_closed_channel_is_judged_by_the_way_the_runner_ended(
    talk: Talk, ending: Exit | None, verdict: Verdict
) -> None:
    def leave(script: Script) -> None:
        script.start()
        script.hear()

    conversation = talk(leave, ending)
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert (found.verdict, found.ended) == (verdict, True)


def test_a_call_without_an_answer_reaches_its_limit(talk: Talk) -> None:
    limits = dataclasses.replace(LIMITS, call_s=0.05)
    conversation = talk(answering(lambda *_: None), limits=limits)
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert (found.verdict, found.ended) == (Verdict.time_limit, True)


def test_an_endless_trickle_of_nothing_does_not_move_the_limit(talk: Talk) -> None:
    def trickle(script: Script, nonce: int) -> None:
        while True:
            script.say(returned(nonce ^ 1))

    defences = dataclasses.replace(ALL_ON, packets=False)
    conversation = talk(answering(trickle), limits=dataclasses.replace(LIMITS, call_s=0.1), defences=defences)
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert found.verdict is Verdict.time_limit


def test_a_budget_that_is_spent_ends_the_next_call(talk: Talk) -> None:
    conversation = talk(answering(lambda *_: None), total_s=0.05)
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert "All calls together took more than 0.05 s" in found.message


def test_an_exception_leaves_the_runner_alive(talk: Talk) -> None:
    said = {"is": "Raised", "stage": "call", "kind": "ValueError", "message": "no", "frames": []}
    conversation = talk(answering(lambda script, nonce: script.say(said | {"nonce": nonce})))
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert (found.verdict, found.ended) == (Verdict.runtime_error, False)


@pytest.mark.parametrize(("stage", "kind"), [("load", "ValueError"), ("entry", ""), ("", "\n"), ("call", "")])
def test_a_runner_does_not_choose_its_verdict_by_what_it_says_of_a_call(talk: Talk, stage: str, kind: str) -> None:
    said = {"is": "Raised", "stage": stage, "kind": kind, "message": "", "frames": []}
    conversation = talk(answering(lambda script, nonce: script.say(said | {"nonce": nonce})))
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, Failure)
    assert (found.verdict, found.ended) == (Verdict.runtime_error, False)
    assert "load" not in found.message
    assert found.message.strip(" .:")


def test_what_goes_wrong_while_a_file_loads_is_an_error_of_loading_whatever_it_says(talk: Talk) -> None:
    said = {"is": "Raised", "nonce": 0, "stage": "call", "kind": "ValueError", "message": "no", "frames": []}
    found = opened(talk(lambda script: (script.say(READY), script.hear(), script.say(said))))
    assert isinstance(found, Failure)
    assert (found.verdict, found.ended) == (Verdict.compile_error, True)


def test_a_runner_that_is_not_ready_is_our_problem(talk: Talk) -> None:
    with pytest.raises(SandboxError, match="did not start"):
        talk(lambda script: script.say(LOADED)).hello()


def test_a_long_source_comes_as_a_descriptor(talk: Talk) -> None:
    scripts: list[Script] = []

    def play(script: Script) -> None:
        scripts.append(script)
        script.start()

    assert opened(talk(play), "é" * MAX_PACKET) is None
    load = scripts[0].heard[0]
    assert (load["source"], load["source_bytes"]) == ("", 2 * MAX_PACKET)


@pytest.mark.parametrize("letter", ["\U0001f600", "\x01", "é", '"', "x"])
@pytest.mark.parametrize("count", [MAX_PACKET // 16, MAX_PACKET // 16 + 1])
def test_a_source_of_any_letters_reaches_the_runner(talk: Talk, letter: str, count: int) -> None:
    assert opened(talk(lambda script: script.start()), letter * count) is None


def test_whatever_a_runner_claims_the_result_can_travel(talk: Talk) -> None:
    def boast(script: Script, nonce: int) -> None:
        script.finish(nonce)
        kernels = [{"kernel": "\ud800\x1b" * 300, "grid": [1, 2, 3, 4, 5], "calls": 1}] * 9
        script.say(returned(nonce, launches=kernels, operations={f"\ud800{number}": 1 for number in range(99)}))
        script.say({"is": "Released", "nonce": nonce})

    conversation = talk(answering(boast))
    opened(conversation)
    found = called(conversation)
    assert isinstance(found, CallReply)
    assert len(found.operations) <= 64
    assert all(len(launch.grid) == 3 for launch in found.launches)
    codec.dumps(
        GradeResult(Verdict.passed, "", (), launches=found.launches, environment=dict.fromkeys(found.operations, ""))
    )


def batched(conversation: RunnerClient, calls: int = 3, *, cold: bool = True) -> BatchReply | Failure:
    key = draw_key(HOST.where)
    inputs = [DrawnInputs(DOUBLE, CASE, lambda: {"a": torch.ones(2, 3)}, key) for _ in range(calls)]
    memory = BatchMemory(DOUBLE, CASE, HOST, inputs, ALL_ON)
    try:
        return conversation.batch(memory, {"m": 2, "n": 3, "a_row": 3}, cold=cold)
    finally:
        memory.close()


def in_batch(armed: Callable[[Script, int], None], revealed: Callable[[Script, int], None]) -> Callable[[Script], None]:
    """A script that loads, and answers `Arm`, then `Reveal`."""

    def play(script: Script) -> None:
        script.start()
        armed(script, script.hear()["nonce"])
        revealed(script, script.hear()["nonce"])
        script.hear()

    return play


def says(kind: str, change: int = 0) -> Callable[[Script, int], None]:
    return lambda script, nonce: script.say({"is": kind, "nonce": nonce ^ change})


def done(script: Script, nonce: int) -> None:
    script.finish(nonce)
    script.say(returned(nonce))
    script.say({"is": "Released", "nonce": nonce})


def test_a_batch_is_armed_with_outputs_and_revealed_with_inputs(talk: Talk) -> None:
    conversation = talk(in_batch(says("Armed"), done))
    opened(conversation)
    found = batched(conversation)
    assert isinstance(found, BatchReply), found
    assert [[one.source.spec.name for one in call] for call in found.snapshots] == [["out", "negative"]] * 3
    assert found.event_us == 5.0
    assert all(bool(one.untouched().all()) for call in found.snapshots for one in call)
    runner: Any = conversation._runner
    _, arm, reveal = runner.script.heard[:3]
    assert (arm["is"], arm["calls"], reveal["is"], reveal["nonce"]) == ("Arm", 3, "Reveal", arm["nonce"])
    assert len({one["bytes"] for one in arm["tensors"] if one["writable"]}) == 1


@pytest.mark.parametrize("cold", [True, False])
def test_what_copying_a_timed_batchs_outputs_takes_is_found_out_before_anybody_has_their_memory(
    monkeypatch: pytest.MonkeyPatch, talk: Talk, cold: bool
) -> None:
    conversation = talk(in_batch(says("Armed"), done))
    opened(conversation)
    runner: Any = conversation._runner
    take, taken = BatchMemory.copy_outputs, []

    def slow(self: BatchMemory) -> None:
        taken.append([said["is"] for said in runner.script.heard])
        time.sleep(0.02 if len(taken) == 1 else 1.0)
        take(self)

    monkeypatch.setattr(BatchMemory, "copy_outputs", slow)
    found = batched(conversation, cold=cold)
    assert isinstance(found, BatchReply), found
    before = [said for said in taken if "Arm" not in said]
    assert len(before) == (COPIES if cold else 0)
    assert len(taken) - len(before) == 1
    assert (0.02e6 <= found.copy_us < 1e6) if cold else found.copy_us == 0
    assert found.sealed_us > found.copy_us


@pytest.mark.parametrize(
    ("armed", "revealed"),
    [
        (says("Returned"), done),
        (says("Armed", 1), done),
        (says("Released"), done),
        (says("Armed"), says("Returned")),
        (says("Armed"), lambda script, nonce: (script.finish(nonce ^ 1), script.say(returned(nonce)))),
        (says("Armed"), lambda script, nonce: (script.finish(nonce), script.say(returned(nonce ^ 1)))),
        (says("Armed"), says("Released")),
        (says("Armed"), lambda script, _: script.say(b"\xff")),
    ],
    ids=["returned at once", "another nonce armed", "released at once", "no word", "a wrong word", "a wrong nonce",
         "released only", "no JSON"],
)  # fmt: skip
def test_whoever_answers_a_batch_wrongly_breaks_a_rule(
    talk: Talk, armed: Callable[[Script, int], None], revealed: Callable[[Script, int], None]
) -> None:
    conversation = talk(in_batch(armed, revealed))
    opened(conversation)
    found = batched(conversation)
    assert isinstance(found, Failure)
    assert found.verdict is Verdict.rule_violation


def test_a_batch_without_an_end_reaches_its_limit(talk: Talk) -> None:
    conversation = talk(in_batch(says("Armed"), lambda *_: None), limits=Limits(import_s=5.0, call_s=0.2))
    opened(conversation)
    found = batched(conversation)
    assert isinstance(found, Failure)
    assert found.verdict is Verdict.time_limit


def unreleased(script: Script, nonce: int) -> None:
    script.finish(nonce)
    script.say(returned(nonce))


@pytest.mark.parametrize("in_one", [False, True], ids=["a call", "a batch"])
def test_whoever_never_lets_go_of_memory_has_no_further_call(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, in_one: bool
) -> None:
    monkeypatch.setattr(conversations, "_RELEASE_S", 0.1)
    conversation = talk(in_batch(says("Armed"), unreleased) if in_one else answering(unreleased))
    opened(conversation)
    assert isinstance(batched(conversation) if in_one else called(conversation), BatchReply if in_one else CallReply)
    for again in (called(conversation), batched(conversation)):
        assert isinstance(again, Failure)
        assert again.verdict is Verdict.time_limit
        assert again.message.startswith("Letting go of memory")


def test_a_runner_is_awake_while_it_lets_go_and_that_is_no_calls_time(talk: Talk) -> None:
    seen: list[int] = []

    def slow(script: Script, nonce: int) -> None:
        unreleased(script, nonce)
        time.sleep(0.3)
        seen.append(runner.frozen)
        script.say({"is": "Released", "nonce": nonce})

    conversation = talk(answering(slow))
    runner: Any = conversation._runner
    opened(conversation)
    before = runner.frozen
    found = called(conversation)
    assert isinstance(found, CallReply)
    assert found.sealed_us < 0.3e6
    assert (seen, runner.frozen) == ([before - 1], before)


# --- several runners --------------------------------------------------------------------------------------------------


def loading(script: Script) -> None:
    """An honest runner that is called by nobody."""
    script.start()
    script.hear()


class ScriptedSandbox:
    """Starts runners without a process."""

    promises: frozenset[Promise] = frozenset()
    facts: dict[str, str]

    def __init__(self, play: Callable[[Script], None]) -> None:
        self.started: list[ScriptedRunner] = []
        self._play = play

    def start(self, *_: Any, **__: Any) -> ScriptedRunner:
        self.started.append(ScriptedRunner(self._play, None))
        return self.started[-1]

    def prewarm(self, *_: Any, **__: Any) -> None:
        """Nothing waits here."""

    def warm_count(self, *_: Any) -> int:
        """None waits."""
        return 0

    def close(self) -> None:
        """Each runner is its conversation's."""

    def heard(self) -> list[list[str]]:
        """By runner, what it was told."""
        return [[message["is"] for message in runner.script.heard] for runner in self.started]


@pytest.fixture
def scripted() -> Iterator[tuple[Runners, ScriptedSandbox]]:
    sandbox = ScriptedSandbox(loading)
    request = GradeRequest("double", "", Language.triton, Lane.cpu, Mode.submission, "", "double.py")
    runners = Runners(request, DOUBLE, sandbox, ALL_ON, HOST)
    yield runners, sandbox
    runners.close()
    assert [runner.channel.fileno() for runner in sandbox.started] == [-1] * len(sandbox.started)


def test_one_aside_starts_while_others_are_busy_and_loads_when_it_is_wanted(
    scripted: tuple[Runners, ScriptedSandbox],
) -> None:
    runners, sandbox = scripted
    assert isinstance(runners.fresh(), RunnerClient)
    begin = runners.tracing()
    assert isinstance(runners.fresh(), RunnerClient)
    wait_for(lambda: sandbox.heard() == [["Load"], [], ["Load"]] or None)
    assert isinstance(begin(), RunnerClient)
    assert sandbox.heard() == [["Load"], ["Load"], ["Load"]]


def test_one_that_nobody_wants_any_more_is_ended(scripted: tuple[Runners, ScriptedSandbox]) -> None:
    runners, sandbox = scripted
    runners.tracing()
    runners.noop_replay()
    runners.close()
    assert [runner.channel.fileno() for runner in sandbox.started] == [-1, -1]


def test_those_beside_the_present_one_end_with_it(scripted: tuple[Runners, ScriptedSandbox]) -> None:
    runners, sandbox = scripted
    assert isinstance(runners.fresh(others=2), RunnerClient)
    others = [begin() for begin in runners.beside()]
    assert all(isinstance(other, RunnerClient) for other in others)
    assert isinstance(runners.fresh(), RunnerClient)
    assert [runner.channel.fileno() == -1 for runner in sandbox.started] == [True, True, True, False]


def test_time_that_was_lost_to_those_beside_it_is_given_back(scripted: tuple[Runners, ScriptedSandbox]) -> None:
    runners, _ = scripted
    before = runners._budget.left_s
    runners.fresh(others=1)
    runners._budget.spend(1e6)
    runners.alone()
    assert before - 60 < runners._budget.left_s <= before
