"""What the terminal shows of a graded submission: the verdict first, then where it is wrong, then the cases.

Everything shown may hold text that a student or a kernel made: no markup is read from it, control characters are
replaced.
Verdicts are told by words and colour, never by colour alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder.compile_checks.targets import instructions_of
from autograder.profile_changes import Unit, shown
from client.api import Json
from client.errors import clean

_STYLES = {"passed": "green", "grader_error": "magenta", None: "dim"}
MAX_LOG_LINES = 10
MAX_COMPILED = 12
MAX_KERNEL = 60
_NEEDED = 2
"""Columns of a table that are never left out: a name, and what it is of."""
_SHADES = " ░▒▓█"  # block elements: the density of wrong elements in a tile


def console() -> Console:
    """Standard output; plain where it is no terminal."""
    return Console(highlight=False, soft_wrap=True)


def word(verdict: str | None) -> Text:
    """A verdict as people read it."""
    text = "not run" if verdict is None else verdict.replace("_", " ")
    return Text(text, style=_STYLES.get(verdict, "red"))


def show_result(out: Console, result: Json) -> None:
    """What fits a terminal of a result or a submission: verdict, first mismatch or error, cases, times, findings."""
    out.print()
    headline = word(result["verdict"]) if result.get("verdict") else Text(str(result.get("state", "")))
    headline.stylize("bold")
    out.print(headline)
    if result.get("explanation"):
        out.print(Text(clean(result["explanation"])))
    _show_error(out, result.get("error"))
    blamed = _blamed(result)
    if blamed and blamed.get("mismatch"):
        show_mismatch(out, blamed["mismatch"])
    show_cases(out, result["cases"])
    _show_compiled(out, result.get("compiled", []))
    _show_requirements(out, result.get("requirements", []))
    _show_measurements(out, result.get("measurements", []))
    _show_findings(out, result.get("findings", []))
    _show_log(out, result.get("log", ""))
    _show_score(out, result)


def turn(submission: Json) -> str:
    """`12 before you · result in about 3 min (2 to 5)` of one that waits, or why nobody can say when."""
    ahead = submission["position"]
    text = f"{ahead:,} before you" if ahead else "you are next"
    wait = submission.get("wait")
    if wait is None:
        return text
    if not wait["has_node"]:
        return f"{text}; no node grades {submission['lane']} right now, so the wait is unknown. It keeps its place."
    if wait["likely_s"] is None:
        return text
    guess = "" if wait["measured"] else ", a guess"
    return f"{text} · result in {estimate(wait['low_s'], wait['likely_s'], wait['high_s'])}{guess}"


def standing(submission: Json) -> str:
    """What a submission that waits is beside queued: superseded, or passed and to be measured; else empty."""
    if submission.get("is_final", False):
        return ""
    if submission.get("line") == "measuring" and submission.get("verdict"):
        return "passed; waiting to be measured" if submission.get("state") == "queued" else ""
    if submission.get("superseded_by"):
        return f"superseded by #{submission['superseded_by']}; graded later"
    return ""


def estimate(low_s: float, likely_s: float, high_s: float) -> str:
    """`about 40 s (25 to 68)`, `about 3 min (2 to 5)`: one unit for all three, the interval rounded outwards."""
    unit, length = ("s", 1.0) if high_s < 120 else ("min", 60.0) if high_s < 3 * 3600 else ("h", 3600.0)  # noqa: PLR2004
    low, likely, high = math.floor(low_s / length), max(1, round(likely_s / length)), math.ceil(high_s / length)
    if high - low <= 1:
        return f"about {high} {unit}"
    return f"about {likely} {unit} ({low} to {high})" if low else f"about {likely} {unit} (under {high})"


def _blamed(result: Json) -> Json | None:
    """The case that the explanation is about, else the first that failed."""
    failed = [case for case in result["cases"] if case["verdict"] not in {None, "passed"}]
    return next((case for case in failed if case["name"] == result.get("told_case")), failed[0] if failed else None)


def _show_error(out: Console, error: Json | None) -> None:
    if not error:
        return
    for frame in error["frames"]:
        # A compiler and the emulator name no function.
        within = f", in {clean(frame['function'])}" if frame["function"] else ""
        out.print(Text(f"  line {frame['line']}{within}", style="dim"))
        out.print(Text(f"    {clean(frame['code'])}"))
    message = f": {clean(error['message'])}" if error["message"] else ""
    out.print(Text(f"  {clean(error['kind'])}{message}", style="red"))


def show_mismatch(out: Console, mismatch: Json) -> None:
    """What the explanation does not say of a wrong output: what was allowed, and a map of the damage."""
    share = f"{mismatch['wrong']} of {mismatch['total']} elements of {clean(mismatch['output'])} are wrong"
    allowed = f"; the allowed difference there is {clean(mismatch['tolerance'])}" if mismatch["tolerance"] else ""
    out.print(Text(f"  {share}{allowed}", style="dim"))
    rows = mismatch.get("map") or []
    if sum(len(row) for row in rows) > 1:
        height, width = mismatch["tile"]
        out.print(Text(f"  map of the wrong elements, one character per {height} × {width}:", style="dim"))
        for line, times in _together("".join(_shade(value) for value in row) for row in rows):
            more = f"  × {times}" if times > 1 else ""
            out.print(Text(f"  │{line}│", style="red") + Text(more, style="dim"))


def _together(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    """Equal lines that follow each other, once, with their number."""
    return ((line, len(list(same))) for line, same in itertools.groupby(lines))


def _shade(per_thousand: int) -> str:
    if per_thousand <= 0:
        return _SHADES[0]
    return _SHADES[min(len(_SHADES) - 1, 1 + per_thousand * (len(_SHADES) - 1) // 1001)]


def show_cases(out: Console, cases: Sequence[Json]) -> None:
    """One line per case that was run, and one for all that were not."""
    if not cases:
        return
    table = plain_table("case", "group", "verdict", "seconds")
    left_out = [case for case in cases if case["verdict"] is None]
    for case in cases:
        if case["verdict"] is not None:
            seconds = f"{case['seconds']:.3f}" if case.get("seconds") else ""
            table.add_row(Text(case_name(case)), Text(clean(case["group"])), word(case["verdict"]), seconds)
    if left_out:
        number = f"{len(left_out)} more case{'s' if len(left_out) > 1 else ''}"
        table.add_row(Text(number), Text(""), word(None), "")
    out.print(table)


def case_name(case: Json) -> str:
    """A case's name, a hidden one's marked as such."""
    return f"{clean(case['name'])}{' (hidden)' if case['visibility'] == 'hidden' else ''}"


def _show_measurements(out: Console, measurements: Sequence[Json]) -> None:
    if not measurements:
        return
    table = plain_table("ranked case", "time", "reference", "ratio (below 1 is faster)")
    for item in measurements:
        ratio = f"{item['ratio']:.3f} [{item['ratio_low']:.3f}, {item['ratio_high']:.3f}]"
        table.add_row(Text(clean(item["case"])), duration(item["time_us"]), duration(item["reference_us"]), Text(ratio))
    out.print(table)
    for item in measurements:
        if note := item.get("note", ""):
            out.print(Text(f"{clean(item['case'])}: {clean(note)}", style="dim"))


def show_profile(out: Console, profile: Json) -> None:
    """The kernels that hold the time: how far from the device's limits, and what their warps wait for."""
    out.print(Text(clean(f"case {profile['case']} ({profile['size']}), {profile['tool'] or 'no counters'}")))
    table = plain_table("kernel", "of the time", "time", "compute", "memory", "occupancy", "waits mostly for")
    for kernel in profile["kernels"]:
        found = kernel["figures"]
        percents = (found.get(f"{name}_percent") for name in ("compute", "memory", "occupancy"))
        table.add_row(
            Text(clean(kernel["name"])[:MAX_KERNEL]), Text(f"{kernel['share']:.0%}"),
            duration(found["duration_us"]) if "duration_us" in found else Text("–"),
            *(Text("–" if one is None else f"{one:.0f} %") for one in percents),
            Text(next((clean(one["reason"]) for one in kernel["stalls"] if one["reason"] != "selected"), "–")),
        )  # fmt: skip
    if profile["kernels"]:
        out.print(table)
    line = profile["timeline"]
    if line["call_ns"]:
        busy, call = line["busy_ns"] / 1e3, line["call_ns"] / 1e3
        out.print(Text(f"the device was busy for {busy:,.0f} of the {call:,.0f} µs that the call took", style="dim"))
    for what, why in profile["missing"].items():
        out.print(Text(clean(f"no {what.replace('_', ' ')}: {why}"), style="yellow"))


def show_sanitized(out: Console, found: Json) -> None:
    """What the sanitizer found, by line, and what it did not look at to the end."""
    out.print(Text(clean(f"case {found['case']} ({found['size']}), {found['tool'] or 'no sanitizer'}")))
    for one in found["findings"]:
        lines = " and ".join(str(line) for line in sorted({one["line"], one["other_line"]} - {0})) or "not known"
        times = f", {one['count']:,} times" if one["count"] > 1 else ""
        first = f"; first {one['thread']}" if one["thread"] else ""
        out.print(
            Text(clean(f"line {lines}: {one['what']} in {one['kernel'][:MAX_KERNEL]}{times}{first}"), style="red")
        )
    if found["left_out"]:
        out.print(Text(f"and {found['left_out']:,} more", style="red"))
    if found["clean"]:
        out.print(Text(clean(f"found nothing: {', '.join(found['clean'])}")))
    for what, why in found["missing"].items():
        out.print(Text(clean(f"no {what}: {why}"), style="yellow"))


def show_changes(out: Console, found: Json) -> None:
    """A profile held against another: what differs most in sentences, then both side by side."""
    titles = {one["key"]: clean(one["title"]) for one in found["offered"]}
    title = titles.get(found["against"], "")
    out.print(Text(f"\nagainst: {title}", style="bold"))
    if found["why_not"]:
        out.print(Text(clean(found["why_not"]), style="yellow"))
    if found["headline"]:
        out.print(Text(clean(found["headline"])))
    for said in found["sentences"]:
        out.print(Text(f"  • {clean(said)}"))
    for said in found["notes"]:
        out.print(Text(clean(said), style="dim"))
    if found["figures"]:
        table = plain_table("figure", "this one", title, "change")
        for row in found["figures"]:
            numbers = (shown(Unit(row["unit"]), row[which]) for which in ("now", "before"))
            table.add_row(Text(clean(row["name"])), *map(Text, numbers), Text(clean(row["change"])))
        out.print(table)
    others = ", ".join(clean(key) for key in titles if key != found["against"])
    if others:
        out.print(Text(f"--against takes {others} too", style="dim"))


def _show_compiled(out: Console, compiled: Sequence[Json]) -> None:
    """What the kernels become on devices that need not be there, and what those devices would refuse."""
    found = [(target["target"], kernel) for target in compiled for kernel in target["kernels"]]
    made = [(target, kernel) for target, kernel in found if not kernel["message"]]
    if made:
        out.print(Text("as compiled, not run:", style="dim"))
    for target, kernel in made[:MAX_COMPILED]:
        counts = f"{kernel['registers']} registers, {kernel['spills']} spills, {kernel['shared_bytes']} B shared"
        special = ", ".join(f"{word} {kernel.get(name, 0)}" for name, word in instructions_of(target))
        made_for = f"{kernel['case']}, {kernel['config']}" if kernel["config"] else kernel["case"]
        out.print(Text(clean(f"  {target}  {kernel['kernel']}: {counts}, {special}  ({made_for})")))
    if len(made) > MAX_COMPILED:
        out.print(Text(f"  … {len(made) - MAX_COMPILED} more; --json shows them", style="dim"))
    refused = (kernel["message"] for _, kernel in found if kernel["message"])
    for message in dict.fromkeys([*(target["message"] for target in compiled if target["message"]), *refused]):
        out.print(Text(clean(message), style="yellow"))


def _show_requirements(out: Console, requirements: Sequence[Json]) -> None:
    for item in requirements:
        word_of = "met" if item["met"] else "could not be checked" if item["met"] is None else "not met"
        counted = item.get("points", 0.0)
        counts = "" if item["group"] else f", {counted:g} points" if counted else ", for information"
        said = f": {clean(item['message'])}" if item["message"] and (counted or not item["met"]) else ""
        text = f"{word_of}  {clean(item['name'])} ({clean(item['target'])}: {clean(item['rule'])}{counts}){said}"
        out.print(Text(text, style="green" if item["met"] else "yellow"))


def _show_findings(out: Console, findings: Sequence[Json]) -> None:
    for finding in findings:
        kind = finding["kind"].replace("_", " ")
        out.print(Text(f"finding, for staff: {kind}: {clean(finding['summary'])}", style="yellow"))


def _show_log(out: Console, log: str) -> None:
    if not log:
        return
    lines = clean(log).splitlines()
    out.print(Text("\nprinted by the submission:", style="bold"))
    out.print(Text("\n".join(lines[:MAX_LOG_LINES])))
    if len(lines) > MAX_LOG_LINES:
        out.print(Text(f"… {len(lines) - MAX_LOG_LINES} more lines; --json shows them", style="dim"))


def _show_score(out: Console, result: Json) -> None:
    score = result.get("score")
    if score:
        speed = f", speed {score['speed']:g} of {score['speed_max']:g}" if score["speed_max"] else ""
        parts = f"correctness {score['correctness']:g} of {score['correctness_max']:g}{speed}"
        out.print(Text(f"score {score['total']:g} of {score['maximum']:g}  ({parts})", style="bold"))
    if result.get("trouble"):
        out.print(Text(clean(result["trouble"]), style="magenta"))


def duration(microseconds: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def moment(text: str | None) -> str:
    """A time of the server's, which are in UTC, on the reader's own clock, with its zone; `""` where there is none."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M %Z}" if text else ""


def show_assignments(out: Console, assignments: Sequence[Json], grades: Sequence[Json] = ()) -> None:
    """The ladder: one rung a line, with one's own points where one has grades."""
    own = {grade["assignment"]: grade for grade in grades}
    rows: list[list[Text | str]] = []
    for item in assignments:
        grade = own.get(item["slug"])
        most = f"{sum(item['points'].values()):g}"
        points = f"{grade['points']:g} of {grade['possible']:g}" if grade else most
        done = word(grade["verdict"]) if grade and grade.get("verdict") else Text("")
        languages = ", ".join(item["languages"])
        due = moment(item["due_at"])
        rows.append([str(item["rung"]), item["slug"], points, done, due, item["title"], languages])
    _fitting(out, ("rung", "slug", "points", "result", "due", "title", "languages"), rows)


def show_history(out: Console, submissions: Sequence[Json]) -> None:
    """One submission a line, newest first."""
    rows: list[list[Text | str]] = []
    for item in submissions:
        points = "" if item.get("points") is None else f"{item['points']:g}"
        result = word(item["verdict"]) if item["verdict"] else Text(item["state"].replace("_", " "))
        number = f"{'run ' if item['mode'] == 'run' else '#'}{item['number']}"
        uploaded = moment(item["uploaded_at"])
        rows.append([item["public_id"], item["assignment"], number, result, points, uploaded, item["lane"]])
    _fitting(out, ("id", "assignment", "", "result", "points", "uploaded", "lane"), rows)


def _fitting(out: Console, columns: Sequence[str], rows: Sequence[Sequence[Text | str]]) -> None:
    """A table in which nothing is cut: where a terminal is too narrow, it has fewer columns, the last ones left out."""
    cells = [[cell if isinstance(cell, Text) else Text(clean(cell)) for cell in row] for row in rows]
    widths = [max([len(name), *(row[place].cell_len for row in cells)]) for place, name in enumerate(columns)]
    shown = len(columns)
    # A pipe has no width, and whoever reads from it wants all.
    while out.is_terminal and shown > _NEEDED and sum(widths[:shown]) + 2 * (shown - 1) > out.width:
        shown -= 1
    for row in ([Text(name, style="dim") for name in columns], *cells):
        line = Text("  ").join(_padded(cell, width) for cell, width in zip(row[:shown], widths, strict=False))
        line.rstrip()
        out.print(line, soft_wrap=True)


def _padded(cell: Text, width: int) -> Text:
    cell.pad_right(width - cell.cell_len)
    return cell


def plain_table(*columns: str) -> Table:
    """A table without lines."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column)
    return table
