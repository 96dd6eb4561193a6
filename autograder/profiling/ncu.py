"""Nsight Compute: the one place that knows its counters' names.

It is called once for all kernels that were picked, writes its report, and is asked for the report's pages as CSV:

    raw        a row for each launch, a column for each counter; the second row has units
    source     a row for each instruction, below the line it came from
    details    rows of sections and rules; of it only what rules advise is read

What a column is called has changed between versions, so counters that are not there are missing, never an error.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.profiles import Figure, Hint, Mix, Stall

SECTIONS = (
    "SpeedOfLight", "SpeedOfLight_RooflineChart", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Chart", "MemoryWorkloadAnalysis_Tables", "SchedulerStats", "WarpStateStats",
    "InstructionStats", "LaunchStats", "Occupancy", "SourceCounters",
)  # fmt: skip
"""What is collected; fixed, so that two profiles can be compared."""

_L1 = "l1tex__t_{}_pipe_lsu_mem_{}_op_{}.sum"
FIGURES: Mapping[Figure, tuple[str, ...]] = {
    Figure.duration_us: ("gpu__time_duration.sum",),
    Figure.compute_percent: ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
    Figure.memory_percent: ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",),
    Figure.dram_percent: (
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    Figure.l2_percent: ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    Figure.l1_percent: (
        "l1tex__throughput.avg.pct_of_peak_sustained_active", "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    ),
    Figure.dram_read_bytes: ("dram__bytes_read.sum",),
    Figure.dram_written_bytes: ("dram__bytes_write.sum",),
    Figure.dram_bytes_per_s: ("dram__bytes.sum.per_second",),
    Figure.l2_hit_percent: ("lts__t_sector_hit_rate.pct",),
    Figure.l1_hit_percent: ("l1tex__t_sector_hit_rate.pct",),
    Figure.global_load_sectors: (_L1.format("sectors", "global", "ld"),),
    Figure.global_load_requests: (_L1.format("requests", "global", "ld"),),
    Figure.global_store_sectors: (_L1.format("sectors", "global", "st"),),
    Figure.global_store_requests: (_L1.format("requests", "global", "st"),),
    Figure.shared_load_conflicts: ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",),
    Figure.shared_store_conflicts: ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",),
    Figure.registers: ("launch__registers_per_thread",),
    Figure.shared_bytes: ("launch__shared_mem_per_block",),
    Figure.threads: ("launch__block_size",),
    Figure.blocks: ("launch__grid_size",),
    Figure.waves: ("launch__waves_per_multiprocessor",),
    Figure.occupancy_percent: ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    Figure.occupancy_limit_percent: ("sm__maximum_warps_per_active_cycle_pct",),
    Figure.blocks_by_registers: ("launch__occupancy_limit_registers",),
    Figure.blocks_by_shared_memory: ("launch__occupancy_limit_shared_mem",),
    Figure.blocks_by_warps: ("launch__occupancy_limit_warps",),
    Figure.blocks_by_slots: ("launch__occupancy_limit_blocks",),
    Figure.issued_per_cycle: (
        "smsp__issue_active.avg.per_cycle_active", "smsp__inst_issued.avg.per_cycle_active",
    ),
    Figure.instructions: ("smsp__inst_executed.sum", "sm__inst_executed.sum"),
}  # fmt: skip
"""Where each figure is read; of several the first that is there."""

SECTORS = {
    Figure.local_load_bytes: _L1.format("sectors", "local", "ld"),
    Figure.local_store_bytes: _L1.format("sectors", "local", "st"),
}
"""Counters of sectors, of 32 bytes each, behind figures of bytes."""
_SECTOR_BYTES = 32

_SCALE = {
    "": 1.0, "%": 1.0, "ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6,
    "second": 1e6, "byte": 1.0, "byte/block": 1.0, "byte/s": 1.0, "byte/second": 1.0,
}  # fmt: skip
"""To the units of `Figure`, of what stands in base units; all others are counts."""
_SCALED = ("byte", "second", "bytes", "seconds", "byte/s", "byte/second")

STALLS: Mapping[str, Stall] = {
    "long_scoreboard": Stall.global_memory, "long_sb": Stall.global_memory,
    "short_scoreboard": Stall.shared_memory, "short_sb": Stall.shared_memory,
    "lg_throttle": Stall.memory_queue, "lg": Stall.memory_queue,
    "mio_throttle": Stall.shared_queue, "mio": Stall.shared_queue,
    "tex_throttle": Stall.texture_queue, "tex": Stall.texture_queue,
    "math_pipe_throttle": Stall.math_pipe, "math": Stall.math_pipe,
    "gmma": Stall.tensor_wait, "warpgroup_arrive": Stall.tensor_wait,
    "wait": Stall.fixed_latency,
    "barrier": Stall.barrier,
    "membar": Stall.memory_barrier,
    "branch_resolving": Stall.branch, "branch_resolve": Stall.branch,
    "no_instructions": Stall.instruction_fetch, "no_instruction": Stall.instruction_fetch,
    "no_inst": Stall.instruction_fetch,
    "imc_miss": Stall.constant_cache, "imc": Stall.constant_cache,
    "dispatch_stall": Stall.dispatch, "dispatch": Stall.dispatch,
    "sleeping": Stall.sleeping, "sleep": Stall.sleeping, "drain": Stall.draining, "misc": Stall.other,
    "not_selected": Stall.not_selected, "selected": Stall.selected,
}  # fmt: skip
_STALL_COLUMN = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)(?:\.sum)?")

TOPICS: Mapping[str, str] = {
    "UncoalescedGlobalAccess": "coalescing", "MemoryCacheAccessPattern": "coalescing",
    "UncoalescedSharedAccess": "bank conflicts", "SharedMemoryConflicts": "bank conflicts",
    "TheoreticalOccupancy": "occupancy", "AchievedOccupancy": "occupancy", "Occupancy": "occupancy",
    "LaunchConfiguration": "grid", "SOLBottleneck": "roofline", "SOLFPRoofline": "roofline", "CPIStall": "latency",
    "IssueSlotUtilization": "latency", "ThreadDivergence": "divergence", "FPInstructions": "fma",
    "HighPipeUtilization": "tensor cores", "WorkloadImbalance": "grid",
}  # fmt: skip
"""Rules by their name, to words that handouts have sections for."""

_NOT_SAID = frozenset({"MemoryL2Compression", "PMSamplingData"})
"""Rules about what no rung teaches, or about the tool itself."""
_LINK = re.compile(r" ?\(https?://[^)]*\)")
_MOST_TEXT = 1200
MOST_HINTS = 12


@dataclass(frozen=True)
class Launch:
    """One row of the raw page."""

    name: str
    figures: dict[Figure, float]
    missing: dict[Figure, str]
    stalls: dict[Stall, int]


@dataclass(frozen=True)
class Instruction:
    """One row of the source page."""

    line: int
    opcode: str
    executed: int
    samples: int
    stalls: dict[Stall, int]


def command(tool: str, kernels: Sequence[str], report: str, program: Sequence[str]) -> list[str]:
    """What profiles the first launch of each of these kernels between the program's marks.

    Args:
        kernels: mangled names.
        report: path, without its ending.
    """
    names = "|".join(re.escape(name) for name in kernels)
    wanted = [part for section in SECTIONS for part in ("--section", section)]
    return [
        tool, "--force-overwrite", "--export", report, "--profile-from-start", "off", "--target-processes", "all",
        # Clocks are the node's owner's; whoever lowers them for a profile shows another machine.
        "--clock-control", "none", "--import-source", "yes", "--kernel-name-base", "mangled",
        "--kernel-id", f"::regex:^({names})$:1", *wanted, *program,
    ]  # fmt: skip


_WHY = {
    "ERR_NVGPUCTRPERM": "The driver of this node refused the counters to an ordinary user. This is not your fault.",
    "No kernels were profiled": (
        "The profiler met none of the kernels that the trace had listed. Does the code launch others from call to call?"
    ),
    "LibraryNotLoaded": "The profiler could not be loaded on this node. This is not your fault.",
    "ResourceUnavailable": "Another profiler was using this GPU's counters. Try again.",
    "Device not supported": "The profiler does not support this GPU. This is not your fault.",
}


def why(said: str) -> str:
    """What the tool's own output means, for students; `""` where it says nothing that is known."""
    return next((meaning for word, meaning in _WHY.items() if word in said), "")


def pages(tool: str, report: str) -> dict[str, list[str]]:
    """What prints each page of a report as CSV, by name."""
    base = [tool, "--import", report, "--csv", "--print-units", "base", "--print-kernel-base", "mangled"]
    return {
        "raw": [*base, "--print-fp", "--page", "raw"],
        "details": [*base, "--page", "details", "--print-details", "all"],
        "source": [*base, "--page", "source", "--print-source", "cuda,sass"],
    }


def launches(text: str) -> list[Launch]:
    """The rows of the raw page, in order; none where it is no such page."""
    rows = _table(text, "Kernel Name")
    if rows is None or not rows:
        return []
    units, *found = rows
    return [_launch(row, units) for row in found if row.get("Kernel Name")]


def _launch(row: Mapping[str, str], units: Mapping[str, str]) -> Launch:
    figures: dict[Figure, float] = {}
    missing: dict[Figure, str] = {}
    for figure, names in FIGURES.items():
        _put(figure, _read(row, units, names), figures, missing)
    for figure, name in SECTORS.items():
        value = _read(row, units, (name,))
        _put(figure, value * _SECTOR_BYTES if isinstance(value, float) else value, figures, missing)
    stalls: Counter[Stall] = Counter()
    for name, value in row.items():
        found = _STALL_COLUMN.fullmatch(name)
        if found is not None and not found[1].endswith("_not_issued"):
            number = _number(value)
            stalls[STALLS.get(found[1], Stall.other)] += int(number) if number is not None else 0
    return Launch(row["Kernel Name"], figures, missing, +stalls)


def _put(figure: Figure, value: float | str, figures: dict[Figure, float], missing: dict[Figure, str]) -> None:
    if isinstance(value, str):
        missing[figure] = value
    else:
        figures[figure] = value


def _read(row: Mapping[str, str], units: Mapping[str, str], names: Iterable[str]) -> float | str:
    """The first of these counters, or why there is none."""
    why = "This version of the tool, or this device, does not have the counter."
    for name in names:
        if name not in row:
            continue
        number = _number(row[name])
        if number is None:
            why = f"The tool gave no number for it ({row[name].strip()[:20] or 'nothing'}): {UNREAD}"
            continue
        unit = units.get(name, "").strip().lower()
        if unit not in _SCALE and (unit.startswith(_SCALED) or unit.endswith(_SCALED)):
            why = f"The tool gave it in a unit that is not known ({unit[:20]})."
            continue
        return number * _SCALE.get(unit, 1.0)
    return why


UNREAD = "the counter was not read in this run."


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def instructions(text: str, filename: str) -> dict[str, list[Instruction]]:
    """The rows of the source page that are instructions, by kernel as the page names it.

    The page has a table for every source file of every kernel, in which a row of a line stands above the rows of its
    instructions. One instruction may stand there several times, as what was inlined belongs to several lines: it counts
    once, for the student's line where there is one.

    Args:
        filename: the student's; lines of other files are line 0.
    """
    found: dict[str, dict[str, Instruction]] = {}
    file, kernel, header, line = "", "", [], 0  # type: tuple[str, str, list[str], int]
    for row in csv.reader(io.StringIO(text)):
        if len(row) >= 2 and row[0] in {"File Path", "File Name"}:  # noqa: PLR2004 -- a name and a value.
            file, header = row[1], []
        elif len(row) >= 2 and row[0] in {"Function Name", "Kernel Name"}:  # noqa: PLR2004 -- as above.
            kernel, header = row[1], []
        elif "Address" in row and "Source" in row:
            header, line = row, 0
        elif header and len(row) == len(header):
            cells = dict(zip(header, row, strict=True))  # Of two columns `Source` the second is the instruction.
            if number := _number(cells.get("Line No", "")):
                line = int(number) if file.rpartition("/")[2] == filename.rpartition("/")[2] else 0
            elif opcode := opcode_of(cells["Source"]):
                rows = found.setdefault(kernel, {})
                if cells["Address"] not in rows or not rows[cells["Address"]].line:
                    rows[cells["Address"]] = _instruction(cells, opcode, line)
    return {kernel: list(rows.values()) for kernel, rows in found.items()}


def _instruction(cells: Mapping[str, str], opcode: str, line: int) -> Instruction:
    stalls: Counter[Stall] = Counter()
    for name, value in cells.items():
        if name.startswith("stall_") and "(" not in name and (number := _number(value)):
            stalls[STALLS.get(name.removeprefix("stall_"), Stall.other)] += int(number)
    executed, samples = (_number(cells.get(name, "")) for name in ("Instructions Executed", "# Samples"))
    return Instruction(line, opcode, int(executed or 0), int(samples or 0), dict(stalls))


def opcode_of(instruction: str) -> str:
    """`LDG.E.128` of `@P0 LDG.E.128 R4, desc[UR4][R2.64]`; `""` where it is none."""
    words = instruction.replace("{", " ").split()
    if words and words[0].startswith("@"):
        words = words[1:]
    word = words[0].rstrip(";") if words else ""
    return word if re.fullmatch(r"[A-Z][A-Z0-9]*(?:\.[A-Za-z0-9_]+)*", word) else ""


def mix_of(opcode: str) -> Mix:
    """The kind of an instruction."""
    name, *modifiers = opcode.split(".")
    if name in _WIDE:
        wide, half, narrow = _WIDE[name]
        return wide if "128" in modifiers else half if "64" in modifiers else narrow
    if name.startswith(_TENSOR):
        return Mix.tensor
    return _BEGINS.get(max((word for word in _BEGINS if name.startswith(word)), key=len, default=""), Mix.other)


_WIDE = {
    "LDG": (Mix.global_load_128, Mix.global_load_64, Mix.global_load_32),
    "LD": (Mix.global_load_128, Mix.global_load_64, Mix.global_load_32),
    "STG": (Mix.global_store_128, Mix.global_store_64, Mix.global_store_32),
    "ST": (Mix.global_store_128, Mix.global_store_64, Mix.global_store_32),
}
_TENSOR = ("HMMA", "HGMMA", "IMMA", "IGMMA", "QMMA", "QGMMA", "DMMA", "BMMA", "BGMMA", "OMMA", "UTCHMMA", "UTCIMMA",
           "UTCQMMA", "UTCOMMA")  # fmt: skip
_BY_NAME: Mapping[Mix, tuple[str, ...]] = {
    Mix.tma: ("UTMA", "UBLKCP", "UBLKRED", "UBLKPF"),
    Mix.async_copy: ("LDGSTS", "LDGDEPBAR", "ARRIVES"),
    Mix.atomic: ("ATOM", "RED", "UTMAREDG"),
    Mix.shared: ("LDS", "STS", "STAS"),
    Mix.local: ("LDL", "STL"),
    Mix.special: ("MUFU",),
    Mix.barrier: ("BAR", "SYNCS", "WARPSYNC", "MEMBAR", "FENCE", "DEPBAR", "ERRBAR", "UCGABAR", "B2R", "WARPGROUP",
                  "CCTL", "BSSY", "BSYNC"),
    Mix.convert: ("F2F", "F2I", "I2F", "F2FP", "I2I", "FRND", "I2FP"),
    Mix.floating: ("FADD", "FMUL", "FFMA", "FSET", "FMNMX", "FSEL", "FCHK", "FSWZADD", "HADD", "HMUL", "HFMA", "HSET",
                   "HMNMX", "DADD", "DMUL", "DFMA", "DSET", "DMNMX"),
    Mix.control: ("BRA", "BRX", "JMP", "CALL", "RET", "EXIT", "YIELD", "NANOSLEEP", "BREAK", "WARPSYNC", "ELECT",
                  "VOTE", "NOP", "ACQBULK", "KILL", "BMOV"),
    Mix.move: ("MOV", "UMOV", "SHFL", "PRMT", "UPRMT", "SEL", "USEL", "S2R", "S2UR", "CS2R", "R2UR", "R2P", "P2R",
               "LDC", "ULDC", "LDCU", "LDSM", "STSM", "MATCH", "REDUX", "MOVM", "UR2UP", "VOTEU"),
    Mix.integer: ("IADD", "UIADD", "IMAD", "UIMAD", "IMNMX", "VIMNMX", "VIADD", "ISETP", "UISETP", "LEA", "ULEA",
                  "LOP", "ULOP", "SHF", "USHF", "SHL", "SHR", "IABS", "POPC", "FLO", "UFLO", "BREV", "BMSK", "SGXT",
                  "USGXT", "PLOP", "UPLOP", "IDP", "ISCADD", "PSETP", "UIADD3", "UPOPC"),
}  # fmt: skip

_BEGINS = {word: kind for kind, words in _BY_NAME.items() for word in words}
"""How opcodes begin; the longest word that fits decides."""


def hints(text: str) -> dict[str, list[Hint]]:
    """What rules advise, by kernel; of the details page."""
    found: dict[str, list[Hint]] = {}
    for row in _table(text, "Kernel Name") or []:
        said = row.get("Rule Description", "").strip()
        if (
            said
            and row.get("Rule Name", "").strip() not in _NOT_SAID
            and row.get("Rule Type", "").strip().upper() in {"OPT", "OPTIMIZATION"}
        ):
            found.setdefault(row["Kernel Name"], []).append(_hint(row, said))
    return {
        name: sorted(some, key=lambda hint: -(hint.estimate_percent or 0.0))[:MOST_HINTS]
        for name, some in found.items()
    }


def _hint(row: Mapping[str, str], said: str) -> Hint:
    """Of its estimates those for the whole kernel are kept; a `local` one is about a part of the device."""
    rule = row.get("Rule Name", "").strip()
    is_whole = row.get("Estimated Speedup Type", "").strip() == "global"
    estimate = _number(row.get("Estimated Speedup", "")) if is_whole else None
    return Hint(rule[:80], _LINK.sub("", " ".join(said.split()))[:_MOST_TEXT], estimate, TOPICS.get(rule, ""))


def base_of(name: str) -> str:
    """A kernel's bare name, of it as compiled or as people write it; pages of one report differ in that."""
    if name.startswith("_Z"):
        rest, found = name.removeprefix("_Z").removeprefix("N"), ""
        while (part := re.match(r"(?:L|K)?(\d+)", rest)) is not None:
            end = part.end() + int(part[1])
            found, rest = rest[part.end() : end], rest[end:]
        return found or name
    bare = re.sub(r"\(anonymous namespace\)|<unnamed>", "", name).partition("(")[0]
    while (cut := re.sub(r"<[^<>]*>", "", bare)) != bare:
        bare = cut
    return bare.partition("<")[0].split()[-1].rpartition("::")[2] if bare.split() else name


def matched(names: Sequence[str], others: Sequence[str]) -> dict[str, str]:
    """For each name that of `others` which is the same kernel: by all of it, else by its bare name in order."""
    left = [other for other in others if other not in names]
    found = {name: name for name in names if name in others}
    for name in names:
        if name not in found and (same := next((one for one in left if base_of(one) == base_of(name)), None)):
            left.remove(same)
            found[name] = same
    return found


def _table(text: str, column: str) -> list[dict[str, str]] | None:
    """Rows of the first table with this column, by header; `None` where there is none."""
    rows = csv.reader(io.StringIO(text))
    for row in rows:
        if column in row:
            return [dict(zip(row, cells, strict=False)) for cells in rows if cells]
    return None
