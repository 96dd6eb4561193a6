"""Kernels compiled before a check calls them: what comes of it, what it may cost, and who must not have it."""

from __future__ import annotations

import dataclasses
import io
import os
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_compile_checks import ADD, ENTRY, HEAD, LAUNCH, VECTOR_ADD
from test_judge_conversation import DOUBLE, ScriptedSandbox, loading

from autograder.assignment import Assignment, Case
from autograder.compile_checks.messages import Part, Precompile
from autograder.contract import GradeRequest, Lane, Language, Mode, Visibility, Work
from autograder.errors import SandboxError
from autograder.judge import compiled, memory, precompiling
from autograder.judge.compilers import LIMITS
from autograder.judge.defences import ALL_ON
from autograder.judge.host import HOST
from autograder.judge.packs import Packs
from autograder.judge.precompiling import Ahead, Precompiling
from autograder.judge.runners import Runners
from autograder.runner import pack
from autograder.sandbox import Purpose, Side
from autograder.sandbox.process import ProcessSandbox

MANY = VECTOR_ADD.cases_for(Lane.h200)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


def asked(source: str) -> GradeRequest:
    return GradeRequest("vector_add", "", Language.triton, Lane.h200, Mode.submission, source, "mine.py", Work.check)


def packed(
    sandbox: ProcessSandbox, source: str, cases: Sequence[Case] = MANY, packs: Sequence[int] = ()
) -> dict[str, bytes] | None:
    """Files of the pack by path; nothing if there is no pack."""
    begun = Precompiling(VECTOR_ADD, asked(source), sandbox, cases, side=Side.untimed, packs=packs)
    try:
        descriptor = begun.pack()
    finally:
        begun.close()
    if descriptor is None:
        return None
    try:
        return files_of(descriptor)
    finally:
        os.close(descriptor)


def files_of(descriptor: int) -> dict[str, bytes]:
    length = int.from_bytes(os.pread(descriptor, 8, 0), "little")
    if not length:
        return {}
    with tarfile.open(fileobj=io.BytesIO(os.pread(descriptor, length, 8))) as tar:
        return {member.name: made.read() for member in tar if (made := tar.extractfile(member)) is not None}


def kernels(files: dict[str, bytes] | None) -> list[str]:
    assert files is not None
    return sorted(name.rpartition("/")[2] for name in files if name.endswith(".cubin"))


# --- what comes of it -------------------------------------------------------------------------------------------------


def test_every_kernel_of_all_cases_is_there_once(sandbox: ProcessSandbox) -> None:
    """Cases are called in processes of their own, and several launch the same kernel."""
    assert len(MANY) > 4
    files = packed(sandbox, HEAD + ADD + ENTRY + LAUNCH)
    assert files is not None
    # By type of element, and by whether sizes and pointers are multiples of 16.
    assert 2 <= len(kernels(files)) < len(MANY)
    assert set(kernels(files)) == {"add.cubin"}


def test_a_cache_is_of_use_at_the_path_at_which_it_was_made(sandbox: ProcessSandbox) -> None:
    """Triton keeps whole paths: those of a runner that makes calls, whose cache is where triton has it by itself."""
    files = packed(sandbox, HEAD + ADD + ENTRY + LAUNCH, MANY[:1])
    assert files is not None
    groups = [data.decode() for name, data in files.items() if "__grp__" in name]
    assert groups
    assert all("/.triton/cache/" in group for group in groups)


def test_what_a_pack_has_is_not_compiled_again(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    source = HEAD + ADD + ENTRY + LAUNCH
    first = packed(sandbox, source, MANY[:1])
    assert first is not None
    name = next(name for name in first if name.endswith(".cubin"))
    for path, data in first.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(b"as it was" if path == name else data)
    room = memory.of_fixed_size("pack", 1 << 24)
    pack.pack(tmp_path, room)
    again = packed(sandbox, source, MANY[:1], [room])
    assert again is not None
    assert again[name] == b"as it was"


def test_what_an_autotuner_chose_without_a_device_is_not_kept(sandbox: ProcessSandbox) -> None:
    tuned = ADD.replace(
        "@triton.jit",
        "SIZES = [triton.Config({'BLOCK': 256}), triton.Config({'BLOCK': 512})]\n"
        "@triton.autotune(SIZES, key=['n'], cache_results=True)\n@triton.jit",
    )
    files = packed(sandbox, HEAD + tuned + ENTRY + LAUNCH.replace(", BLOCK=1024", ""), MANY[:1])
    assert kernels(files) == ["add.cubin"] * 2
    assert not [name for name in files or {} if "autotune" in name]


@pytest.mark.parametrize(
    "entry",
    [
        "    if x.sum().item() > 0:\n        return\n" + LAUNCH,
        "    raise ValueError('no')\n",
        "    os._exit(1)\n",
        "    os.kill(os.getpid(), 9)\n",
    ],
)
def test_a_call_that_cannot_be_followed_is_nothing_that_is_said(sandbox: ProcessSandbox, entry: str) -> None:
    """It will go wrong on the device, or it will not: there it is called as it was written."""
    assert packed(sandbox, HEAD + ADD + ENTRY + entry, MANY[:2]) == {}


@pytest.mark.parametrize("top", ["raise ValueError('no')\n", "import time\ntime.sleep(60)\n"])
def test_a_file_that_does_not_load_holds_nobody_up(
    sandbox: ProcessSandbox, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompiling, "BUDGET_S", 2.0)
    started = time.monotonic()
    assert packed(sandbox, top + HEAD + ADD + ENTRY + LAUNCH, MANY[:2]) == {}
    assert time.monotonic() - started < 2.0 + precompiling._PACKING_S


def test_one_that_does_not_end_leaves_what_the_others_have(
    sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precompiling, "BUDGET_S", 8.0)
    slow = "    while n == {}:\n        pass\n".format(MANY[1].size["n"])
    assert kernels(packed(sandbox, HEAD + ADD + ENTRY + slow + LAUNCH, [MANY[0], MANY[1]])) == ["add.cubin"]


def test_a_byte_order_mark_is_no_part_of_the_source(sandbox: ProcessSandbox) -> None:
    assert kernels(packed(sandbox, "\ufeff" + HEAD + ADD + ENTRY + LAUNCH, MANY[:1])) == ["add.cubin"]


# --- submissions that resist ------------------------------------------------------------------------------------------

SAYS = """
import gc
from autograder.runner.wire import Wire
lines = [one for one in gc.get_objects() if isinstance(one, Wire)]
"""


@pytest.mark.parametrize(
    "resists",
    [
        "os.kill(os.getppid(), 9)\n",
        SAYS + "lines[0]._channel.send(b'garbage')\n",
        SAYS + "lines[0].send('Compiled', {'target': 'sm_90a', 'kernels': []})\n",
        SAYS + "while True: lines[0]._channel.send(b'x' * 1000)\n",
    ],
)
def test_whoever_speaks_for_it_has_no_pack(
    sandbox: ProcessSandbox, resists: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing worse: the check goes on, and compiles where it calls."""
    monkeypatch.setattr(precompiling, "BUDGET_S", 6.0)
    source = HEAD + resists + ADD + ENTRY + LAUNCH
    assert packed(sandbox, source, MANY[:1]) in (None, {})


def test_whoever_says_that_it_is_over_has_what_was_packed_by_then(sandbox: ProcessSandbox) -> None:
    """An empty pack, or one of its own making, which goes to nobody but its own runners."""
    source = HEAD + SAYS + "lines[0].send('Precompiled', {})\nimport time\ntime.sleep(60)\n"
    started = time.monotonic()
    assert packed(sandbox, source, MANY[:1]) == {}
    assert time.monotonic() - started < precompiling.BUDGET_S


def test_whoever_ends_it_does_not_wait(sandbox: ProcessSandbox) -> None:
    source = "import time\ntime.sleep(60)\n"
    begun = Precompiling(VECTOR_ADD, asked(source), sandbox, MANY[:1], side=Side.untimed)
    threading.Timer(0.5, begun.close).start()
    started = time.monotonic()
    assert begun.pack() is None
    assert time.monotonic() - started < 5
    begun.close()
    assert begun.pack() is None


def test_none_that_starts_is_no_pack() -> None:
    class Broken:
        def start(self, *_: object, **__: object) -> None:
            raise SandboxError("no container")

    given = memory.of_fixed_size("pack", 4096)
    begun = Precompiling(VECTOR_ADD, asked(""), Broken(), MANY[:1], side=Side.untimed, packs=[given])  # type: ignore[arg-type]
    assert begun.pack() is None
    begun.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(given)


# --- in a check -------------------------------------------------------------------------------------------------------


class Waiting(ScriptedSandbox):
    """A sandbox that says how many runners wait, and whether it is to be quiet."""

    def __init__(self, compilers: int, callers: int = 8) -> None:
        super().__init__(loading)
        self.waiting = {Purpose.compile: compilers, Purpose.call: callers}
        self.is_quiet = 0
        self.sides: list[Side] = []

    def start(self, *given: Any, **more: Any) -> Any:
        self.sides.append(more["side"])
        return super().start(*given, **more)

    def ready(self, limits: Any, *_: Any, purpose: Purpose = Purpose.call) -> int:
        assert (limits == LIMITS) == (purpose is Purpose.compile)
        return self.waiting[purpose]

    @contextmanager
    def quiet(self) -> Iterator[None]:
        self.is_quiet += 1
        try:
            yield
        finally:
            self.is_quiet -= 1


class Scripted:
    """Stands in for `Precompiling`: has the pack of its cases, when it may."""

    made: list[Scripted]

    def __init__(
        self, _a: Assignment, _r: GradeRequest, _s: Any, cases: Sequence[Case], *, side: Side, packs: Sequence[int] = ()
    ) -> None:
        self.cases, self.side = cases, side
        self.packs = [os.pread(one, 8, 0).rstrip(b"\0") for one in packs]
        for one in packs:
            os.close(one)
        self.may = threading.Event()
        self.ended = threading.Event()
        self.made.append(self)

    def pack(self) -> int | None:
        self.may.wait(10)
        if self.ended.is_set():
            return None
        descriptor = memory.of_fixed_size("pack", 4096)
        os.pwrite(descriptor, self.cases[0].name.encode()[:8], 0)
        return descriptor

    def close(self) -> None:
        self.ended.set()
        self.may.set()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Scripted]:
    Scripted.made = []
    monkeypatch.setattr(precompiling, "Precompiling", Scripted)
    return Scripted.made


CASES = {
    Visibility.public: [dataclasses.replace(MANY[0], name="public")],
    Visibility.hidden: [dataclasses.replace(MANY[0], name="hidden")],
}


def said(packs: Packs) -> list[bytes]:
    own = packs.sealed()
    found = [os.pread(one, 8, 0).rstrip(b"\0") for one in own]
    for one in own:
        os.close(one)
    return found


def ahead(sandbox: Waiting, request: GradeRequest | None = None) -> Ahead:
    made = Ahead(VECTOR_ADD, request or asked(""), sandbox)  # type: ignore[arg-type]
    made.begin(CASES)
    return made


def test_hidden_cases_come_when_the_public_ones_are_over_on_other_cores_and_with_their_pack(
    made: list[Scripted],
) -> None:
    sandbox = Waiting(3)
    compiling, public, hidden = ahead(sandbox), Packs(), Packs()
    assert [(one.cases, one.side) for one in made] == [(CASES[Visibility.public], Side.untimed)]
    assert sandbox.is_quiet
    made[0].may.set()
    compiling.wait(Visibility.public, public)
    assert [(one.cases, one.side, one.packs) for one in made[1:]] == [
        (CASES[Visibility.hidden], Side.submission, [b"public"])
    ]
    assert sandbox.is_quiet
    made[1].may.set()
    compiling.wait(Visibility.hidden, hidden)
    assert (said(public), said(hidden)) == ([b"public"], [b"hidden"])
    assert not sandbox.is_quiet
    compiling.close()
    assert all(one.ended.is_set() for one in made)


def test_who_comes_second_has_it_there_and_asks_nobody(made: list[Scripted]) -> None:
    compiling, public = ahead(Waiting(3)), Packs()
    made[0].may.set()
    threads = [threading.Thread(target=compiling.wait, args=(Visibility.public, public)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said(public) == [b"public"]
    assert len(made) == 2
    compiling.close()


@pytest.mark.parametrize(
    ("compilers", "request_"),
    [
        (1, asked("")),
        (0, asked("")),
        (3, dataclasses.replace(asked(""), lane=Lane.cpu)),
        (3, dataclasses.replace(asked(""), language=Language.cuda)),
    ],
)
def test_nobody_waits_for_what_cannot_be_or_has_no_runner(
    compilers: int, request_: GradeRequest, made: list[Scripted]
) -> None:
    """One that waits is left to the compile checks."""
    sandbox, public = Waiting(compilers), Packs()
    compiling = ahead(sandbox, request_)
    compiling.wait(Visibility.public, public)
    assert not any((compiling.is_on, made, said(public), sandbox.is_quiet))
    compiling.close()


def test_where_few_wait_whoever_makes_more_is_not_held_up(made: list[Scripted]) -> None:
    sandbox = Waiting(3, callers=2)
    compiling = ahead(sandbox)
    assert compiling.is_on
    assert not sandbox.is_quiet
    compiling.close()
    assert made[0].ended.is_set()


def test_whoever_closes_it_ends_the_wait_and_nothing_begins_after_that(made: list[Scripted]) -> None:
    sandbox, public = Waiting(3), Packs()
    compiling = ahead(sandbox)
    waiter = threading.Thread(target=compiling.wait, args=(Visibility.public, public))
    waiter.start()
    compiling.close()
    waiter.join(5)
    assert not waiter.is_alive()
    assert (len(made), said(public), sandbox.is_quiet) == (1, [], 0)


def test_what_public_runners_are_given_has_nothing_of_hidden_cases(
    made: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They could print it: a pack is made where the hidden sizes are known. Nor do they share those cores."""
    sandbox = Waiting(3)
    request = dataclasses.replace(asked(""), slug="double", filename="double.py")
    runners = Runners(request, DOUBLE, sandbox, ALL_ON, HOST)  # type: ignore[arg-type]
    given: list[list[bytes]] = []
    monkeypatch.setattr(
        "autograder.judge.conversation.Conversation.load",
        lambda _self, _load, packs=(): given.append(sorted(os.pread(one, 8, 0).rstrip(b"\0") for one in packs)),
    )
    runners.precompile(CASES)
    begun: list[Callable[[], object]] = []

    def meanwhile() -> None:
        runners.start_next(1, Visibility.hidden)
        begun.extend([runners.ghost(), runners.tracing()])
        made[0].may.set()

    runners.fresh(others=1, meanwhile=meanwhile)
    made[1].may.set()
    runners.another(Visibility.hidden)
    for begin in begun:
        begin()
    # The first, a hidden one, then the look, which began with the public ones and was late.
    assert given == [[b"public"], [b"hidden", b"public"], [b"public"], [b"public"]]
    assert sandbox.sides == [Side.submission, Side.submission, Side.untimed, Side.submission, Side.submission]
    runners.close()


def test_a_question_travels_as_it_was_asked() -> None:
    """What the judge says is what the runner's side understands, layouts and all."""
    from autograder import codec  # noqa: PLC0415

    dry = tuple(compiled.dry_case(case, VECTOR_ADD) for case in MANY)
    ask = Precompile(3, "mine.py", "vector_add", ("x",), Part("sm_90a", dry), 1.0)
    assert codec.loads(Precompile, codec.dumps(ask)) == ask
