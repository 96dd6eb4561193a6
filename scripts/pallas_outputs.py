"""What it costs that a program of XLA's writes into memory of the judge's: on a GPU, by the loader itself, no sandbox.

python scripts/pallas_outputs.py

For a vector add of 2^27 float32 elements: whether results lie in the memory that was handed over, microseconds of a
call in a batch as the harness makes it, the same with a copy of the result, and of the host alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autograder.contract import Language  # noqa: E402
from autograder.protocol import Load  # noqa: E402
from autograder.runner.languages.pallas_gpu import PallasGpuLoader  # noqa: E402

N = 2**27
CALLS = 8


def main() -> None:
    """Print it."""
    os.environ.setdefault("TMPDIR", tempfile.gettempdir())
    loader = PallasGpuLoader()
    steps = [time.perf_counter()]
    loader.warm()
    steps.append(time.perf_counter())
    loader.begin()
    steps.append(time.perf_counter())
    print(f"import {steps[1] - steps[0]:.1f} s, start {steps[2] - steps[1]:.1f} s, {loader.versions()}")
    source = (ROOT / "reference" / "vector_add" / "solutions" / "pallas.py").read_text(encoding="utf-8")
    words = ("input float32", "input float32", "output float32", "integer")
    load = Load(source, "vector_add.py", Language("pallas"), "vector_add", ("x", "y", "out", "n"), signatures=(words,))
    _of(loader.load(load)[load.entry], loader)


def _of(entry: Any, loader: PallasGpuLoader) -> None:
    import torch as imported  # noqa: PLC0415

    torch: Any = imported
    made: list[list[Any]] = []
    for _ in range(CALLS):
        x, y = (torch.randn(N, device="cuda") for _ in range(2))
        made.append([x, y, torch.zeros(N, device="cuda"), N])
    bridge, copied = vars(loader)["_bridge"], []
    keep = bridge.keep

    def watched(results: Any, outputs: Any) -> None:
        copied.append(results[0].unsafe_buffer_pointer() != outputs[0].data_ptr())
        keep(results, outputs)

    bridge.keep = watched
    start = time.perf_counter()
    entry.call(made[0], record=True)
    took, right = time.perf_counter() - start, bool((made[0][2] == made[0][0] + made[0][1]).all())
    print(f"first call {took:.2f} s, right {right}, in place {not copied[0]}, launched {entry.seen()}")
    bridge.keep = keep
    times = [entry.batch(iter(made)) / CALLS / 1000 for _ in range(5)]
    programs = vars(vars(entry)["_programs"])["_known"].values()
    for program in programs:
        program.in_place = False
    bridge.keep = lambda results, outputs: outputs[0].copy_(torch.from_dlpack(results[0]).clone())
    with_copy = [entry.batch(iter(made)) / CALLS / 1000 for _ in range(5)]
    bridge.keep = keep
    for program in programs:
        program.in_place = True
    add = torch.add
    torch.cuda.synchronize()
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for x, y, out, _ in made:
        add(x, y, out=out)
    last.record()
    torch.cuda.synchronize()
    small: list[list[Any]] = [[torch.randn(1024, device="cuda") for _ in range(3)] + [1024] for _ in range(200)]
    entry.batch(iter(small))
    start = time.perf_counter()
    entry.batch(iter(small))
    host = (time.perf_counter() - start) / len(small) * 1e6
    plain = first.elapsed_time(last) / CALLS * 1000
    print(
        f"a call in a batch: {min(times):.1f} us; with a copy of its output {min(with_copy):.1f} us; torch.add "
        f"{plain:.1f} us; of 1024 elements, host and all {host:.1f} us"
    )


if __name__ == "__main__":
    main()
