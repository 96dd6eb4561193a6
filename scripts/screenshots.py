"""Take the pictures in docs/screenshots and list them: `make screenshots`.

The server and its pages are the real ones; the course on them comes from `tests/browser/course.py`. A picture is a
line of `PICTURES`; `make screenshots ONLY=NAME` takes one of them again.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser import results
from tests.browser.conftest import DESKTOP, PHONE, Watched, launch
from tests.browser.course import populate
from tests.browser.stage import Stage, stage

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
WEB = Path(__file__).parents[1] / "web"
COMMAND = "make screenshots"
COLOURS = 96
"""Of a picture: pages have few, and a palette makes the file a third as large."""
MOST_BYTES = 120_000
MOST_TOGETHER = 3_000_000
"""Of everything in the folder."""
QUOTAS = {"run_quota_per_minute": "20", "submit_quota_per_minute": "1000"}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": DESKTOP},
    "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "is_mobile": True},
}


@dataclass(frozen=True)
class Picture:
    """One page as one person sees it.

    Attributes:
        path: after the server's address; `{course}`, `{rung}` and the names of `populate` stand for what they are.
        about: for the list.
        looks: `light` carries the plain name, the others theirs besides.
        at: the element that is brought to the top, a selector; `""` is the page's own.
    """

    name: str
    path: str
    who: str
    about: str
    looks: tuple[str, ...] = ("light",)
    at: str = ""


ALL = ("light", "dark", "phone")
PICTURES = (
    Picture("ladder", "{course}", "alice", "The ladder", ALL),
    Picture("assignment", "{rung}", "alice", "A rung: handout beside editor"),
    Picture("running", "/submissions/{running}", "bob", "Being graded"),
    Picture("passed", "/submissions/{fast}", "alice", "Passed, on an H200", ALL),
    Picture("roofline", "/submissions/{fast}", "alice", "Against the limits", ("light", "dark"), "#limits-title"),
    Picture("wrong-answer", "/submissions/{matrix}", "alice", "Wrong answer", ALL),
    Picture("diff", "/submissions/{fast}/diff", "alice", "Two versions"),
    Picture("machine-code", "/submissions/{fast}/machine-code#L13", "alice", "Machine code beside its source"),
    Picture("grades", "{course}/grades", "alice", "A student's grades", ("light", "phone")),
    Picture("leaderboard", "{rung}/leaderboard?lane=h200", "alice", "A leaderboard", ALL),
    Picture("standings", "{course}/standings", "alice", "Standings"),
    Picture("announcements", "{course}/announcements", "alice", "Announcements"),
    Picture("gradebook", "{course}/gradebook", "ines", "The gradebook", ("light", "dark")),
    Picture("review", "/submissions/{held}/evidence", "tom", "Held: the evidence"),
    Picture("comments", "/submissions/{wrong}/comments", "tom", "Comments at lines"),
    Picture("regrade-requests", "{course}/regrade-requests", "tom", "Requests for regrades"),
    Picture("statistics", "{course}/statistics", "ines", "Statistics"),
    Picture("roster", "{course}/roster", "ines", "The roster"),
    Picture("schedule", "{course}/schedule", "ines", "The schedule"),
    Picture("settings", "{course}/settings", "ines", "Settings"),
)
EDITOR = "run-beside-the-editor"

HEAD = """# Screenshots

Four are of a database that came back from a machine with an H200 on 25 November 2026, where `scripts/gpu_whole_way.py` had everything handed in and graded in containers: three rungs, and a submission that forges its
time. `python scripts/gpu_screenshots.py DIR` takes them (`docs/measurement.md`, *The whole way*).

| | |
|---|---|
| ![Passed on an H200, in a container](h200-passed.png) | ![A leaderboard of the H200](h200-leaderboard.png) |
| ![A submission that forges its time outside of batches, held for staff](h200-held.png) | ![The node, as operations see it](h200-node.png) |

`graded.png` is a submission that `ladder up` graded on 21 November 2026 (a softmax that forgets what stands beyond the last whole block of
columns).

"""  # noqa: E501  # a table and its text, as it stands in the file


def file_of(name: str, look: str) -> str:
    """`ladder`, `ladder-dark`: a picture's name without what says that it is a PNG."""
    return name if look == "light" else f"{name}-{look}"


def take(page: Page, name: str) -> None:
    """One picture, reduced to a palette; refused if it is larger than a repository should carry."""
    page.wait_for_timeout(600)
    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    reduced = taken.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    path = FOLDER / f"{name}.png"
    reduced.save(path, optimize=True)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} has {size:,} bytes, at most {MOST_BYTES:,} are kept")
    print(f"{path.name}: {size:,} bytes", flush=True)


def run_beside_the_editor(page: Page, scene: Stage) -> None:
    """A run that raised, with its line marked."""
    page.goto(scene.assignment_url())
    page.get_by_label("Lane").select_option("cpu")
    page.locator(".cm-content").focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(results.SOURCE.replace("program_id", "program"))
    page.keyboard.press("ControlOrMeta+Enter")
    expect(page.locator("[data-run-panel]")).to_contain_text("Queued")
    scene.finish(scene.claim(), results.crashed())
    expect(page.locator("[data-run-panel]")).to_contain_text("Runtime error")


def listed() -> str:
    """The page that lists them, two to a row."""
    shown = [(file_of(one.name, look), one.about, look) for one in PICTURES for look in one.looks]
    shown.append((EDITOR, "A run, beside the editor", "light"))
    cells = [f"![{about}{'' if look == 'light' else f', {look}'}]({file}.png)" for file, about, look in shown]
    cells += [""] * (len(cells) % 2)
    rows = [f"| {left} | {right} |" for left, right in zip(cells[::2], cells[1::2], strict=True)]
    when = datetime.now(UTC)
    told = (
        f"The others were taken by `{COMMAND}` on {when.day} {when:%B %Y} from prepared results, so that each state of "
        "a page is there; their numbers are made up.\n\n| | |\n|---|---|\n"
    )
    return HEAD + told + "\n".join(rows) + "\n"


def pages(watched: Watched) -> Callable[[str, str], Page]:
    """One page for each person and look, logged in when it is first asked for."""
    opened: dict[tuple[str, str], Page] = {}

    def call(who: str, look: str) -> Page:
        if (who, look) not in opened:
            opened[who, look] = watched.page(login=who, **LOOKS[look])
        return opened[who, look]

    return call


def take_all(scene: Stage, watched: Watched, only: Collection[str]) -> None:
    """Those of the names, or all."""
    names = populate(scene)
    names |= {
        "course": scene.course_url.removeprefix(scene.url),
        "rung": scene.assignment_url().removeprefix(scene.url),
    }
    page_of = pages(watched)
    for one in PICTURES:
        for look in one.looks if not only or one.name in only else ():
            page = page_of(one.who, look)
            page.goto(scene.url + one.path.format(**names))
            if one.at:
                page.locator(one.at).evaluate("element => element.scrollIntoView()")
            take(page, file_of(one.name, look))
    if not only or EDITOR in only:
        page = page_of("carol", "light")
        run_beside_the_editor(page, scene)
        take(page, EDITOR)


def main() -> None:
    """Take them, and write the list where all were taken."""
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        web = Path(folder) / "web"
        for part in ("templates", "static"):
            # A build that goes on meanwhile would take the files away under the server.
            shutil.copytree(WEB / part, web / part)
        with stage(Path(folder) / "home", web=str(web), **QUOTAS) as scene:
            browser = launch(playwright)
            watched = Watched(browser, scene)
            take_all(scene, watched, only)
            problems = watched.close()
            browser.close()
    if problems:
        raise SystemExit("\n".join(problems))
    together = sum(path.stat().st_size for path in FOLDER.glob("*.png"))
    if together > MOST_TOGETHER:
        raise SystemExit(f"the pictures have {together:,} bytes together, at most {MOST_TOGETHER:,} are kept")
    if not only:
        (FOLDER / "README.md").write_text(listed(), encoding="utf-8")
    print(f"{together:,} bytes in {FOLDER}")


if __name__ == "__main__":
    main()
