"""Make the material of this rung on a GPU: profiles of the four given kernels, and the trace of a transformer layer.

    python reference/profile_repair/record.py measure h200 DIR    on a node with an H200 and ncu: raw results into DIR
    python reference/profile_repair/record.py layer DIR           its second half alone
    python reference/profile_repair/record.py write DIR           from DIR into assignments/profile_repair/recorded

`measure` takes about three minutes: the judge profiles each kernel as it does a student's, with the same tool. `write`
needs no GPU. Everything that students read is computed from the raw results.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from autograder import codec  # noqa: E402 -- after the path is known.
from autograder.contract import GradeResult  # noqa: E402
from autograder.profiles import Figure, Profile, ProfiledKernel, Span, SpanKind, Timeline  # noqa: E402
from autograder.profiling.ncu import FIGURES, SECTORS  # noqa: E402

SLUG = "profile_repair"
CASE = "gpu_ranked"
GIVEN = ROOT / "assignments" / SLUG / "given"
RECORDED = ROOT / "assignments" / SLUG / "recorded"
LAYER = "layer.json"
TABLES, TRACE = "profiles.json", "layer_trace.json"
_WARPS = 64
"""That a multiprocessor can hold."""
_FUSED_US = 20
"""What the quiz supposes that one launch takes for the norm and rotation of q in the layer, or of k."""
TOKENS, HEADS, DIM, INNER = 4096, 32, 128, 11008
"""Of the layer: its stream has HEADS · DIM columns."""
_UNITS = {"_us": ", us", "_percent": ", %", "_bytes_per_s": ", byte/s", "_bytes": ", byte"}
"""What a figure's name ends with, and how a table says it."""


def main() -> None:
    """Do one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "layer", "write"))
    parser.add_argument("lane", nargs="?", default="h200")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.what == "write":
        _write(options.folder)
        return
    if options.what == "measure":
        # In a process of its own: torch holds memory of the GPU as long as it lives.
        subprocess.run([sys.executable, __file__, "layer", str(options.folder)], check=True)
        given = [f"{SLUG}:{path.relative_to(ROOT)}" for path in sorted(GIVEN.iterdir())]
        script = ROOT / "scripts" / "gpu_profiles.py"
        asked = ["--lane", options.lane, "--case", CASE, "--out", str(options.folder)]
        subprocess.run([sys.executable, str(script), *asked, *given], check=True)
        return
    (options.folder / LAYER).write_text(json.dumps(_traced_layer()), encoding="utf-8")


@dataclass(frozen=True)
class _Part:
    name: str
    call: Callable[[], None]


def _traced_layer() -> dict[str, Any]:
    """Trace one layer: kernels by part, and the spans of one call; times in nanoseconds.

    The parts run once one by one, which tells how many kernels each has, and then without a break.
    """
    import torch  # noqa: PLC0415 -- `write` does without.

    from autograder.profiling.target import _Times, traced  # noqa: PLC0415
    from autograder.runner.trace import Tracer  # noqa: PLC0415

    parts = _layer()
    tracer, wait = Tracer(), torch.cuda.synchronize
    times, ends = _Times(), [0]

    def call() -> int:
        for part in (*parts, *parts):
            part.call()
        wait()
        ends[0] = tracer.now_ns()
        for part in parts:
            part.call()
            wait()
            ends.append(tracer.now_ns())
        times.begin_ns = tracer.now_ns()
        for part in parts:
            part.call()
        times.end_ns = tracer.now_ns()
        wait()
        return 0

    for part in parts:
        part.call()
    wait()
    tracer.traced(call, [])
    device, host = tracer.listed()
    counts = [sum(begin <= row[2] < end for row in device) for begin, end in itertools.pairwise(ends)]
    said = traced(device, host, times, tracer.readable)
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "parts": [[part.name, count] for part, count in zip(parts, counts, strict=True)],
        **said,
    }


def _layer() -> list[_Part]:  # noqa: C901 -- a layer has eight parts.
    """A transformer layer in bfloat16 as PyTorch runs it, operator by operator, the rotation too."""
    import torch  # noqa: PLC0415

    functional = torch.nn.functional
    width = HEADS * DIM

    def drawn(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) / math.sqrt(shape[-1])

    qkv_weight, out_weight = drawn(3 * width, width), drawn(width, width)
    up_weight, down_weight = drawn(2 * INNER, width), drawn(width, INNER)
    norm_weight, head_weight = (torch.ones(size, device="cuda", dtype=torch.bfloat16) for size in (width, DIM))
    x = torch.randn(TOKENS, width, device="cuda", dtype=torch.bfloat16)
    pair = torch.arange(DIM // 2, device="cuda")
    angles = torch.arange(TOKENS, device="cuda")[:, None] * torch.exp(-math.log(10000) * pair / (DIM // 2))
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    held: dict[str, Any] = {}

    def norm_rope(heads: Any) -> Any:
        wide = heads.float()
        y = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + 1e-6) * head_weight.float()
        low, high = y[..., : DIM // 2], y[..., DIM // 2 :]
        return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1).to(heads.dtype)

    def norm() -> None:
        held["h"] = functional.rms_norm(x, (width,), norm_weight, 1e-6)

    def qkv() -> None:
        held["q"], held["k"], held["v"] = functional.linear(held["h"], qkv_weight).view(TOKENS, 3, HEADS, DIM).unbind(1)

    def of_q() -> None:
        held["q"] = norm_rope(held["q"])

    def of_k() -> None:
        held["k"] = norm_rope(held["k"])

    def attention() -> None:
        q, k, v = (held[name].transpose(0, 1)[None] for name in "qkv")
        held["a"] = functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0].transpose(0, 1)

    def project() -> None:
        held["x"] = x + functional.linear(held["a"].reshape(TOKENS, width), out_weight)

    def second_norm() -> None:
        held["h"] = functional.rms_norm(held["x"], (width,), norm_weight, 1e-6)

    def mlp() -> None:
        gate, up = functional.linear(held["h"], up_weight).chunk(2, dim=1)
        held["y"] = held["x"] + functional.linear(functional.silu(gate) * up, down_weight)

    named = (
        ("norm", norm), ("q, k, v product", qkv), ("norm and rotation of q", of_q), ("norm and rotation of k", of_k),
        ("attention", attention), ("output product", project), ("second norm", second_norm), ("MLP", mlp),
    )  # fmt: skip
    return [_Part(name, call) for name, call in named]


def _write(raw: Path) -> None:
    RECORDED.mkdir(exist_ok=True)
    tables = {}
    for path in sorted(GIVEN.iterdir()):
        result = codec.loads(GradeResult, (raw / f"{SLUG}.{path.stem}.json").read_bytes())
        if result.profile is None or not result.profile.kernels:
            raise SystemExit(f"there is no profile of {path.name}: {result.error} {result.explanation}")
        tables[path.name] = compact(result.profile)
    layer = json.loads((raw / LAYER).read_text(encoding="utf-8"))
    tables["layer"] = _parts(layer)
    files = {TABLES: json.dumps(tables, indent=1) + "\n", TRACE: json.dumps(_perfetto(layer)) + "\n", **texts(tables)}
    for name, text in files.items():
        (RECORDED / name).write_text(text, encoding="utf-8")


def texts(tables: dict[str, Any]) -> dict[str, str]:
    """Each kernel's profile as a text, by the name of its file."""
    return {f"{Path(name).stem}.txt": _table(name, table) for name, table in tables.items() if name != "layer"}


def answers(tables: dict[str, Any]) -> dict[str, float]:
    """The quiz's numbers, by question, from what students read."""
    a, b, d = (tables[name]["counters_of_the_first_launch"] for name in ("a.cu", "b.cu", "d.cu"))
    load = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
    local = sum(d[f"l1tex__t_sectors_pipe_lsu_mem_local_op_{way}.sum * 32, byte"] for way in ("ld", "st"))
    layer = tables["layer"]
    turned = sum(part["device_us"] for name, part in layer["parts"].items() if name.startswith("norm and rotation"))
    return {
        "warps": a["sm__warps_active.avg.pct_of_peak_sustained_active, %"] / 100 * _WARPS,
        "sectors": b[load.format("sectors")] / b[load.format("requests")],
        "waiting": tables["c.py"]["call_us"] / tables["c.py"]["busy_us"],
        "local": local / (d["launch__grid_size"] * d["launch__block_size"]),
        "layer": layer["call_us"] / (layer["call_us"] - turned + 2 * _FUSED_US),
    }


def compact(profile: Profile) -> dict[str, Any]:
    """What students read of a profile, as numbers by name; counters have the names that Nsight Compute gives them."""
    kernel, line = profile.kernels[0], profile.timeline
    counters = {_counter(figure): value for figure in Figure if (value := kernel.figure(figure)) is not None}
    samples = sum(stall.samples for stall in kernel.stalls) or 1
    both = (Figure.dram_read_bytes, Figure.dram_written_bytes)
    moved = profile.of_call(profile.kernels, lambda one: sum(one.figure(figure) or 0 for figure in both))
    return {
        "case": f"{profile.case}: {profile.size}",
        "tool": profile.tool,
        "call_us": line.call_ns / 1e3,
        "busy_us": line.busy_ns / 1e3,
        "busy_percent": 100 * line.busy_ns / line.call_ns,
        "launches": sum(span.kind is SpanKind.kernel for span in line.spans),
        "least_bytes": profile.bytes_moved,
        "dram_bytes": moved,
        "traffic_percent": 100 * moved / profile.bytes_moved,
        "least_gb_per_s": profile.bytes_moved / line.call_ns,
        "counters_of_the_first_launch": counters,
        "stalls_percent": {stall.reason.value: 100 * stall.samples / samples for stall in kernel.stalls},
        "instructions": dict(sorted(kernel.mix.items(), key=lambda one: -one[1])),
        "samples_by_line_percent": _lines(kernel),
    }


def _counter(figure: Figure) -> str:
    name = SECTORS[figure] + " * 32" if figure in SECTORS else FIGURES[figure][0]
    return name + next((unit for ending, unit in _UNITS.items() if figure.value.endswith(ending)), "")


def _lines(kernel: ProfiledKernel) -> dict[str, float]:
    samples = sum(line.samples for line in kernel.lines) or 1
    first = sorted(kernel.lines, key=lambda line: -line.samples)[:5]
    return {
        f"line {line.line}" if line.line else "of headers": 100 * line.samples / samples
        for line in first
        if line.samples
    }


def _table(name: str, table: dict[str, Any]) -> str:
    """The same as text."""
    rows = [f"{name}, {table['case']}, {table['tool']}", ""]
    for key, value in table.items():
        if isinstance(value, dict):
            rows += ["", f"{key}:", *(f"  {one:66} {_number(number):>16}" for one, number in value.items())]
        elif not isinstance(value, str):
            rows.append(f"{key:68} {_number(value):>16}")
    return "\n".join(rows) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 10000 else f"{value:,.4g}"


def _parts(layer: dict[str, Any]) -> dict[str, Any]:
    """Each part of the layer: kernels and the device's time in microseconds."""
    ran = iter([span for span in layer["spans"] if span[0] != "host"])
    found: dict[str, Any] = {"call_us": layer["call_ns"] / 1e3, "busy_us": layer["busy_ns"] / 1e3, "parts": {}}
    for name, count in layer["parts"]:
        theirs = [next(ran) for _ in range(count)]
        found["parts"][name] = {"kernels": count, "device_us": sum(end - begin for *_, begin, end in theirs) / 1e3}
    if next(ran, None) is not None:
        raise SystemExit("the layer ran more kernels than its parts one by one")
    return found


def _perfetto(layer: dict[str, Any]) -> dict[str, Any]:
    """The trace as ui.perfetto.dev opens it, with a third row that says which part the device is at."""
    from server.submissions.profiles import perfetto  # noqa: PLC0415 -- what a profile's download is made by.

    spans = tuple(Span(SpanKind(kind), name, begin, end) for kind, name, begin, end in layer["spans"])
    trace = perfetto(Timeline(spans, layer["call_ns"], layer["busy_ns"], layer["left_out"]))
    ran = iter([span for span in spans if span.kind is not SpanKind.host])
    row: dict[str, Any] = {"pid": 1, "tid": 3}
    named = [{**row, "ph": "M", "name": "thread_name", "args": {"name": "Parts of the layer"}}]
    for name, count in layer["parts"]:
        theirs = [next(ran) for _ in range(count)]
        begin, end = theirs[0].start_ns, theirs[-1].end_ns
        named.append({**row, "ph": "X", "name": name, "cat": "part", "ts": begin / 1e3, "dur": (end - begin) / 1e3})
    return {**trace, "traceEvents": [*trace["traceEvents"], *named]}


if __name__ == "__main__":
    main()
