"""Every launch of a dry call, compiled by triton itself and kept: kernels, their candidates, and their errors.

Written against triton 3.6 and 3.9, whose names agree; `install` fails loudly if a name is gone.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from autograder.compile_checks import faults
from autograder.compile_checks.messages import MOST_USES
from autograder.runner.report import cut

_MOST_TEXT = 300
_OPTIONS = {"num_warps": 0, "num_ctas": 1, "num_stages": 0, "maxnreg": None}
"""Options that are told of, unless they have the value that they mostly have."""
_ALIGNED = "tt.divisibility"


@dataclass
class Kernel:
    """One kernel as compiled: a function with one specialisation and one set of options.

    Attributes:
        uses: numbers of case and launch.
        error: why it cannot be compiled, or cannot run on this target.
    """

    function: Any
    config: str
    arguments: str
    uses: list[tuple[int, int]] = field(default_factory=list)
    shared_bytes: int = 0
    code: bytes = b""
    ptx: bytes = b""
    error: BaseException | None = None

    @property
    def name(self) -> str:
        """The function's."""
        return name_of(self.function)


class Launches:
    """The launches of all dry calls.

    Attributes:
        kernels: in the order they were first asked for.
        left_out: launches that came when there was no room or no time.
        any_refused: the compiler or the target did not take one.
    """

    def __init__(self, most: int, budget_s: float) -> None:
        self.kernels: list[Kernel] = []
        self.left_out = 0
        self._most = most
        # Of processors, this process's and its compilers': a busy machine leaves no launch out.
        self._times = os.times
        self._end = self._now() + budget_s
        self._case = 0
        self._launch = -1
        self._tuning = False
        self.any_refused = False

    def begin(self, case: int) -> None:
        """The next launch is the first of this case."""
        self._case, self._launch = case, -1

    def _now(self) -> float:
        return sum(self._times()[:4])

    def full(self) -> bool:
        """Whether nothing more is compiled."""
        return len(self.kernels) >= self._most or self._now() > self._end

    def launched(self, function: Any, kwargs: dict[str, Any], compile_it: Callable[[], Any], *, warmup: bool) -> Any:
        """Compile one launch; what triton returns for it. Errors are kept, and the host code goes on."""
        if not self._tuning:
            self._launch += 1
        if self.full():
            self.left_out += 1
            return None
        try:
            compiled = compile_it()
        except Exception as error:
            self.any_refused |= faults.is_refusal(error)
            self._keep(_failed(function, kwargs, error))
            if warmup:
                raise
            return None
        if compiled is not None:
            self._keep(_succeeded(function, compiled))
        return compiled

    def tuned(self, tune: Callable[[], Any]) -> Any:
        """Everything that is launched meanwhile is a candidate for one launch."""
        self._launch, before, self._tuning = self._launch + (not self._tuning), self._tuning, True
        try:
            return tune()
        finally:
            self._tuning = before

    def _keep(self, kernel: Kernel) -> None:
        same = (one for one in self.kernels if _key(one) == _key(kernel))
        kept = next(same, None)
        if kept is None:
            self.kernels.append(kernel)
            kept = kernel
        use = (self._case, self._launch)
        if use not in kept.uses and len(kept.uses) < MOST_USES:
            kept.uses.append(use)


class Resisting:
    """Launches by host code that gets the errors that it would get from a device; nothing is kept."""

    def __init__(self) -> None:
        self._refused: list[tuple[BaseException, Any]] = []

    def refused(self, error: BaseException) -> Any | None:
        """The function that is refused by this very error; nothing where it is another."""
        return next((function for one, function in self._refused if one is error), None)

    def launched(self, function: Any, kwargs: dict[str, Any], compile_it: Callable[[], Any], *, warmup: bool) -> Any:
        """Compile one launch; what triton returns for it, or raises."""
        del kwargs, warmup
        try:
            return compile_it()
        except Exception as error:
            if faults.is_refusal(error):
                self._refused.append((error, function))
            raise

    def tuned(self, tune: Callable[[], Any]) -> Any:
        """An autotuner leaves out what does not fit by itself."""
        return tune()


def name_of(function: Any) -> str:
    """A kernel's name, which may be any text."""
    return cut(str(function.__name__), _MOST_TEXT)


def install(launches: Launches | Resisting) -> None:
    """Hook into triton's launches."""
    run, tune = JITFunction.run, Autotuner.run

    @functools.wraps(run)
    def launch(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return launches.launched(
            self, kwargs, lambda: run(self, *args, grid=grid, warmup=warmup, **kwargs), warmup=warmup
        )

    @functools.wraps(tune)
    def try_all(self: Any, *args: Any, **kwargs: Any) -> Any:
        return launches.tuned(lambda: tune(self, *args, **kwargs))

    JITFunction.run, Autotuner.run = launch, try_all


def _key(kernel: Kernel) -> tuple[Any, ...]:
    return kernel.function, kernel.config, kernel.arguments, kernel.code, kernel.error is None


def _failed(function: Any, kwargs: dict[str, Any], error: BaseException) -> Kernel:
    """What is known before the launch: constants and options as they were given."""
    known = {**_OPTIONS, **dict.fromkeys(_constant_names(function))}
    given = {name: value for name, value in kwargs.items() if name in known}
    return Kernel(function, _text(given), "", error=error)


def _succeeded(function: Any, compiled: Any) -> Kernel:
    metadata, source = compiled.metadata, compiled.src
    constants = {path[0]: value for path, value in source.constants.items() if len(path) == 1}
    names = list(source.signature)
    own = set(_constant_names(function))
    config = {names[place]: value for place, value in constants.items() if names[place] in own}
    options = {name: getattr(metadata, name, usual) for name, usual in _OPTIONS.items()}
    told = {name: value for name, value in options.items() if value != _OPTIONS[name]}
    arguments = [_argument(place, name, source, constants) for place, name in enumerate(names) if name not in own]
    return Kernel(
        function,
        _text(config | told),
        cut(", ".join(arguments), _MOST_TEXT),
        shared_bytes=int(metadata.shared),
        code=_code(compiled.asm),
        ptx=str(compiled.asm.get("ptx", "")).encode(),
    )


def _code(made: Any) -> bytes:
    """A cubin; for AMD's devices the assembly, which says what the object says."""
    return bytes(made["cubin"]) if "cubin" in made else str(made["amdgcn"]).encode()


def _constant_names(function: Any) -> list[str]:
    return [parameter.name for parameter in function.params if parameter.is_constexpr]


def _argument(place: int, name: str, source: Any, constants: dict[int, Any]) -> str:
    """`x_ptr: *fp32 ÷16`, or `n =1` where the kernel is specialised on that value."""
    if place in constants:
        return f"{name} ={constants[place]!r}"
    aligned = any(key == _ALIGNED for key, _ in source.attrs.get((place,), ()))
    return f"{name}: {source.signature[name]}{' ÷16' if aligned else ''}"


def _text(values: dict[str, Any]) -> str:
    return cut(", ".join(f"{name}={getattr(value, 'value', value)!s}" for name, value in values.items()), _MOST_TEXT)
