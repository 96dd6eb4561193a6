"""A result as text for a terminal: the answer first, then the cases, then what helps.

Standard library only: the student's client shows results of the server with it, without torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.contract import (
    CaseResult,
    CompiledFor,
    CompiledKernel,
    Counted,
    GradeResult,
    Measurement,
    Mismatch,
    RequirementResult,
    StudentError,
    Verdict,
    Visibility,
)
from autograder.counters import told

SHADES = " .:+#"
"""A tile of the map from no wrong element to all wrong."""

_GREEN, _RED, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"
_PER_MILLE = 1000
_LOG_LINES = 20


def render(result: GradeResult, *, colour: bool = False) -> str:
    """The whole report, ending with a line break; `colour` paints verdicts."""
    parts = [
        _answer(result, colour),
        _table(_case_rows(result.cases)),
        *(_picture(case.mismatch) for case in _pictured(result)),
        _error(result.error) if result.error else "",
        _table(_speed_rows(result.measurements)),
        *(_compiled(one) for one in result.compiled),
        _counted(result.counted),
        _requirements(result.requirements),
        _findings(result),
        _log(result.log),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def verdict_text(verdict: Verdict | None) -> str:
    """A verdict in words; `not run` where there is none."""
    return verdict.replace("_", " ") if verdict else "not run"


def duration(microseconds: float) -> str:
    """A time with its unit, three significant digits: `19.9 ms`."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def plain(text: str) -> str:
    """Text without what could steer a terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


def _answer(result: GradeResult, colour: bool) -> str:
    word = verdict_text(result.verdict).upper()
    if colour:
        word = f"{_GREEN if result.verdict is Verdict.passed else _RED}{word}{_PLAIN}"
    return f"{word}  {plain(result.explanation)}"


def _case_rows(cases: Sequence[CaseResult]) -> list[tuple[str, ...]]:
    rows = [_case_row(case) for case in cases]
    return [("case", "group", "verdict", "time"), *rows] if rows else []


def _case_row(case: CaseResult) -> tuple[str, ...]:
    hidden = case.visibility is Visibility.hidden
    name = f"{case.category} (hidden)" if hidden else f"{case.name} (ranked)" if case.ranked else case.name
    time = "" if hidden or case.seconds is None else duration(1e6 * case.seconds)
    return name, case.group, verdict_text(case.verdict), time


def _speed_rows(measurements: Sequence[Measurement]) -> list[tuple[str, ...]]:
    rows = [
        (
            found.case,
            f"{found.ratio:.3f}",
            f"{found.ratio_low:.3f} to {found.ratio_high:.3f}",
            duration(found.time_us),
            duration(found.reference_us),
        )
        for found in measurements
    ]
    return [("speed", "ratio", "interval", "yours", "reference"), *rows] if rows else []


def _compiled(found: CompiledFor) -> str:
    """What one target's compiler made of the kernels, and what it says against them."""
    title = f"  compiled for {found.target}, without such a device and not measured:"
    notes = [
        f"  {plain(one.kernel)} ({plain(one.config)}): {plain(one.message)}" for one in found.kernels if one.message
    ]
    notes += [f"  {plain(found.message)}"] if found.message else []
    notes += [f"  {found.left_out} more launches were not compiled."] if found.left_out else []
    parts = [_table(_kernel_rows(found.kernels)), *notes]
    return "\n".join([title, *(part for part in parts if part)]) if any(parts) else ""


def _kernel_rows(kernels: Sequence[CompiledKernel]) -> list[tuple[str, ...]]:
    """Kernels that compile; instructions that none of them has are left out."""
    right = [kernel for kernel in kernels if not kernel.message]
    kinds = ("wgmma", "imma", "tcgen05", "tma", "ldg128", "mfma")
    special = [name for name in kinds if any(getattr(kernel, name) for kernel in right)]
    rows = [
        (
            kernel.kernel,
            kernel.case,
            kernel.config,
            str(kernel.registers),
            f"{kernel.spills} ({kernel.stack_bytes} B)" if kernel.spills else "0",
            f"{kernel.shared_bytes} B",
            *(str(getattr(kernel, name)) for name in special),
        )
        for kernel in right
    ]
    return [("kernel", "case", "configuration", "registers", "spills", "shared", *special), *rows] if rows else []


def _counted(results: Sequence[Counted]) -> str:
    """What was counted of calls, where there is no GPU."""
    parts = [
        f"  case {plain(one.case)}, counted by the {plain(one.by)}; not measured\n"
        + (_table([(title, f"{value:,}") for title, _, value in told(one)]) or f"  {plain(one.message)}")
        for one in results
    ]
    return "\n".join(parts)


def _requirements(results: Sequence[RequirementResult]) -> str:
    """What the rung asks of the kernels' structure."""
    words = {True: "met", False: "not met", None: "could not be checked"}
    return "\n".join(
        f"  {plain(one.name)} ({one.target}: {one.rule}): {words[one.met]}. {plain(one.message)}" for one in results
    )


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns as wide as their widest cell; empty without rows."""
    if not rows:
        return ""
    cells = [tuple(plain(cell) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
    return "\n".join(f"  {line}" for line in lines)


def _pictured(result: GradeResult) -> Iterator[CaseResult]:
    """One case that has a picture, which is enough to start with: the one that is told, else the first."""
    cases = sorted(result.cases, key=lambda case: case.name != result.told_case)
    yield from [case for case in cases if case.mismatch and case.mismatch.map][:1]


def _picture(found: Mismatch | None) -> str:
    """The output in tiles, darker where more is wrong."""
    if found is None:
        return ""
    shape = " × ".join(str(length) for length in found.shape)
    title = f"  {plain(found.output)} ({shape}), wrong elements by tiles of {found.tile[0]} × {found.tile[1]}:"
    width = max(len(row) for row in found.map)
    edge = f"  +{'-' * width}+"
    lines = [f"  |{''.join(_shade(share) for share in row).ljust(width)}|" for row in found.map]
    return "\n".join([title, edge, *lines, edge])


def _shade(per_mille: int) -> str:
    """No wrong element is blank, all wrong is the darkest, and anything between is between."""
    if per_mille <= 0:
        return SHADES[0]
    if per_mille >= _PER_MILLE:
        return SHADES[-1]
    return SHADES[1 + per_mille * (len(SHADES) - 2) // _PER_MILLE]


def _error(error: StudentError) -> str:
    """The student's own frames, innermost last, then the error itself."""
    lines = [f"  line {frame.line}, in {plain(frame.function)}: {plain(frame.code)}" for frame in error.frames]
    text = f"{plain(error.kind)}: {plain(error.message)}" if error.message else plain(error.kind)
    return "\n".join([*lines, *(f"  {line}" for line in text.splitlines())])


def _findings(result: GradeResult) -> str:
    """For staff: a student's result has none."""
    return "\n".join(f"  for staff: {finding.kind}: {plain(finding.summary)}" for finding in result.findings)


def _log(log: str) -> str:
    lines = plain(log).splitlines()
    if not lines:
        return ""
    left_out = [f"  … {len(lines) - _LOG_LINES} lines before"] if len(lines) > _LOG_LINES else []
    return "\n".join(["  printed:", *left_out, *(f"  | {line}" for line in lines[-_LOG_LINES:])])
