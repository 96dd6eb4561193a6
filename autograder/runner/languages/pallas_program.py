"""What becomes of a submission in Pallas: its entry is traced once for every shape, compiled, and looked through.

Written against jax 0.10.2 (Python 3.11) and 0.11.2; `install` fails loudly if a name is gone. One file runs on both:
what the newer one calls otherwise is accepted by its older name too (`RENAMED`).
"""

from __future__ import annotations

import functools
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from autograder.protocol import Load
from autograder.runner.report import SubmissionError

RENAMED: Mapping[str, str] = {"out_shape": "out_type", "scratch_shapes": "scratch_types"}
"""Arguments of `plgpu.kernel` by their names before jax 0.11."""
_KERNELS = frozenset({"pallas_call", "core_map", "mpmd_map"})
"""What launches a kernel, among the operations of a traced function."""
_MOVES = frozenset({
    "pjit", "jit", "closed_call", "custom_jvp_call", "custom_vjp_call", "copy", "copy_p", "reshape", "squeeze", "slice",
    "broadcast_in_dim", "convert_element_type", "pad", "transpose", "iota", "dynamic_slice", "concatenate", "empty",
})  # fmt: skip
"""Operations that compute nothing, or hold others."""
_BEFORE = "JaxStackTraceBeforeTransformation"
"""By what jax says in which line something stands that it refuses later."""
_NO_MEMORY = "RESOURCE_EXHAUSTED"

_CORES = 2


@contextmanager
def few_threads() -> Iterator[None]:
    """While it is entered, what starts a thread for every core starts two: a runner may have so many only."""
    whole = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(whole)[:_CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, whole)


@contextmanager
def silent() -> Iterator[None]:
    """While it is entered, nothing reaches the log: libraries that find no `/proc/cpuinfo` complain of it."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


class Hooks:
    """Around what launches a kernel.

    Attributes:
        ghosts: kernels do nothing: what they would write is NaN.
    """

    def __init__(self, *, interpreted: bool) -> None:
        self.ghosts = False
        self._interpreted = interpreted

    def install(self) -> None:
        """Take the place of jax's own functions; to be called before a submission is loaded."""
        jax: Any = import_module("jax")
        # It warns whenever a process forks, and that a backend will be given up; neither is the student's affair.
        warnings.filterwarnings("ignore", category=RuntimeWarning, message=r"os\.fork\(\)")
        warnings.filterwarnings("ignore", category=DeprecationWarning, message="The Pallas Triton backend")
        jax.config.update("jax_traceback_filtering", "off")
        calls = import_module("jax._src.pallas.pallas_call")
        public, mosaic = import_module("jax.experimental.pallas"), import_module("jax.experimental.pallas.mosaic_gpu")
        import_module("jax.experimental.pallas.triton")
        call, kernel = public.pallas_call, mosaic.kernel
        for module in (public, calls):
            vars(module)["pallas_call"] = self._pallas_call(call)
        vars(mosaic)["kernel"] = self._mosaic_kernel(kernel)

    def _pallas_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def pallas_call(kernel: Any, out_shape: Any = None, **options: Any) -> Callable[..., Any]:
            if self._interpreted:
                options["interpret"] = options.get("interpret") or True
            launch = original(kernel, out_shape, **options)
            return self._launched(launch, out_shape, dict(options.get("input_output_aliases") or {}))

        return pallas_call

    def _mosaic_kernel(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def kernel(*given: Any, **options: Any) -> Any:
            body, *shape = given or (None,)
            options |= {new: options.pop(old) for old, new in RENAMED.items() if old in options}
            options |= dict(zip(("out_type",), shape, strict=False))
            if self._interpreted:
                options["interpret"] = interpret_params()
            if body is None:
                return lambda function: kernel(function, **options)
            return self._launched(original(body, **options), options.get("out_type"), {})

        return kernel

    def _launched(self, launch: Callable[..., Any], out_shape: Any, aliases: dict[int, int]) -> Callable[..., Any]:
        @functools.wraps(launch)
        def call(*operands: Any) -> Any:
            return _nothing_done(out_shape, aliases, operands) if self.ghosts else launch(*operands)

        return call


def interpret_params() -> Any:
    """How Mosaic GPU's kernels are interpreted: with a look for races."""
    params = import_module("jax._src.pallas.mosaic_gpu.interpret.params")
    return params.InterpretGPUParams(detect_races=True)


def races_found() -> bool:
    """Whether the interpreter of Mosaic GPU's kernels has seen a race since this was asked last."""
    state = import_module("jax._src.pallas.mosaic_gpu.interpret.gpu_callbacks")
    races = state.get_races()
    found = races is not None and bool(races.races_found)
    if found:
        state.reset_gpu_interpret_mode_state()
    return found


def _nothing_done(out_shape: Any, aliases: Mapping[int, int], operands: Sequence[Any]) -> Any:
    """What a kernel leaves that does nothing."""
    import jax  # noqa: PLC0415
    import jax.numpy as jnp  # noqa: PLC0415

    flat, tree = jax.tree.flatten(out_shape)
    given = jax.tree.leaves(operands)
    by_output = {output: given[operand] for operand, output in aliases.items()}
    left = [
        by_output[place] if place in by_output else jnp.full(one.shape, _poison(jnp, one.dtype), one.dtype)
        for place, one in enumerate(flat)
    ]
    return jax.tree.unflatten(tree, left)


def _poison(jnp: Any, dtype: Any) -> Any:
    return jnp.nan if jnp.issubdtype(dtype, jnp.floating) else False if dtype.kind == "b" else jnp.iinfo(dtype).min


class Programs:
    """One submission's entry, by the shapes and numbers that it was traced for.

    Args:
        donate: hand the outputs' memory to the program, which then writes into it where the device allows.
    """

    def __init__(self, entry: Callable[..., Any], load: Load, *, donate: bool) -> None:
        words = load.signatures[0]
        self._entry = entry
        self._filename = load.filename
        self._donate = donate
        self._names = load.arguments
        self.outputs = [place for place, word in enumerate(words) if word.startswith("output ")]
        self._fixed = [place for place, word in enumerate(words) if word == "integer"]
        self._given = [place for place in range(len(words)) if place not in set(self._fixed)]
        self._known: dict[tuple[Any, ...], Program] = {}

    def of(self, arguments: Sequence[Any], arrays: Sequence[Any]) -> Program:
        """The program for a call's arguments, compiled when it is first asked for.

        Raises:
            SubmissionError: it cannot be compiled, or returns something else than its outputs.
        """
        fixed = tuple(int(arguments[place]) for place in self._fixed)
        key = (fixed, *((getattr(one, "shape", ()), str(getattr(one, "dtype", ""))) for one in arrays))
        if key not in self._known:
            self._known[key] = self._compiled(fixed, arrays)
        return self._known[key]

    @contextmanager
    def naming(self) -> Iterator[None]:
        """While it is entered, what XLA says for want of memory becomes what the judge knows by that name."""
        try:
            yield
        except RuntimeError as error:
            if _NO_MEMORY not in str(error):
                raise
            message = "XLA could not get the memory that this program needs."
            raise SubmissionError("call", "OutOfMemoryError", message) from None

    def dynamic(self, arguments: Sequence[Any], array: Callable[[Any], Any]) -> list[Any]:
        """The arguments that a program is called with: arrays, and numbers that are drawn for every call."""
        import numpy as np  # noqa: PLC0415

        return [
            array(value) if hasattr(value := arguments[place], "data_ptr") else np.asarray(value, _number(value))
            for place in self._given
        ]

    def _compiled(self, fixed: tuple[int, ...], arrays: Sequence[Any]) -> Program:
        import jax  # noqa: PLC0415

        numbers = dict(zip(self._fixed, fixed, strict=True))

        def program(*dynamic: Any) -> tuple[Any, ...]:
            values = numbers | dict(zip(self._given, dynamic, strict=True))
            returned = self._entry(*(values[place] for place in range(len(values))))
            return self._checked(returned, [values[place] for place in self.outputs])

        donated = [self._given.index(place) for place in self.outputs] if self._donate else []
        jitted = jax.jit(program, donate_argnums=donated, keep_unused=True)
        traced = jitted.trace(*arrays)
        try:
            compiled = traced.lower().compile()
        except Exception as error:
            if not (line := self._line_of(error)):
                raise
            raise SubmissionError("call", type(error).__name__, _first(error), line) from None
        del compiled  # The function finds it, and is called in half the time that the compiled one takes.
        return Program(jitted, traced.jaxpr.jaxpr)

    def _checked(self, returned: Any, outputs: Sequence[Any]) -> tuple[Any, ...]:
        """What the entry returned, one array for each output."""
        names = [self._names[place] for place in self.outputs]
        arrays = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        if returned is None or len(arrays) != len(outputs):
            got = "nothing" if returned is None else f"{len(arrays)} values"
            raise _wrong(f"The entry returned {got}; it has to return {' and '.join(names)}.")
        for name, array, output in zip(names, arrays, outputs, strict=True):
            if getattr(array, "shape", None) != output.shape or getattr(array, "dtype", None) != output.dtype:
                got = f"{array.dtype}{list(array.shape)}" if hasattr(array, "shape") else type(array).__name__
                raise _wrong(f"For {name} the entry returned {got}, not {output.dtype}{list(output.shape)}.")
        return arrays

    def _line_of(self, error: BaseException) -> int:
        """The student's line that an error of a later stage comes from, 0 where it says none."""
        seen: BaseException | None = error
        for _ in range(16):
            if seen is None:
                return 0
            frames = [(frame.f_code.co_filename, line) for frame, line in _walked(seen)]
            lines = [line for name, line in frames if name == self._filename]
            if lines and type(seen).__name__ == _BEFORE:
                return lines[-1]
            seen = seen.__cause__ or seen.__context__
        return 0


def _walked(error: BaseException) -> Iterator[tuple[Any, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next


def _wrong(message: str) -> SubmissionError:
    return SubmissionError("call", "WrongOutput", message)


def _first(error: BaseException) -> str:
    return str(error).partition("\n\nAdditional diagnostics")[0].strip() or type(error).__name__


def _number(value: Any) -> str:
    return "float32" if isinstance(value, float) else "int32"


class Program:
    """A compiled entry, and what is in it.

    Attributes:
        in_place: whether its results lay in the outputs' own memory when it was called first; `None` before.
        launches, operations: as in `protocol.Returned`.
        mosaic: a kernel of Mosaic GPU's is in it.
    """

    def __init__(self, call: Callable[..., tuple[Any, ...]], jaxpr: Any) -> None:
        self.call = call
        self.in_place: bool | None = None
        kernels: Counter[tuple[str, tuple[int, ...]]] = Counter()
        operations: Counter[str] = Counter()
        names = list(_looked_through(jaxpr, kernels, operations))
        self.mosaic = any(name != "pallas_call" for name in names)
        self.launches = [
            {"kernel": name, "grid": list(grid), "calls": calls} for (name, grid), calls in kernels.items()
        ]
        self.operations = dict(operations)


def _looked_through(
    jaxpr: Any, kernels: Counter[tuple[str, tuple[int, ...]]], operations: Counter[str]
) -> Iterator[str]:
    """Count kernels and operations over whole arrays; what launches the kernels."""
    for equation in jaxpr.eqns:
        name = str(equation.primitive)
        if name in _KERNELS:
            kernels[_kernel(equation.params)] += 1
            yield name
            continue
        inner = [inside for value in equation.params.values() for inside in _jaxprs(value)]
        for inside in inner:
            yield from _looked_through(inside, kernels, operations)
        if not inner and name not in _MOVES and any(getattr(one.aval, "shape", ()) for one in equation.outvars):
            operations[f"lax.{name}"] += 1


def _jaxprs(value: Any) -> Iterator[Any]:
    for one in value if isinstance(value, tuple | list) else (value,):
        inside = getattr(one, "jaxpr", one)
        if hasattr(inside, "eqns"):
            yield inside


def _kernel(parameters: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    """Name and grid of a launch."""
    inside = next(iter([one for value in parameters.values() for one in _jaxprs(value)]), None)
    said = parameters.get("name") or getattr(getattr(inside, "debug_info", None), "func_name", "")
    mapping = parameters.get("grid_mapping")
    meshes: Any = parameters.get("meshes") or (parameters.get("mesh"),)
    grid: Any = getattr(mapping, "grid", None) or getattr(meshes[0], "grid", ())
    return str(said or "a kernel"), tuple(size for size in grid if isinstance(size, int))
