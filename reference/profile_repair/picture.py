"""Print the pictures of the handout: the sectors of a warp's load, or, with `recorded`, the four kernels side by side.

python reference/profile_repair/picture.py [recorded]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

RECORDED = Path(__file__).resolve().parents[2] / "assignments" / "profile_repair" / "recorded" / "profiles.json"
LANES, SECTOR, HEAD = 32, 32, 256
"""A head of 128 elements of 16 bits is 256 bytes."""
LOADS: tuple[tuple[str, Callable[[int], int], int], ...] = (
    ("2 bytes, neighbouring elements", lambda lane: 2 * lane, 2),
    ("2 bytes, a head for each lane", lambda lane: HEAD * lane, 2),
    ("16 bytes, neighbouring packs", lambda lane: 16 * lane, 16),
)
SHOWN = (
    ("time of a call, us", lambda table: table["call_us"]),
    ("device busy, us", lambda table: table["busy_us"]),
    ("launches", lambda table: table["launches"]),
    ("bytes of DRAM, % of the least", lambda table: table["traffic_percent"]),
    ("warps, % of 64 on an SM", lambda table: _counter(table, "sm__warps_active.avg.pct_of_peak_sustained_active, %")),
    ("blocks", lambda table: _counter(table, "launch__grid_size")),
    ("threads in a block", lambda table: _counter(table, "launch__block_size")),
    ("registers of a thread", lambda table: _counter(table, "launch__registers_per_thread")),
    ("global load requests, million", lambda table: _lsu(table, "requests_pipe_lsu_mem_global_op_ld.sum")),
    ("their sectors, million", lambda table: _lsu(table, "sectors_pipe_lsu_mem_global_op_ld.sum")),
    ("local loads, MB", lambda table: _lsu(table, "sectors_pipe_lsu_mem_local_op_ld.sum * 32, byte")),
    ("local stores, MB", lambda table: _lsu(table, "sectors_pipe_lsu_mem_local_op_st.sum * 32, byte")),
    ("stalled on global memory, %", lambda table: table["stalls_percent"].get("global_memory", 0)),
    ("stalled on memory's queue, %", lambda table: table["stalls_percent"].get("memory_queue", 0)),
)


def main(what: str = "") -> None:
    """Print one of the two."""
    sys.stdout.write(recorded() if what == "recorded" else sectors())


def sectors() -> str:
    """A load's addresses, its sectors of 32 bytes, and the share of them that is used."""
    lines = [f"{'a warp loads':34}{'lane 0':>8}{'lane 1':>8}{'lane 31':>9}{'sectors':>9}{'used':>8}"]
    for title, place, size in LOADS:
        touched = {at // SECTOR for lane in range(LANES) for at in range(place(lane), place(lane) + size)}
        used = LANES * size / (len(touched) * SECTOR)
        lines.append(f"{title:34}{place(0):>8}{place(1):>8}{place(31):>9}{len(touched):>9}{used:>8.0%}")
    return "\n".join(lines) + "\n"


def recorded() -> str:
    """What was recorded of the four kernels, in columns."""
    tables = json.loads(RECORDED.read_text(encoding="utf-8"))
    names = [name for name in tables if name != "layer"]
    lines = [f"{'':31}" + "".join(f"{name:>10}" for name in names)]
    for title, value in SHOWN:
        lines.append(f"{title:31}" + "".join(f"{_short(value(tables[name])):>10}" for name in names))
    return "\n".join(lines) + "\n"


def _counter(table: dict[str, dict[str, float]], name: str) -> float:
    return table["counters_of_the_first_launch"][name]


def _lsu(table: dict[str, dict[str, float]], name: str) -> float:
    return _counter(table, f"l1tex__t_{name}") / 1e6


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
