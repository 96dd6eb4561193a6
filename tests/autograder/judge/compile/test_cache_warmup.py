"""Kernels compiled before a check calls them: what comes of it, what it may cost, and who must not have it."""

from __future__ import annotations

import dataclasses
import io
import os
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autograder.assignment import Assignment, Case
from autograder.compile_checks.messages import Part, Precompile
from autograder.contract import GradeRequest, Lane, Language, Mode, Visibility, Work
from autograder.errors import SandboxError
from autograder.judge.compile import cache_warmup, cross_compile
from autograder.judge.compile.cache_warmup import CacheWarmup, WarmupJob
from autograder.judge.compile.compile_cache import CompileCache
from autograder.judge.compile.compiler_client import LIMITS
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol import memfd
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.runner_client import RunnerClient
from autograder.judge.runners import Runners
from autograder.protocol import Load
from autograder.runner import compile_cache
from autograder.sandbox import Purpose, Spent
from autograder.sandbox.process import ProcessSandbox
from tests.autograder.compile_checks.test_checks import ADD, ENTRY, HEAD, LAUNCH, VECTOR_ADD
from tests.autograder.judge.protocol.test_runner_client import DOUBLE, ScriptedSandbox, loading
from tests.autograder.runner_talk import wait_for

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
    begun = WarmupJob(VECTOR_ADD, asked(source), sandbox, cases, packs)
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
    with zipfile.ZipFile(io.BytesIO(os.pread(descriptor, length, 8))) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


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


def test_what_a_pack_has_is_not_compiled_again_and_not_packed_again(sandbox: ProcessSandbox, tmp_path: Path) -> None:
    source = HEAD + ADD + ENTRY + LAUNCH
    first, all_of_them = packed(sandbox, source, MANY[:1]), packed(sandbox, source)
    assert first is not None
    assert all_of_them is not None
    for path, data in first.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    room = memfd.of_fixed_size("pack", 1 << 24)
    compile_cache.pack(tmp_path, room)
    others = packed(sandbox, source, MANY, [room])
    assert others is not None
    assert others.keys() == all_of_them.keys() - first.keys()
    assert len(kernels(others)) == len(kernels(all_of_them)) - 1


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
    monkeypatch.setattr(cache_warmup, "BUDGET_S", 2.0)
    started = time.monotonic()
    assert packed(sandbox, top + HEAD + ADD + ENTRY + LAUNCH, MANY[:2]) == {}
    assert time.monotonic() - started < 2.0 + cache_warmup._PACKING_S


@pytest.mark.full("slow")
def test_one_that_does_not_end_leaves_what_the_others_have(
    sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_warmup, "BUDGET_S", 8.0)
    slow = "    while n == {}:\n        pass\n".format(MANY[1].size["n"])
    assert kernels(packed(sandbox, HEAD + ADD + ENTRY + slow + LAUNCH, [MANY[0], MANY[1]])) == ["add.cubin"]


def test_a_byte_order_mark_is_no_part_of_the_source(sandbox: ProcessSandbox) -> None:
    assert kernels(packed(sandbox, "\ufeff" + HEAD + ADD + ENTRY + LAUNCH, MANY[:1])) == ["add.cubin"]


# --- submissions that resist ------------------------------------------------------------------------------------------

SAYS = """
import gc, sys
gc.unfreeze()
from autograder.runner.wire import Wire
[line] = [one for one in gc.get_objects() if isinstance(one, Wire)]
channel = line._channel
print("resists", flush=True)
"""


class Noting:
    """A sandbox whose runners are looked at when they have ended."""

    def __init__(self, sandbox: ProcessSandbox) -> None:
        self._sandbox = sandbox
        self.runners: list[Any] = []

    def start(self, *given: Any, **more: Any) -> Any:
        self.runners.append(self._sandbox.start(*given, **more))
        return self.runners[-1]

    @property
    def log(self) -> str:
        return "".join(runner.log() for runner in self.runners)


@pytest.mark.parametrize(
    "resists",
    [
        "os.kill(os.getppid(), 9)\n",
        "channel.send(b'garbage')\n",
        "line.send('Compiled', {'target': 'sm_90a', 'kernels': []})\n",
        "channel.send(b'x' * 100_000)\n",
    ],
)
def test_whoever_speaks_for_it_has_no_pack(sandbox: ProcessSandbox, resists: str) -> None:
    """And nothing worse: the check goes on, and compiles where it calls."""
    noting: Any = Noting(sandbox)
    assert packed(noting, HEAD + SAYS + resists + ADD + ENTRY + LAUNCH, MANY[:1]) is None
    assert "resists" in noting.log


def test_whoever_says_that_it_is_over_has_what_was_packed_by_then(sandbox: ProcessSandbox) -> None:
    """An empty pack, or one of its own making, which goes to nobody but its own runners."""
    noting: Any = Noting(sandbox)
    source = HEAD + SAYS + "line.send('Precompiled', {})\nimport time\ntime.sleep(60)\n"
    started = time.monotonic()
    assert packed(noting, source, MANY[:1]) == {}
    assert time.monotonic() - started < cache_warmup.BUDGET_S
    assert "resists" in noting.log


@pytest.mark.full("slow")
@pytest.mark.parametrize("says", ["channel.send(b'')", "channel.shutdown(1)"])
def test_whoever_hangs_up_and_stays_does_not_keep_the_judge_busy(
    sandbox: ProcessSandbox, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for a runner to begin on a busy machine.
    monkeypatch.setattr(cache_warmup, "BUDGET_S", 8.0)
    noting: Any = Noting(sandbox)
    # The process that would say that it is over is stopped.
    stays = f"import time\nos.kill(os.getppid(), 19)\nwhile True:\n    {says}\n    time.sleep(0.001)\n"
    before = time.process_time()
    assert packed(noting, HEAD + SAYS + stays, MANY[:1]) in (None, {})
    assert time.process_time() - before < 1.5
    assert "resists" in noting.log


def test_what_a_daemon_holds_ends_with_the_time(sandbox: ProcessSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for it, and its runner is gone all the same."""
    monkeypatch.setattr(cache_warmup, "BUDGET_S", 2.0)
    noting: Any = Noting(sandbox)
    daemon = "import time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n    os._exit(0)\n"
    begun = WarmupJob(VECTOR_ADD, asked(HEAD + daemon + ADD + ENTRY + LAUNCH), noting, MANY[:1])
    begun._thread.join(20)
    assert not begun._thread.is_alive()
    [runner] = noting.runners
    assert runner.poll() is not None
    begun.close()


def test_whoever_ends_it_does_not_wait(sandbox: ProcessSandbox) -> None:
    source = "import time\ntime.sleep(60)\n"
    begun = WarmupJob(VECTOR_ADD, asked(source), sandbox, MANY[:1])
    threading.Timer(0.5, begun.close).start()
    started = time.monotonic()
    assert begun.pack() is None
    assert time.monotonic() - started < 5
    begun.close()
    assert begun.pack() is None


class Undying:
    """A runner that has nothing to say and cannot be ended."""

    def __init__(self) -> None:
        self.channel, self._far = socket.socketpair()

    def thaw(self) -> None:
        """It was never stopped."""

    def poll(self) -> None:
        """It lives."""

    def spent(self) -> Spent:
        """Nothing."""
        return Spent(0.0, 0.0)

    def close(self) -> None:
        self.channel.close()
        self._far.close()
        raise SandboxError("it cannot be killed")


def test_a_runner_that_cannot_be_ended_is_told_of_to_whoever_asks() -> None:
    class Giving:
        def start(self, *_: object, **__: object) -> Undying:
            return Undying()

    begun = WarmupJob(VECTOR_ADD, asked(""), Giving(), MANY[:1])  # type: ignore[arg-type]
    begun.close()
    with pytest.raises(SandboxError, match="cannot be killed"):
        begun.stop()


@pytest.mark.parametrize("work", [Work.check, Work.measure])
def test_what_launches_a_timed_kernel_is_optimised(work: Work) -> None:
    begun = WarmupJob.__new__(WarmupJob)
    begun._request, begun._assignment = dataclasses.replace(asked(""), work=work), VECTOR_ADD
    assert begun._question(tuple(MANY[:1])).is_timed == (work is Work.measure)


def test_none_that_starts_is_no_pack() -> None:
    class Broken:
        def start(self, *_: object, **__: object) -> None:
            raise SandboxError("no container")

    given = memfd.of_fixed_size("pack", 4096)
    begun = WarmupJob(VECTOR_ADD, asked(""), Broken(), MANY[:1], [given])  # type: ignore[arg-type]
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

    def warm_count(self, limits: Any, *_: Any, purpose: Purpose = Purpose.call) -> int:
        assert (limits == LIMITS) == (purpose is Purpose.compile)
        return self.waiting[purpose]

    @contextmanager
    def pause_background_work(self) -> Iterator[None]:
        self.is_quiet += 1
        try:
            yield
        finally:
            self.is_quiet -= 1


class Scripted:
    """Stands in for `WarmupJob`: has the pack of its cases, when it may."""

    made: list[Scripted]

    def __init__(
        self, _a: Assignment, _r: GradeRequest, _s: Any, cases: Sequence[Case], packs: Sequence[int] = ()
    ) -> None:
        self.cases = cases
        self.packs = [text(one) for one in packs]
        for one in packs:
            os.close(one)
        self.may, self.waits, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.failed = self.stays = False
        self._taken = False
        self.made.append(self)

    def pack(self) -> int | None:
        self.waits.set()
        assert self.may.wait(10)
        if self.ended.is_set() or self.failed or self._taken:
            return None
        self._taken = True
        descriptor = memfd.of_fixed_size("pack", 4096)
        os.pwrite(descriptor, self.cases[0].name.encode(), 0)
        return descriptor

    def close(self) -> None:
        self.ended.set()
        self.may.set()

    def stop(self) -> None:
        assert self.ended.is_set()
        if self.stays:
            raise SandboxError("it cannot be killed")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Scripted]:
    Scripted.made = []
    monkeypatch.setattr(cache_warmup, "WarmupJob", Scripted)
    return Scripted.made


PUBLIC, HIDDEN = ([dataclasses.replace(MANY[0], name=name)] for name in ("public", "hidden"))


def text(descriptor: int) -> bytes:
    return os.pread(descriptor, 8, 0).rstrip(b"\0")


def said(packs: CompileCache) -> list[bytes]:
    own = packs.sealed()
    found = [text(one) for one in own]
    for one in own:
        os.close(one)
    return found


def ahead(sandbox: Waiting, request: GradeRequest | None = None) -> CacheWarmup:
    made = CacheWarmup(VECTOR_ADD, request or asked(""), sandbox)  # type: ignore[arg-type]
    made.begin(Visibility.public, PUBLIC)
    return made


def test_containers_are_made_again_when_nobody_waits_for_a_compiler(made: list[Scripted]) -> None:
    sandbox = Waiting(3)
    compiling, public, hidden = ahead(sandbox), CompileCache(), CompileCache()
    made[0].may.set()
    compiling.wait(Visibility.public, public)
    compiling.begin(Visibility.hidden, HIDDEN)
    made[1].may.set()
    assert sandbox.is_quiet
    compiling.wait(Visibility.hidden, hidden)
    compiling.resume_background_work()
    assert (said(public), said(hidden), sandbox.is_quiet) == ([b"public"], [b"hidden"], 0)
    compiling.close()
    assert all(one.ended.is_set() for one in made)
    public.close()
    hidden.close()


def test_a_slow_submission_does_not_keep_the_node_from_getting_ready(
    made: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_warmup, "_MAX_PAUSE_S", 0.05)
    sandbox = Waiting(3)
    compiling = ahead(sandbox)
    assert made[0].cases == PUBLIC
    wait_for(lambda: not sandbox.is_quiet or None)
    compiling.close()


def test_who_comes_second_has_it_there_and_asks_nobody(made: list[Scripted]) -> None:
    compiling, public = ahead(Waiting(3)), CompileCache()
    threads = [threading.Thread(target=compiling.wait, args=(Visibility.public, public)) for _ in range(4)]
    for thread in threads:
        thread.start()
    made[0].may.set()
    for thread in threads:
        thread.join()
    assert said(public) == [b"public"]
    compiling.close()
    public.close()


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
    sandbox, public = Waiting(compilers), CompileCache()
    compiling = ahead(sandbox, request_)
    compiling.wait(Visibility.public, public)
    assert not any((compiling.is_active, made, said(public), sandbox.is_quiet))
    compiling.close()


def test_where_few_wait_whoever_makes_more_is_not_held_up(made: list[Scripted]) -> None:
    sandbox = Waiting(3, callers=2)
    compiling = ahead(sandbox)
    assert compiling.is_active
    assert not sandbox.is_quiet
    compiling.close()
    assert made[0].ended.is_set()


def test_what_came_to_nothing_is_not_counted_on(made: list[Scripted]) -> None:
    """Then cases are dealt to as many runners as without it."""
    compiling = ahead(Waiting(3))
    assert compiling.is_active
    made[0].failed = True
    assert not compiling.is_active
    compiling.close()


def test_whoever_closes_it_ends_the_wait_and_has_nothing_to_close_after_that(made: list[Scripted]) -> None:
    sandbox, public = Waiting(3), CompileCache()
    compiling = ahead(sandbox)
    waiter = threading.Thread(target=compiling.wait, args=(Visibility.public, public))
    waiter.start()
    assert made[0].waits.wait(10)
    compiling.close()
    waiter.join(5)
    assert not waiter.is_alive()
    assert (said(public), sandbox.is_quiet, compiling.is_active) == ([], 0, False)


class Given:
    """Runners of a submission, and what each of them was given when it was loaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: Work = Work.check, compilers: int = 3) -> None:
        self.packs: list[list[bytes]] = []
        request = dataclasses.replace(asked(""), slug="double", filename="double.py", work=work)
        self.runners = Runners(request, DOUBLE, Waiting(compilers), ALL_ON, HOST)  # type: ignore[arg-type]

        def load(_talk: RunnerClient, _load: Load, packs: Sequence[int] = ()) -> None:
            self.packs.append(sorted(map(text, packs)))
            for one in packs:
                os.close(one)

        monkeypatch.setattr(RunnerClient, "load", load)


def test_hidden_sizes_are_told_when_nothing_is_told_to_the_student_any_more(
    made: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that knows them could be felt by others: memory of the machine says so in /proc."""
    given = Given(monkeypatch)
    given.runners.precompile(Visibility.public, PUBLIC)
    begun: list[Callable[[], object]] = []

    def meanwhile() -> None:
        given.runners.start_next(1)
        begun.extend([given.runners.noop_replay(), given.runners.tracing()])
        made[0].may.set()

    given.runners.fresh(others=1, meanwhile=meanwhile)
    begun[0]()
    given.runners.export_caches()
    assert len(made) == 1
    given.runners.precompile(Visibility.hidden, HIDDEN)
    assert [(one.cases, one.packs) for one in made[1:]] == [(HIDDEN, [b"public"])]
    made[1].may.set()
    given.runners.another(Visibility.hidden)
    begun[1]()
    # The first, the replay, a hidden one, and the tracer, which was late.
    assert given.packs == [[b"public"], [b"public"], [b"hidden", b"public"], [b"public"]]
    given.runners.close()


def test_a_measurement_is_compiled_ahead_by_the_last_one_that_waits_and_hands_nothing_on(
    made: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No compile checks follow, for which one is left in a check."""
    given = Given(monkeypatch, Work.measure, compilers=1)
    given.runners.precompile(Visibility.public, PUBLIC)
    given.runners.fresh(meanwhile=made[0].may.set)
    given.runners.end_precompiling()
    given.runners.export_caches()
    assert (given.packs, made[0].ended.is_set(), given.runners.precompiles) == ([[b"public"]], True, False)
    given.runners.close()


def test_who_cannot_be_ended_is_nobody_beside_whom_something_is_timed(
    made: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Given(monkeypatch, Work.measure)
    given.runners.precompile(Visibility.public, PUBLIC)
    made[0].stays = True
    made[0].may.set()
    given.runners.fresh()
    with pytest.raises(SandboxError, match="cannot be killed"):
        given.runners.end_precompiling()
    given.runners.close()


def test_hidden_cases_are_not_compiled_ahead_where_public_ones_could_not_be(
    made: list[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Given(monkeypatch)
    given.runners.precompile(Visibility.public, PUBLIC)
    made[0].failed = True
    made[0].may.set()
    given.runners.fresh()
    given.runners.precompile(Visibility.hidden, HIDDEN)
    given.runners.another(Visibility.hidden)
    assert (len(made), given.packs) == (1, [[], []])
    given.runners.close()


def test_a_question_travels_as_it_was_asked() -> None:
    """What the judge says is what the runner's side understands, layouts and all."""
    from autograder import codec  # noqa: PLC0415

    dry = tuple(cross_compile.dry_case(case, VECTOR_ADD) for case in MANY)
    ask = Precompile(3, "mine.py", "vector_add", ("x",), Part("sm_90a", dry), 1.0)
    assert codec.loads(Precompile, codec.dumps(ask)) == ask
