"""A node's report in words: Markdown that reads well in a terminal too. Everything in it stands in the document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from autograder import languages

Document = dict[str, Any]


def page(report: Document) -> str:
    """The report as Markdown."""
    parts = (_head, _problems, _self_test, _noise, _rungs, _clocks, _red_team, _rest)
    return "\n".join(line for part in parts for line in part(report)) + "\n"


def _head(report: Document) -> Iterator[str]:
    node = report["node"]
    verdict = "accepted" if report["accepted"] else "not accepted"
    yield f"# Node {node.get('host', '?')}, lane {report['lane']}: {verdict}"
    yield ""
    yield f"Made {report['made_at']} in {report['seconds']:.0f} s. " + ", ".join(
        f"{name} {node[name]}"
        for name in ("gpu", "gpu driver", "system", "torch", *languages.distributions())
        if name in node
    )
    sandbox = report["sandbox"]
    if sandbox:
        missing = ", ".join(sandbox["missing"]) or "none"
        yield f"Sandbox: {sandbox['driver']}; guarantees given: {len(sandbox['kept'])}; missing: {missing}."


def _problems(report: Document) -> Iterator[str]:
    if report["problems"]:
        yield from ("", "## What is wrong", "", *(f"- {problem}" for problem in report["problems"]))


def _self_test(report: Document) -> Iterator[str]:
    tried = report["self_test"] or []
    if not tried:
        yield from ("", "## Self-test", "", "Not tried.")
        return
    yield from ("", "## Self-test: known jobs and escapes", "", "| file | verdict | s | |", "|---|---|---:|---|")
    for one in tried:
        yield f"| {one['name']} | {one['verdict']} | {one['seconds']:.1f} | {one['trouble'] or 'as expected'} |"


def _noise(report: Document) -> Iterator[str]:
    yield from ("", "## Noise floor", "")
    noise = report["noise"] or {}
    floor = noise.get("calibration")
    if not floor:
        yield f"Not known: the golden kernel was tried {len(noise.get('songs', ()))} times."
        return
    yield (
        f"The golden kernel beside itself, {floor['gradings']} measurements: ratio {floor['ratio']:.4f}, at most "
        f"{floor['ratio_spread']:.2%} from it; time {floor['time_us']:.1f} µs, at most {floor['time_spread']:.2%} from "
        f"it; {noise['doubtful']} had to be repeated."
    )


def _rungs(report: Document) -> Iterator[str]:
    yield from ("", "## Staff kernels", "")
    yield "| rung | check s | measure s | case | µs | ratio [95 %] | TB/s | TFLOP/s | of the data sheet's limit |"
    yield "|---|---:|---:|---|---:|---|---:|---:|---:|"
    for rung in report["rungs"] or []:
        name = f"{rung['slug']} ({rung['language']})"
        seconds = [f"{rung[work]['seconds']:.1f}" if work in rung else "–" for work in ("check", "measure")]
        for number, one in enumerate(rung["cases"] or [{}]):
            first = [name, *seconds] if number == 0 else ["", "", ""]
            yield "| " + " | ".join([*first, *_case(one)]) + " |"


def _case(one: Document) -> list[str]:
    if not one:
        return ["not measured", "", "", "", "", ""]
    ratio, low, high = one["ratio"]
    limit = f"{one['of_the_floor']:.0%}" if one["of_the_floor"] else "–"
    return [
        one["case"],
        f"{one['time_us'][0]:.1f}",
        f"{ratio:.4f} [{low:.4f}, {high:.4f}]",
        f"{one['terabytes_per_s']:.2f}",
        f"{one['teraflops']:.1f}",
        limit,
    ]


def _clocks(report: Document) -> Iterator[str]:
    yield from ("", "## Clocks", "")
    yield "| case | null, µs | K | sealed bound, µs | above the event clock | A/A drift | allowed |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for rung in report["rungs"] or []:
        for one in rung["cases"]:
            if one["bound"] or one["control"]:
                yield f"| {rung['slug']}, {one['case']} | " + " | ".join(_clock(one)) + " |"


def _clock(one: Document) -> list[str]:
    bound, control = one["bound"], one["control"]
    first = ["–"] * 4
    if bound:
        null = f"{min(bound['null_us']):.0f}" if bound["null_us"] else "–"
        first = [null, str(bound["calls"]), f"{bound['sealed_us']:.1f}", f"{bound['excess']:+.2%}"]
    second = [f"{control['drift']:+.2%}", f"{control['tolerance']:.2%}"] if control else ["–", "–"]
    return [*first, *second]


def _red_team(report: Document) -> Iterator[str]:
    found = report["red_team"] or {}
    yield from ("", "## Red team", "")
    if "counts" not in found:
        yield f"Not run: {found.get('skipped', 'it broke')}"
        return
    yield ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in found["counts"].items())
    for row in found["differing"]:
        yield f"- {row['attack']} ({row['lane']}, {row['sandbox']}): {row['outcome']}, {row['verdict']}"


def _rest(report: Document) -> Iterator[str]:
    left = report["left_behind"] or {}
    yield from ("", "## Left behind", "")
    if left.get("baseline_mib") is None:
        yield left.get("trouble") or "There is no NVML here: what is left on a GPU is not known."
    else:
        yield left["trouble"] or f"Nothing: {left['baseline_mib']} MiB of the GPU are in use, as before."
    if signature := report.get("signature"):
        yield from ("", f"Signed with the Ed25519 key `{signature['key']}`.")
