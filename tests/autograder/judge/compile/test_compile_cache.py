"""What compilers made goes from runner to runner of one submission: whole, once, and nobody has to believe it."""

from __future__ import annotations

import fcntl
import io
import json
import mmap
import os
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from autograder.assignment import Limits
from autograder.contract import GradeRequest, Lane, Language, Mode, Verdict, Work
from autograder.judge.compile.compile_cache import CacheStore, CompileCache
from autograder.judge.defences import ALL_ON
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.runner_client import PACK_BYTES, Budget, CallReply, RunnerClient
from autograder.judge.runners import Runners
from autograder.judge.timing.references import Reference, References
from autograder.protocol import MAX_PACKET, WORD_BYTES, Load
from autograder.runner import compile_cache
from autograder.runner.session import Session
from autograder.runner.wire import Wire
from autograder.sandbox import Side
from tests.autograder.judge.protocol.test_runner_client import (
    DOUBLE,
    LIMITS,
    LOADED,
    READY,
    Script,
    ScriptedRunner,
    ScriptedSandbox,
    called,
    honest,
    opened,
)
from tests.autograder.runner_talk import wait_for


def memory(size: int = 1 << 20) -> int:
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    return descriptor


def open_packs() -> int:
    """Descriptors of this process, which is judge and scripted runner."""
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += "memfd:pack" in str(path.readlink())
    return found


def folder_with(folder: Path, **files: str) -> Path:
    (folder / "deep").mkdir(parents=True)
    for name, text in files.items():
        (folder / "deep" / name).write_text(text)
    return folder


# --- the files --------------------------------------------------------------------------------------------------------


def test_files_come_out_as_they_went_in_beside_what_is_there(tmp_path: Path) -> None:
    descriptor = memory()
    compile_cache.pack(folder_with(tmp_path / "one", kernel="cubin"), descriptor)
    there = folder_with(tmp_path / "two", other="ptx")
    compile_cache.unpack(descriptor, there)
    assert {path.name: path.read_text() for path in there.rglob("*") if path.is_file()} == {
        "kernel": "cubin", "other": "ptx",
    }  # fmt: skip


@pytest.mark.parametrize("size", [4096, 1 << 20])
def test_what_does_not_fit_or_is_not_there_is_an_empty_pack(tmp_path: Path, size: int) -> None:
    descriptor = memory(size)
    folder = tmp_path / "nothing" if size > 4096 else folder_with(tmp_path / "large", kernel="x" * 5000)
    compile_cache.pack(folder, descriptor)
    compile_cache.unpack(descriptor, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_nothing_is_unpacked_outside_of_the_folder(tmp_path: Path, name: str) -> None:
    """The submission could write there itself; but whoever unpacks is still ours, and it must not be surprised."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr(name, b"evil")
    descriptor = memory()
    os.pwrite(descriptor, len(made.getvalue()).to_bytes(8, "little") + made.getvalue(), 0)
    compile_cache.unpack(descriptor, tmp_path / "in")
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["outside"]
    assert not (tmp_path / "outside").exists()
    assert not Path("/outside").exists()


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    """Runners of the public cases pack the same kernels: a second pack must not cut short what a first one brought."""
    descriptor = memory()
    compile_cache.pack(folder_with(tmp_path / "one", kernel="another", more="new"), descriptor)
    there = folder_with(tmp_path / "two", kernel="cubin")
    compile_cache.unpack(descriptor, there)
    assert (there / "deep" / "kernel").read_text() == "cubin"
    assert (there / "deep" / "more").read_text() == "new"


# --- the runner -------------------------------------------------------------------------------------------------------


class FakeLoader:
    """Compiles a source into one file, unless it is there."""

    wrappers: tuple[type[BaseException], ...] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiled = 0

    def begin(self) -> None:
        """Nothing to get ready."""

    def versions(self) -> dict[str, str]:
        return {"fake": "1"}

    def made(self) -> Path:
        return self.folder

    def load(self, load: Load) -> Any:
        library = self.folder / "library"
        if not library.exists():
            self.compiled += 1
            self.folder.mkdir(exist_ok=True)
            library.write_text(load.source)

        class Entry:
            signature = library.read_text()

        return {load.entry: Entry()}


class Heard:
    """A session in a thread, and the judge's end of its channel."""

    def __init__(self, loader: FakeLoader) -> None:
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(20)
        self._thread = threading.Thread(target=self._serve, args=(other, loader))
        self._thread.start()
        assert self.receive()["is"] == "Ready"

    @staticmethod
    def _serve(channel: socket.socket, loader: Any) -> None:
        with channel:
            Session(Wire(channel), loader).run()

    def receive(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.channel.recv(MAX_PACKET))
        return said

    def say(self, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        socket.send_fds(self.channel, [json.dumps(message).encode()], descriptors)
        return self.receive()

    def load(self, *packs: int) -> dict[str, Any]:
        message = {
            "is": "Load", "source": "x = 1", "filename": "f.py", "language": "triton", "entry": "run", "arguments": [],
            "packs": len(packs),
        }  # fmt: skip
        return self.say(message, [memory(WORD_BYTES), memory(WORD_BYTES), *packs])

    def close(self) -> None:
        self.channel.close()
        self._thread.join()


@pytest.fixture
def hear() -> Iterator[Callable[[FakeLoader], Heard]]:
    begun: list[Heard] = []

    def begin(loader: FakeLoader) -> Heard:
        begun.append(Heard(loader))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def test_a_runner_packs_what_it_has_compiled_and_another_does_not_compile(
    tmp_path: Path, hear: Callable[[FakeLoader], Heard]
) -> None:
    first, second = FakeLoader(tmp_path / "one"), FakeLoader(tmp_path / "two")
    made, talk = memory(), hear(first)
    assert talk.load() == {"is": "Loaded", "signature": "x = 1"}
    assert talk.say({"is": "Pack"}, [made]) == {"is": "Packed"}
    assert hear(second).load(made) == {"is": "Loaded", "signature": "x = 1"}
    assert (first.compiled, second.compiled) == (1, 0)


def test_a_pack_that_makes_no_sense_is_no_pack(tmp_path: Path, hear: Callable[[FakeLoader], Heard]) -> None:
    garbage, huge = memory(), memory()
    os.pwrite(garbage, (100).to_bytes(8, "little") + b"no tar at all" * 20, 0)
    os.pwrite(huge, b"\xff" * 8, 0)
    loader = FakeLoader(tmp_path / "one")
    assert hear(loader).load(garbage, huge) == {"is": "Loaded", "signature": "x = 1"}
    assert loader.compiled == 1


def test_half_a_pack_is_none(tmp_path: Path, hear: Callable[[FakeLoader], Heard]) -> None:
    """A library that was cut short, by a full folder say, must not be taken for one."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("library", b"y" * 4096)
    whole = made.getvalue()
    cut = memory()
    os.pwrite(cut, len(whole).to_bytes(8, "little") + whole[:1024], 0)
    os.ftruncate(cut, 8 + 1024)
    loader = FakeLoader(tmp_path / "one")
    assert hear(loader).load(cut) == {"is": "Loaded", "signature": "x = 1"}
    assert loader.compiled == 1


# --- the judge --------------------------------------------------------------------------------------------------------


def packing(text: bytes, *, says: str = "Packed") -> Callable[[Script], None]:
    """A runner that loads and then writes into what it is given to pack into."""

    def play(script: Script) -> None:
        script.start()
        while True:
            data, descriptors, _, _ = socket.recv_fds(script.end, MAX_PACKET, 16)
            if not data:
                return
            assert json.loads(data)["is"] == "Pack"
            os.pwrite(descriptors[0], text, 0)
            os.close(descriptors[0])
            if says:
                script.say({"is": says})

    return play


def talking(play: Callable[[Script], None]) -> RunnerClient:
    runner: Any = ScriptedRunner(play, None)
    return RunnerClient(runner, LIMITS, Budget(60.0), ALL_ON)


def test_a_runner_has_so_much_room_and_no_more() -> None:
    conversation = talking(packing(b"cubin"))
    try:
        assert opened(conversation) is None
        descriptor = conversation.export_cache(5.0)
        assert descriptor is not None
        assert os.pread(descriptor, 5, 0) == b"cubin"
        assert os.fstat(descriptor).st_size == PACK_BYTES
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 2 * PACK_BYTES)
        os.close(descriptor)
    finally:
        conversation.close()


@pytest.mark.parametrize("says", ["", "Loaded", "Nonsense"])
def test_who_does_not_pack_has_no_pack_and_no_trouble(says: str) -> None:
    conversation = talking(packing(b"cubin", says=says))
    try:
        assert conversation.export_cache(0.3) is None  # It has loaded nothing yet.
        assert opened(conversation) is None
        assert conversation.export_cache(0.0) is None
        stopped = conversation._runner.frozen  # type: ignore[attr-defined]
        assert conversation.export_cache(0.3) is None
        # What comes next finds it as every call does: stopped.
        assert conversation._runner.frozen == stopped  # type: ignore[attr-defined]
    finally:
        conversation.close()
    assert open_packs() == 0


def test_who_packs_too_late_has_broken_no_rule() -> None:
    """A starved machine takes its time; the same runner's calls come next where a source is compiled at once."""

    def play(script: Script) -> None:
        script.start()
        assert script.hear()["is"] == "Pack"
        time.sleep(0.6)
        script.say({"is": "Packed"})
        honest(script, script.hear()["nonce"])
        script.hear()

    conversation = talking(play)
    try:
        assert opened(conversation) is None
        assert conversation.export_cache(0.2) is None
        assert isinstance(called(conversation), CallReply)
    finally:
        conversation.close()


def test_packed_is_no_answer_that_anybody_waits_for() -> None:
    def play(script: Script) -> None:
        script.start()
        script.hear()
        script.say({"is": "Packed"})
        script.hear()

    conversation = talking(play)
    try:
        assert opened(conversation) is None
        found = called(conversation)
        assert isinstance(found, Failure)
        assert found.verdict is Verdict.rule_violation
    finally:
        conversation.close()


def test_a_runner_that_hung_or_is_at_work_is_not_waited_for() -> None:
    limits = Limits(import_s=5.0, call_s=0.3)

    def play(script: Script) -> None:
        script.start()
        script.hear()
        script.hear()

    conversation = RunnerClient(cast("Any", ScriptedRunner(play, None)), limits, Budget(60.0), ALL_ON)
    try:
        assert opened(conversation) is None
        with ThreadPoolExecutor(1) as thread:
            call = thread.submit(called, conversation)
            wait_for(lambda: conversation._runner.frozen < 0 or None)  # type: ignore[attr-defined]
            start = time.monotonic()
            assert conversation.export_cache(20.0) is None
            assert isinstance(call.result(), Failure)
        assert conversation.export_cache(20.0) is None
        assert time.monotonic() - start < 15
    finally:
        conversation.close()


def test_what_was_handed_on_changes_no_more() -> None:
    packs, descriptor = CompileCache(), memory()
    packs.add(descriptor)
    packs.add(None)
    assert packs.sealed() == []
    packs.seal()
    [own] = packs.sealed()
    with pytest.raises(PermissionError):
        os.pwrite(descriptor, b"late", 0)
    packs.close()
    assert os.fstat(own).st_size  # A thread's own, whatever became of the others.
    os.close(own)
    assert packs.sealed() == []


def test_what_somebody_can_still_write_is_not_handed_on() -> None:
    packs, mapped, sealed = CompileCache(), memory(), memory()
    view = mmap.mmap(mapped, 4096)
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
    packs.add(mapped)
    packs.add(sealed)
    packs.seal()
    assert packs.sealed() == []
    view.close()


class Packing:
    """A sandbox of runners that pack their own number, and note what they were given."""

    def __init__(
        self, language: Language, lane: Lane = Lane.h200, work: Work = Work.check, shelf: CacheStore | None = None
    ) -> None:
        self.given: list[list[bytes]] = []
        request = GradeRequest("double", "", language, lane, Mode.submission, "", "double.py", work)
        sandbox: Any = ScriptedSandbox(self._play)
        self.runners = Runners(request, DOUBLE, sandbox, ALL_ON, HOST, shelf=shelf)

    def _play(self, script: Script) -> None:
        script.say(READY)
        data, descriptors, _, _ = socket.recv_fds(script.end, MAX_PACKET, 16)
        count = json.loads(data or b"{}").get("packs", 0)
        self.given.append([os.pread(one, 2, 0) for one in descriptors[len(descriptors) - count :]])
        number = b"%02d" % len(self.given)
        script.say(LOADED)
        while True:
            data, descriptors, _, _ = socket.recv_fds(script.end, MAX_PACKET, 16)
            if not data:
                return
            os.pwrite(descriptors[0], number, 0)
            script.say({"is": "Packed"})


@pytest.fixture
def packing_runners() -> Iterator[Callable[..., Packing]]:
    begun: list[Packing] = []

    def begin(*arguments: Any) -> Packing:
        begun.append(Packing(*arguments))
        return begun[-1]

    yield begin
    for one in begun:
        one.runners.close()


def walked(packing: Packing) -> list[list[bytes]]:
    """What runners are given: of the public cases, beside it, of the hidden ones, and one that is asked alone."""
    packing.runners.fresh(others=1)
    [begin] = packing.runners.beside()
    begin()
    packing.runners.export_caches()
    packing.runners.another()
    packing.runners.alone()
    return packing.given


def test_hidden_cases_get_what_public_ones_compiled_and_who_is_asked_alone_gets_nothing(
    packing_runners: Callable[..., Packing],
) -> None:
    assert walked(packing_runners(Language.triton)) == [[], [], [b"01", b"02"], []]


def test_what_is_compiled_when_it_is_loaded_is_compiled_once(packing_runners: Callable[..., Packing]) -> None:
    assert walked(packing_runners(Language.cuda)) == [[], [b"01"], [b"01"], []]


@pytest.mark.parametrize(("lane", "work"), [(Lane.cpu, Work.check), (Lane.h200, Work.measure), (Lane.h200, Work.all)])
def test_what_is_measured_is_compiled_where_it_is_measured(
    lane: Lane, work: Work, packing_runners: Callable[..., Packing]
) -> None:
    assert walked(packing_runners(Language.cuda, lane, work)) == [[], [], [], []]


@pytest.mark.parametrize(
    ("work", "side"), [(Work.check, Side.untimed), (Work.measure, Side.submission), (Work.all, Side.submission)]
)
def test_only_a_checks_runners_are_untimed(work: Work, side: Side, packing_runners: Callable[..., Packing]) -> None:
    packing = packing_runners(Language.triton, Lane.h200, work)
    asked: list[Side] = []
    sandbox: Any = packing.runners._sandbox
    start = sandbox.start

    def noted(*given: Any, **more: Any) -> Any:
        asked.append(more["side"])
        return start(*given, **more)

    sandbox.start = noted
    packing.runners.fresh(others=1)
    assert asked == [side, side]


@pytest.mark.parametrize("language", [Language.triton, Language.cuda])
def test_a_measurement_has_what_its_check_compiled_after_the_runners_before_it_were_ended(
    packing_runners: Callable[..., Packing], language: Language
) -> None:
    """A reference is prepared first, and before that every runner is ended."""
    shelf = CacheStore()
    check = packing_runners(language, Lane.h200, Work.check, shelf)
    check.runners.fresh()
    check.runners.export_caches()
    check.runners.store_cache()
    check.runners.close()
    measured = packing_runners(language, Lane.h200, Work.measure, shelf)
    measured.runners.end()
    measured.runners.fresh()
    assert measured.given == [[b"01"]]
    shelf.close()


@pytest.mark.quick
def test_a_references_next_runner_has_what_the_first_one_compiled(packing_runners: Callable[..., Packing]) -> None:
    packing = packing_runners(Language.cuda)
    lent = References(packing.runners._sandbox)
    request = GradeRequest("double", "", Language.cuda, Lane.cpu, Mode.submission, "", "double.cu", Work.measure)
    before = open_packs()
    for _ in range(3):
        with lent.lent(DOUBLE, request, Reference("cuda.cu", "", right=True)):
            pass
        lent._end(next(iter(lent._kept)))
    with lent.lent(DOUBLE, request, Reference("cuda.cu", "// another", right=True)):
        pass
    assert packing.given == [[], [b"01"], [b"01"], []]
    lent.close()
    # What the scripted runners were given, to write and to read.
    assert open_packs() - before == 2 + 2
