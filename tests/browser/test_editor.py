"""The editor: drafts, files, keys, and nothing lost."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser import results
from tests.browser.conftest import PHONE, Watched
from tests.browser.stage import Stage
from tests.browser.test_the_whole_way import write

pytestmark = pytest.mark.browser
SLUG = "matmul_tiled"


def editor(page: Page, stage: Stage, slug: str = SLUG) -> None:
    page.goto(stage.assignment_url(slug))
    expect(page.locator(".cm-content")).to_be_visible()


def shown(page: Page) -> str:
    """What stands in the editor."""
    return page.locator(".cm-content").inner_text()


def test_a_draft_survives_leaving_the_page(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice")
    editor(page, a_stage)
    write(page, "# half a thought")
    page.goto(a_stage.course_url)
    editor(page, a_stage)
    assert shown(page) == "# half a thought"
    expect(page.locator("[data-draft-notice]")).to_contain_text("Your draft of")
    page.get_by_role("button", name="Discard it").click()
    expect(page.locator(".cm-content")).to_contain_text("import triton")
    page.get_by_role("button", name="Undo").click()
    assert shown(page) == "# half a thought"


def test_what_is_refused_stays_in_the_editor_with_the_reason(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="alice")
    watched.expected.append("422")
    editor(page, a_stage)
    write(page, "   \n")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("[data-form-problem]")).to_contain_text("The source is empty.")
    assert shown(page).strip() == ""
    page.keyboard.press("ControlOrMeta+Enter")
    expect(page.get_by_role("region", name="Result of your run")).to_contain_text("The source is empty.")


def test_a_file_opens_into_the_editor_and_undo_brings_the_text_back(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob")
    editor(page, a_stage)
    before = shown(page)
    page.locator("input[type=file]").set_input_files(
        {"name": "mine.py", "mimeType": "text/x-python", "buffer": b"# from a file\n"}
    )
    expect(page.locator(".cm-content")).to_contain_text("# from a file")
    page.get_by_role("button", name="Undo").click()
    # How many lines are drawn depends on where one was; what was there is there again.
    assert shown(page).startswith(before)


@pytest.mark.parametrize(
    ("content", "reason"), [(b"\x7fELF\0\0", "is not text"), (b"\xff\xfe", "is not text"), (b"#" * 2**21, "1 MiB")]
)
def test_a_file_that_is_no_source_is_refused_at_once(
    watched: Watched, a_stage: Stage, content: bytes, reason: str
) -> None:
    page = watched.page(login="bob")
    editor(page, a_stage)
    before = shown(page)
    page.locator("input[type=file]").set_input_files(
        {"name": "a.out", "mimeType": "application/octet-stream", "buffer": content}
    )
    expect(page.locator("[data-draft-notice]")).to_contain_text(reason)
    assert shown(page) == before


def test_the_editor_can_be_left_with_the_keyboard(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob")
    editor(page, a_stage)
    page.locator(".cm-content").focus()
    page.keyboard.press("Tab")
    expect(page.locator(".cm-content")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.locator(".cm-content")).not_to_be_focused()


LAPTOP = {"width": 1280, "height": 800}


def ran(page: Page, stage: Stage, slug: str) -> None:
    """A run that failed, beside the editor."""
    editor(page, stage, slug)
    write(page, "\n".join(f"# line {number}" for number in range(1, 61)))
    page.keyboard.press("ControlOrMeta+Enter")
    expect(page.locator(".run-panel .verdict")).to_contain_text("Queued")
    stage.finish(stage.claim(), results.crashed())
    expect(page.locator(".run-panel .verdict")).to_contain_text("Runtime error")


def whole_lines(page: Page) -> int:
    """How many lines of the text can be seen from top to bottom."""
    host = page.locator(".editor__host").bounding_box()
    boxes = [line.bounding_box() for line in page.locator(".cm-line").all()]
    return sum(host["y"] <= box["y"] and box["y"] + box["height"] <= host["y"] + host["height"] for box in boxes)


def test_twenty_lines_stand_beside_a_result_and_the_splitter_changes_that(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob", viewport=LAPTOP)
    ran(page, a_stage, "saxpy")
    page.evaluate("document.querySelector('.editor__host').shadowRoot.querySelector('.cm-scroller').scrollTop = 0")
    assert whole_lines(page) >= 20
    # Both strips are one row of controls, a saved draft said in the upper one.
    expect(page.locator("[data-draft-state]")).to_contain_text("Draft saved", timeout=30_000)
    for strip in (".editor__bar", ".editor__actions"):
        assert page.locator(strip).bounding_box()["height"] < 60

    panel, bar = page.locator(".run-panel"), page.get_by_role("separator", name="Height of the result")
    at_first = panel.bounding_box()["height"]
    bar.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("PageUp")
    assert panel.bounding_box()["height"] == pytest.approx(at_first + 6 * 20, abs=1)
    assert int(bar.get_attribute("aria-valuenow")) == pytest.approx(at_first + 6 * 20, abs=1)

    box = bar.bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, box["y"] + 64, steps=4)
    page.mouse.up()
    kept = panel.bounding_box()["height"]
    assert kept == pytest.approx(at_first + 60, abs=2)

    page.get_by_role("button", name="Close the result").click()
    expect(panel).to_be_hidden()
    expect(bar).to_be_hidden()
    expect(page.locator(".cm-content")).to_be_focused()

    ran(page, a_stage, "transpose")
    assert panel.bounding_box()["height"] == pytest.approx(kept, abs=1)
    bar.dblclick()
    assert panel.bounding_box()["height"] == pytest.approx(at_first, abs=1)


def test_the_editor_is_reached_with_few_keys_and_what_fits_is_no_stop(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob", viewport=LAPTOP)
    editor(page, a_stage)
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the editor")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_be_focused()
    stops = """[...document.querySelectorAll(".handout :is(.scroll, .maths, pre)")].map(
        (one) => [one.tabIndex === 0, one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight + 1])"""
    expect(page.locator(".handout .maths[tabindex='0']")).to_have_count(0)
    found = page.evaluate(stops)
    assert len(found) > 5
    assert [stop for stop, scrolls in found if stop and not scrolls] == []
    assert [stop for stop, scrolls in found if scrolls and not stop] == []


def test_on_a_phone_a_link_leads_to_the_editor_with_its_buttons(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob", viewport=PHONE, is_mobile=True, has_touch=True)
    editor(page, a_stage)
    link = page.get_by_role("link", name="To the editor", exact=True)
    expect(link).to_be_in_viewport()
    link.click()
    expect(page.get_by_role("button", name="Run")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Submit")).to_be_in_viewport(ratio=1)
    expect(page.locator(".editor__bar")).to_be_in_viewport(ratio=1)


def test_on_a_phone_what_went_wrong_stands_above_how_it_went(watched: Watched, a_stage: Stage) -> None:
    submission = a_stage.grade(results.wrong(), results.WRONG_SOURCE)
    page = watched.page(login="alice", viewport=PHONE, is_mobile=True, has_touch=True)
    page.goto(f"{a_stage.url}/submissions/{submission}")
    wrong = page.get_by_role("heading", name="What went wrong").bounding_box()
    went = page.get_by_role("heading", name="How it went").bounding_box()
    assert wrong["y"] < went["y"]


def test_every_page_leads_to_help_which_fits_a_screen(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(viewport=LAPTOP)
    page.goto(f"{a_stage.url}/login")
    page.get_by_role("link", name="Help", exact=True).click()
    for title in ("Verdicts", "Lanes", "Points", "Held results", "Late days"):
        expect(page.get_by_role("heading", name=title)).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollHeight") <= LAPTOP["height"]


def test_a_version_opens_in_the_editor_again(watched: Watched, a_stage: Stage) -> None:
    submission = a_stage.grade(results.wrong(), results.WRONG_SOURCE)
    page = watched.page(login="alice")
    page.goto(f"{a_stage.url}/submissions/{submission}")
    page.get_by_role("link", name="Edit this version").click()
    expect(page.locator(".cm-content")).to_contain_text("n // block")


def test_on_a_phone_the_editor_stands_below_the_handout(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="bob", viewport=PHONE, is_mobile=True, has_touch=True)
    editor(page, a_stage)
    handout, form = page.locator("article.handout").bounding_box(), page.locator("form.editor").bounding_box()
    assert handout is not None
    assert form is not None
    assert form["y"] >= handout["y"] + handout["height"]
    assert form["width"] <= PHONE["width"]
    page.locator(".cm-content").scroll_into_view_if_needed()
    page.locator(".cm-content").focus()
    page.keyboard.insert_text("x = 1\n" * 10)  # Another test may have left a draft of one line.
    # The numbers stand beside their lines.
    number = page.locator(".cm-lineNumbers .cm-gutterElement:visible").nth(5)
    line = page.locator(".cm-line").nth(int(number.inner_text()) - 1)
    expect.set_options(timeout=5_000)
    page.wait_for_timeout(200)
    assert number.bounding_box()["y"] == pytest.approx(line.bounding_box()["y"], abs=2)
