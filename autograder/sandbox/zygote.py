"""The judge's hold on a zygote: the trusted process that has a toolchain imported and forks runners."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import suppress

from autograder import codec, languages, toolchain
from autograder.contract import Lane, Language
from autograder.errors import SandboxError
from autograder.sandbox import Purpose
from autograder.sandbox.namespaces import TMP
from autograder.sandbox.plan import Plan

_END_S = 10.0
BOOTSTRAP = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from autograder.runner.__main__ import main; main(sys.argv[1:])"
)
"""What `-m autograder.runner` would do, where the package is not installed: `-I` looks in no other folder."""

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "runner",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}
"""What a zygote and its runners have on the CPU whatever their language; `HOME` and `TMPDIR` are set per runner."""

_FINDS_DRIVER = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
"""What a GPU's runner has of the judge's own environment, beside what its language wants."""


def environment_of(language: str, lane: Lane, purpose: Purpose = Purpose.call) -> dict[str, str]:
    """The whole environment on a lane: on a GPU kernels are compiled, and the driver's libraries have to be found.

    Args:
        language: or another word, for a runner that has no toolchain.
    """
    record = languages.known(language)
    if lane is Lane.cpu and purpose in {Purpose.call, Purpose.profile}:
        return ENVIRONMENT | dict(record.environment if record else {})
    wanted = (*_FINDS_DRIVER, *(record.driver_environment if record else ()))
    kept = {name: value for name, value in os.environ.items() if name in wanted}
    # A compiler may ask once, when it is imported, where its cache is to be.
    return ENVIRONMENT | kept | {"HOME": TMP}


class Zygote:
    """One language's zygote on one lane. It ends, with all its runners, when `close` is called or this process dies."""

    def __init__(
        self, language: Language, lane: Lane, environment: dict[str, str], purpose: Purpose = Purpose.call
    ) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-B", "-c", BOOTSTRAP, str(toolchain.PACKAGE.parent), "zygote"]
        command += [language, lane, purpose]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def fork(self, plan: Plan, channel: int, log: int, status: int) -> None:
        """Have a runner started; what becomes of it is said on the other end of `status`."""
        try:
            socket.send_fds(self._control, [codec.dumps(plan).encode()], [channel, log, status])
        except OSError as error:
            raise SandboxError(f"the zygote is gone: {error}") from None

    def close(self) -> None:
        """End it and wait for it."""
        self._control.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
            return
        self._process.kill()
        self._process.wait()
