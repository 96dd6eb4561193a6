"""The runner that looks at one call with a tool, shut in like any other.

To profile, it traces a call, picks the kernels that hold the time, and has them counted. To sanitize, it has a call
made once for each of the sanitizer's checks. All of them are processes of the submission's own user, without a
capability. What they leave is a claim, and is shown to nobody but who handed the source in, and staff.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from autograder import codec, toolchain
from autograder.errors import ContractError
from autograder.profiles import LEAST_SHARE, MOST_KERNELS
from autograder.profiling import able, compute_sanitizer, ncu, target
from autograder.profiling.asking import Ask, Ran, Traced
from autograder.profiling.target import FAILED
from autograder.runner import wire
from autograder.runner.languages import Loader

_BOOTSTRAP = (
    "import sys, importlib.util as find; place = sys.argv.pop(1); "
    "spec = find.spec_from_file_location('autograder', place + '/__init__.py', submodule_search_locations=[place]); "
    "package = sys.modules['autograder'] = find.module_from_spec(spec); spec.loader.exec_module(package); "
    "from autograder.runner.__main__ import main; main(sys.argv[1:])"
)
"""What a zygote's does, where the folder above the package may not be listed."""
_CUT = 600
_LEAST_S = 3.0
_LOOK_S = 0.02
_CHUNK = 2**24


def serve(channel: socket.socket, loader: Loader) -> None:
    """Answer one question, then wait until the judge hangs up.

    Args:
        loader: of the question's language, warm: the traced call is made in a fork of this process.
    """
    line = wire.Wire(channel)
    received = line.receive()
    if received is None:
        return
    fields, descriptors = received
    fields.pop("is")
    ask = codec.from_json(Ask, fields)
    looking = _Sanitizing if ask.sanitize else _Profiling
    name, said = looking(ask, loader, Path(os.environ["TMPDIR"]) / "job", descriptors).run()
    line.send(name, said)
    line.receive()


def picked(kernels: Sequence[Ran]) -> list[Ran]:
    """Those that hold the time, most first: one at least, and no more than are worth a look."""
    total = sum(one.ns for one in kernels) or 1
    ordered = sorted(kernels, key=lambda one: -one.ns)
    return [one for place, one in enumerate(ordered) if not place or one.ns >= LEAST_SHARE * total][:MOST_KERNELS]


class _Looking(ABC):
    def __init__(self, ask: Ask, loader: Loader, folder: Path, descriptors: Sequence[int]) -> None:
        self._ask = ask
        self._loader = loader
        self._folder = folder
        inputs = [spec for spec in ask.tensors if not spec.writable]
        self._source, self._inputs = descriptors[0], dict(zip(inputs, descriptors[1:], strict=False))
        self._files = dict(zip(ask.files, descriptors[1 + len(inputs) :], strict=True))
        self._end = time.monotonic() + ask.budget_s
        self._problems: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._tool = ""

    def run(self) -> tuple[str, dict[str, Any]]:
        """The name of the answer and its fields."""
        self._lay_out()
        if (raised := self._look()) is not None:
            return "Raised", raised
        sizes = [self._sizes.get(name, 0) for name in self._ask.files]
        return "Answer", {"sizes": sizes, "problems": self._problems, "tool": self._tool}

    @abstractmethod
    def _look(self) -> dict[str, Any] | None:
        """Fill the files; what the submission's call raised, where there is nothing else to say."""

    def _lay_out(self) -> None:
        self._folder.mkdir()
        (self._folder / "job.json").write_text(codec.dumps(self._ask), encoding="utf-8")
        (self._folder / "source").write_bytes(os.pread(self._source, self._ask.source_bytes, 0))
        for spec, descriptor in self._inputs.items():
            with (self._folder / spec.name).open("wb") as file:
                for begin in range(0, spec.bytes, _CHUNK):
                    file.write(os.pread(descriptor, min(_CHUNK, spec.bytes - begin), begin))

    def _started(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Exit status and output of a program that is ended when there is no time left; -1 then."""
        left_s = self._end - time.monotonic()
        if left_s < _LEAST_S:
            return -1, "no time was left"
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self._folder,
            start_new_session=True, env=environment,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=left_s)
            return process.returncode, said.decode(errors="replace")
        except subprocess.TimeoutExpired:
            return -1, f"it did not end within {self._ask.budget_s:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _raised(self) -> dict[str, Any] | None:
        with suppress(OSError, ValueError):
            said = json.loads((self._folder / "error.json").read_text(encoding="utf-8"))
            return said if isinstance(said, dict) else None
        return None

    def _keep(self, name: str, path: Path) -> None:
        """Put a file where the judge finds it, whole or not at all."""
        size = path.stat().st_size
        most = self._ask.files[name]
        if size > most:
            self._problems[name] = f"It has {size / 2**20:.1f} MiB; at most {most / 2**20:.0f} MiB are kept."
            return
        os.pwrite(self._files[name], path.read_bytes(), 0)
        self._sizes[name] = size


class _Profiling(_Looking):
    def _look(self) -> dict[str, Any] | None:
        status, said = self._forked()
        if status == FAILED and (raised := self._raised()) is not None:
            return raised
        kernels = self._traced(status, said)
        if kernels:
            self._count(kernels)
        return None

    def _forked(self) -> tuple[int, str]:
        """Have the call traced in a process of its own; exit status and output as of `_started`."""
        log = self._folder / "log"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setsid()
                written = os.open(log, os.O_WRONLY | os.O_CREAT, 0o600)
                os.dup2(written, 1)
                os.dup2(written, 2)
                status = target.call("trace", self._folder, self._loader)
            except BaseException:  # noqa: BLE001 -- a child of a fork must not return into its parent's code.
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        waited = 0
        while not waited and time.monotonic() < self._end:
            waited, how = os.waitpid(pid, os.WNOHANG)
            time.sleep(_LOOK_S)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if not waited:
            os.waitpid(pid, 0)
            return -1, f"it did not end within {self._ask.budget_s:.0f} s"
        return os.waitstatus_to_exitcode(how), log.read_text(encoding="utf-8", errors="replace")

    def _traced(self, status: int, said: str) -> list[Ran]:
        try:
            if status:
                raise OSError(said)  # noqa: TRY301 -- one way to say that there is none.
            traced = codec.loads(Traced, (self._folder / "trace").read_bytes())
        except (OSError, ContractError) as error:
            self._problems["trace"] = f"The call could not be traced: {_end_of(str(error))}"
            return []
        self._keep("trace", self._folder / "trace")
        if not traced.kernels:
            self._problems["counters"] = "No kernel ran on the GPU in this call, so there is nothing to count."
        return picked(traced.kernels)

    def _count(self, kernels: Sequence[Ran]) -> None:
        tool = able.find_tool()
        if not tool:
            self._problems["counters"] = able.why_not(tool)
            return
        self._tool = _version("Nsight Compute", self._started([tool, "--version"])[1])
        report = self._folder / "counted"
        wanted = [one.name for one in kernels]
        status, said = self._started(ncu.command(tool, wanted, str(report), _program("profile", self._folder)))
        made = report.with_suffix(".ncu-rep")
        if status or not made.is_file():
            self._problems["counters"] = ncu.why(said) or f"The profiler gave nothing: {_end_of(said)}"
        if not made.is_file():
            return
        for page, command in ncu.pages(tool, str(made)).items():
            status, said = self._started(command)
            if status:
                self._problems[page] = f"This page of the report could not be read: {_end_of(said)}"
                continue
            (self._folder / page).write_text(said, encoding="utf-8")
            self._keep(page, self._folder / page)
        self._keep("report", made)


class _Sanitizing(_Looking):
    def _look(self) -> dict[str, Any] | None:
        tool = able.find_sanitizer()
        if not tool:
            self._problems = dict.fromkeys(self._ask.files, able.why_no_sanitizer(tool))
            return None
        self._tool = _version("Compute Sanitizer", self._started([tool, "--version"])[1])
        found = False
        for check in self._ask.sanitize:
            log = self._folder / check.value
            command = compute_sanitizer.command(tool, check, str(log), _program("sanitize", self._folder))
            status, said = self._started(command, {**os.environ, **compute_sanitizer.ENVIRONMENT})
            if not log.is_file():
                self._problems[check.value] = f"The sanitizer gave nothing: {_end_of(said)}"
                continue
            text = log.read_text(encoding="utf-8", errors="replace")
            one = compute_sanitizer.read(check, text, "")
            found = found or bool(one.findings)
            if not one.findings and not one.ended:
                self._problems[check.value] = f"It did not come to its end: {_end_of(one.said or said)}"
            self._keep(check.value, log)
            if status and not found and (raised := self._raised()) is not None:
                return raised
        return None


def _program(how: str, folder: Path) -> list[str]:
    return [sys.executable, "-I", "-B", "-c", _BOOTSTRAP, str(toolchain.PACKAGE), how, str(folder)]


def _version(tool: str, said: str) -> str:
    found = [line for line in said.splitlines() if line.startswith("Version")]
    return f"{tool} {found[0].split()[1]}" if found else tool


def _end_of(said: str) -> str:
    return " ".join(said.split())[-_CUT:] or "nothing was said"
