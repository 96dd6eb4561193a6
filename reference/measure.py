"""Check and time the staff kernels and milestones on this machine, outside the judge.

    python reference/measure.py h200 [SLUG …] [--also FILE …]
    TRITON_INTERPRET=1 python reference/measure.py cpu [SLUG …] [--also FILE …]

For the authors' notes only: one process, its own clock, no opponent. For every case of the lane's own it compares each
kernel with the oracle, and times ranked cases, those in float16 in bfloat16 too. CUDA C++ is compiled as on the lane:
by nvcc for the GPU, by g++ and the emulator for the CPU. `--also` adds files that are no part of a rung: candidates. On
a GPU: device events, 5 calls to warm up, the median of 30 with a cold L2, all kernels taking turns, because clocks
drift; beside them torch's own operator and a copy of as many bytes as the case has to move. On a CPU: the interpreter's
processor time, one thread, the least of 7 calls.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import functools
import importlib.util
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from autograder.assignment import Assignment, Case, load_assignment, slugs  # noqa: E402 - after the path is known
from autograder.contract import Lane, Language  # noqa: E402
from autograder.judge.correctness.compare import compare  # noqa: E402
from autograder.protocol import Load  # noqa: E402
from autograder.runner.languages import cuda_entry, nvcc  # noqa: E402
from autograder.runner.languages.cuda import CudaLoader  # noqa: E402
from autograder.runner.languages.cuda_library import Library  # noqa: E402
from autograder.runner.languages.triton_gpu import COVERS, SCRATCH_BYTES  # noqa: E402

Call = Callable[[], object]
BESIDE = ("torch", "copy of as many bytes")
"""What speeds are put beside."""


def load(path: Path) -> ModuleType:
    """Import a file by its path."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def times_ms(calls: Mapping[str, Call], device: str) -> dict[str, float]:
    """The time of each call in milliseconds."""
    if device == "cpu":
        return {name: interpreter_ms(call) for name, call in calls.items()}
    return device_ms(calls)


def interpreter_ms(call: Call) -> float:
    """The least processor time of 7 calls."""
    times = []
    for _ in range(7):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def device_ms(calls: Mapping[str, Call]) -> dict[str, float]:
    """The median time of 30 rounds on the GPU, each call with a cold L2, after 5 rounds to warm up."""
    cold = torch.empty(SCRATCH_BYTES, dtype=torch.uint8, device="cuda")
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(35):
        for name in sorted(calls, reverse=bool(number % 2)):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            for _ in range(COVERS):
                cold.zero_()
            start.record()
            calls[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end))
    return {name: statistics.median(found[5:]) for name, found in times.items()}


def arguments(
    assignment: Assignment, case: Case, inputs: dict[str, torch.Tensor]
) -> tuple[list[object], dict[str, torch.Tensor]]:
    """The entry's arguments in order, and the outputs among them (contiguous)."""
    device = next(iter(inputs.values())).device
    outputs = {
        out.name: torch.empty(
            assignment.shape_of(out, case), dtype=getattr(torch, assignment.dtype_of(out, case)), device=device
        )
        for out in assignment.outputs
    }
    tensors = inputs | outputs
    values: list[object] = []
    for argument in assignment.arguments:
        if argument.role == "stride":
            values.append(tensors[argument.of].stride(argument.dim))
        elif argument.role == "scalar":
            values.append(inputs[argument.name].item())
        else:
            values.append(tensors[argument.name] if argument.name in tensors else case.size[argument.name])
    return values, outputs


def poison(outputs: dict[str, torch.Tensor]) -> None:
    """Fill outputs with what no kernel may leave there."""
    for out in outputs.values():
        out.fill_(torch.nan if out.dtype.is_floating_point else 113)


def wrong_elements(
    assignment: Assignment, problem: ModuleType, inputs: dict[str, torch.Tensor], outputs: dict[str, torch.Tensor]
) -> int:
    """How many elements of all outputs the oracle refuses."""
    expected, scale = problem.expected(**inputs), problem.error_scale(**inputs)
    return sum(
        int(compare(out, expected[name], scale[name], assignment.tolerance[name]).wrong.sum())
        for name, out in outputs.items()
    )


def kernels_of(assignment: Assignment, lane: Lane, also: Sequence[Path]) -> dict[str, Callable[..., object]]:
    """The milestones, slowest first, the staff kernels, candidates, and torch's operator."""
    slug, solutions = assignment.slug, ROOT / "reference" / assignment.slug / "solutions"
    paths = [*sorted((ROOT / "assignments" / slug / "milestones").glob("*")), *sorted(solutions.iterdir()), *also]
    found: dict[str, Callable[..., object]] = {}
    with ThreadPoolExecutor(8 if lane is not Lane.cpu else 1) as pool:
        binaries = {path: pool.submit(binary_of, path, assignment, lane) for path in paths if path.suffix == ".cu"}
    for path in paths:
        name = f"staff {path.suffix}" if path.parent == solutions else path.name
        try:
            found[name] = binaries[path].result() if path in binaries else getattr(load(path), assignment.entry)
        except Exception as error:  # noqa: BLE001 - a file that this machine cannot compile is a line in the notes
            say(f"  {name:28} refused: {str(error).splitlines()[0][:90]}")
    found["torch"] = load(ROOT / "reference" / slug / "facts.py").library
    return found


def binary_of(path: Path, assignment: Assignment, lane: Lane) -> Callable[..., object]:
    """Compile a `.cu` file; what its launcher is called by."""
    source = path.read_text(encoding="utf-8-sig")
    arguments = tuple(argument.name for argument in assignment.arguments)
    signatures = tuple(dict.fromkeys(itertools.chain(*(assignment.signatures(one) for one in Lane))))
    ask = Load(source, path.name, Language.cuda, assignment.entry, arguments, signatures=signatures)
    if lane is Lane.cpu:
        emulated = emulator().load(ask)[assignment.entry]
        return lambda *values: emulated.call(list(values), record=False)
    major, minor = torch.cuda.get_device_capability()
    folder = Path(tempfile.mkdtemp())
    binary = nvcc.compiled(ask, folder, nvcc.find_nvcc(), f"sm_{major}{minor}a")
    library = Library(binary, ask, prefix="kernel_ladder")
    words = cuda_entry.Words(ask, cuda_entry.taken(ask, library.takes))
    return lambda *values: library.call(words.of(values))


@functools.cache
def warm_emulator() -> CudaLoader:
    """CUDA C++ for the CPU, compiled once."""
    os.environ.setdefault("TMPDIR", tempfile.mkdtemp())
    made = CudaLoader()
    made.warm()
    return made


def emulator() -> CudaLoader:
    """One that is ready to load a file, in a folder of its own: a library of the same path would not be loaded anew."""
    made = copy.copy(warm_emulator())
    os.environ["TMPDIR"] = tempfile.mkdtemp()
    made.begin()
    return made


def one_case(assignment: Assignment, case: Case, device: str, kernels: Mapping[str, Callable[..., object]]) -> None:
    """Check every kernel in this case, and time it where it is ranked."""
    slug = assignment.slug
    problem = load(ROOT / "assignments" / slug / "problem.py")
    generator = torch.Generator(device=device)
    generator.seed()
    dtype = getattr(torch, case.dtype)
    inputs = problem.make_inputs(generator=generator, dtype=dtype, distribution=case.distribution, **case.size)
    flops, moved = assignment.cost_of(case)
    values, outputs = arguments(assignment, case, inputs)
    say(f"{slug} {case.name} {case.size} {case.dtype}: {moved / 1e9:.3f} GB, {flops / 1e9:.1f} Gflop")
    calls: dict[str, Call] = {}
    for kernel, entry in kernels.items():
        poison(outputs)
        call = functools.partial(entry, *values)
        try:
            call()
            wrong = wrong_elements(assignment, problem, inputs, outputs)
        except Exception as error:  # noqa: BLE001 - a kernel that this machine refuses is a line in the notes
            say(f"  {kernel:28} refused: {str(error).splitlines()[0][:90]}")
            continue
        say(f"  {kernel:28} {f'{wrong} wrong' if wrong else 'right'}")
        calls[kernel] = call
    if case.ranked:
        time_case(calls, moved, flops, device)


def time_case(calls: dict[str, Call], moved: float, flops: float, device: str) -> None:
    """Time the kernels of a ranked case, on a GPU beside a copy."""
    if device == "cuda":
        half = torch.empty(int(moved) // 2, dtype=torch.uint8, device="cuda")
        calls["copy of as many bytes"] = functools.partial(torch.empty_like(half).copy_, half)
    times = times_ms(calls, device)
    for kernel, milliseconds in times.items():
        beside = ", ".join(f"{times[other] / milliseconds:.3f} of {other}" for other in BESIDE if other in times)
        say(f"  {kernel:28} {rates(milliseconds, moved, 0.0 if 'copy' in kernel else flops)} {beside}")


def rates(milliseconds: float, moved: float, flops: float) -> str:
    """A time with the rates that it means."""
    return f"{milliseconds:9.4f} ms {moved / milliseconds / 1e9:6.3f} TB/s {flops / milliseconds / 1e9:8.1f} Tflop/s"


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure the rungs named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lane", type=Lane)
    parser.add_argument("slugs", nargs="*")
    parser.add_argument("--also", type=Path, action="append", default=[])
    options = parser.parse_args()
    lane: Lane = options.lane
    import triton  # noqa: PLC0415 - its version belongs to the notes

    torch.set_num_threads(1)
    device = "cpu" if lane is Lane.cpu else "cuda"
    name = torch.cuda.get_device_name() if device == "cuda" else "interpreter"
    say(f"{name}, torch {torch.__version__}, triton {triton.__version__}")
    for slug in options.slugs or slugs(ROOT / "assignments", lane):
        assignment = load_assignment(ROOT / "assignments" / slug)
        if not assignment.entry:
            say(f"{slug}: has several functions, which the judge alone measures")
            continue
        kernels = kernels_of(assignment, lane, options.also)
        for case in assignment.cases_for(lane):
            if lane in case.lanes:
                one_case(assignment, case, device, kernels)
            if lane in case.lanes and case.ranked and device == "cuda" and case.dtype == "float16":
                one_case(assignment, dataclasses.replace(case, dtype="bfloat16"), device, kernels)


if __name__ == "__main__":
    main()
