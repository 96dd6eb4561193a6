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
