"""A deadline night: a double click, a login that ended, a network that comes and goes, two windows."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from sqlalchemy import delete, func, select

from server.comments import rubrics
from server.courses import courses, demo
from server.models import LoginSession, Mode, Submission, User
from tests.browser import results
from tests.browser.conftest import Watched
from tests.browser.stage import Stage
from tests.browser.test_editor import editor, shown
from tests.browser.test_student import SAVED, state
from tests.browser.test_the_whole_way import write

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
LAPTOP = {"width": 1280, "height": 800}
WHO = "bob"
AGAIN = "**/api/v1/courses/*/assignments/*/drafts"
SAVING = "**/api/v1/courses/*/assignments/*/drafts/*"


@pytest.fixture(autouse=True)
def _patient() -> Iterator[None]:
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(autouse=True)
def _nothing_waits(a_stage: Stage) -> None:
    """The stage is shared: what another test left would be the next that this one claims."""
    _grade_all(a_stage)


def _handed_in(stage: Stage, mode: Mode) -> int:
    with stage.database.reading() as session:
        mine = select(func.count(Submission.id)).join(User).where(User.email == f"{WHO}@example.org")
        return session.scalar(mine.where(Submission.mode == mode)) or 0


def _end_logins(stage: Stage) -> None:
    with stage.database.transaction() as session:
        user = session.scalars(select(User).where(User.email == f"{WHO}@example.org")).one()
        session.execute(delete(LoginSession).where(LoginSession.user_id == user.id))


def _notice(page: Page):  # Playwright's locator
    return page.locator("[data-draft-notice]")


def _grade_all(stage: Stage) -> None:
    while (task := stage.next_task()) is not None:
        stage.finish(task, results.passed())


def test_a_double_click_hands_in_once(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    editor(page, a_stage, "vector_add")
    write(page, "# once\n")
    # What would leave the page is counted, and stays here: as with a server that takes its time.
    page.evaluate("""() => {
      window.sent = 0;
      document.querySelector("form[data-editor]").addEventListener("submit", (event) => {
        window.sent += event.defaultPrevented ? 0 : 1;
        event.preventDefault();
      });
    }""")
    button = page.get_by_role("button", name="Submit")
    for _ in range(3):
        button.click()
    expect(_notice(page)).to_contain_text("being handed in already")
    assert page.evaluate("window.sent") == 1
    write(page, "# another\n")
    button.click()
    assert page.evaluate("window.sent") == 2


def test_keys_that_are_held_down_run_once(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    editor(page, a_stage, "vector_add")
    write(page, "# once\n")
    before = _handed_in(a_stage, Mode.run)
    # Held back, as a quick answer between two of the keys would make the later one another run, and rightly.
    held: list[Route] = []
    page.route("**/assignments/vector_add/submissions", lambda route: held.append(route))  # noqa: PLW0108  # it asks for a function
    for _ in range(4):
        page.keyboard.press("ControlOrMeta+Enter")
    expect(page.get_by_role("region", name="Result of your run")).to_contain_text("Sending")
    page.wait_for_timeout(500)
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator("[data-run-panel] [data-part=head]")).to_be_visible()
    assert _handed_in(a_stage, Mode.run) == before + 1
    _grade_all(a_stage)


def test_a_run_after_the_login_ended_says_what_to_do(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("401")
    page = watched.page(login=WHO)
    editor(page, a_stage, "vector_add")
    write(page, "# still here\n")
    _end_logins(a_stage)
    page.keyboard.press("ControlOrMeta+Enter")
    panel = page.get_by_role("region", name="Result of your run")
    expect(panel).to_contain_text("Your session has ended")
    expect(panel).to_contain_text("Log in in another tab")
    assert "# still here" in shown(page)


def test_a_run_that_gets_no_answer_says_so(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    page.clock.install()
    editor(page, a_stage, "vector_add")
    page.route("**/assignments/vector_add/submissions", lambda _route: None)
    page.locator(".cm-content").focus()
    page.keyboard.press("ControlOrMeta+Enter")
    panel = page.get_by_role("region", name="Result of your run")
    expect(panel).to_contain_text("Sending")
    page.clock.fast_forward(60_000)
    expect(panel).to_contain_text("could not be reached")


def test_a_page_whose_login_ended_does_not_blame_the_network(watched: Watched, a_stage: Stage) -> None:
    watched.expected.extend(["401", "MIME type", "EventSource"])
    waiting = a_stage.submit("# waits\n", email=f"{WHO}@example.org")
    page = watched.page(login=WHO)
    page.goto(f"{a_stage.url}/submissions/{waiting}")
    expect(page.locator("[data-part=head]")).to_contain_text("Queued")
    _end_logins(a_stage)
    _grade_all(a_stage)
    lost = page.locator("[data-live-lost]")
    expect(lost).to_contain_text("Your session has ended")
    expect(lost.get_by_role("link", name="Log in")).to_be_visible()


def _behind(watched: Watched, stage: Stage, slug: str) -> tuple[Page, Page]:
    """Two windows; the first, which wrote `# mine`, is behind the second."""
    watched.expected.append("409")
    first, second = watched.page(login=WHO), watched.page(login=WHO)
    editor(first, stage, slug)
    editor(second, stage, slug)
    write(second, f"# the newer of {slug}")
    expect(state(second)).to_have_text(SAVED)
    write(first, "# mine")
    expect(_notice(first)).to_contain_text("Another window saved a newer draft")
    return first, second


def test_what_is_written_while_behind_comes_back_whole(watched: Watched, a_stage: Stage) -> None:
    first, _ = _behind(watched, a_stage, "saxpy")
    first.locator(".cm-content").focus()
    first.keyboard.press("ControlOrMeta+End")
    first.keyboard.insert_text(", and ten minutes more")
    first.get_by_role("button", name="Show the newer one").click()
    first.get_by_role("button", name="Back to mine").click()
    assert shown(first) == "# mine, and ten minutes more"


def test_what_is_written_while_behind_outlives_the_window(watched: Watched, a_stage: Stage) -> None:
    first, _ = _behind(watched, a_stage, "transpose")
    first.locator(".cm-content").focus()
    first.keyboard.press("ControlOrMeta+End")
    first.keyboard.insert_text(", and ten minutes more")
    # The window that is ahead may be another tab of the same browser, which shares what is kept in it.
    tab = first.context.new_page()
    editor(tab, a_stage, "transpose")
    write(tab, "# ahead")
    expect(state(tab)).to_have_text(SAVED)
    first.close()
    tab.reload()
    tab.get_by_role("button", name="Show it").click()
    assert shown(tab) == "# mine, and ten minutes more"


def test_being_behind_is_said_again_where_a_language_was_changed(watched: Watched, a_stage: Stage) -> None:
    first, _ = _behind(watched, a_stage, "reduction")
    first.get_by_label("Language").select_option("cuda")
    first.get_by_label("Language").select_option("triton")
    assert shown(first) == "# mine"
    expect(_notice(first)).to_contain_text("Another window saved a newer draft")
    first.get_by_role("button", name="Keep mine").click()
    expect(state(first)).to_have_text(SAVED)


def test_keeping_mine_keeps_the_other_in_this_browser(watched: Watched, a_stage: Stage) -> None:
    first, _ = _behind(watched, a_stage, "bias_gelu_dropout")
    first.get_by_role("button", name="Keep mine").click()
    expect(state(first)).to_have_text(SAVED)
    first.reload()
    assert shown(first) == "# mine"
    first.get_by_role("button", name="Show it").click()
    assert shown(first) == "# the newer of bias_gelu_dropout"


def test_who_looks_at_the_other_language_finds_the_work_again(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    editor(page, a_stage, "residual_norm")
    write(page, "# an evening's work")
    expect(state(page)).to_have_text(SAVED)
    page.get_by_label("Language").select_option("cuda")
    expect(page.locator(".cm-content")).not_to_contain_text("an evening's work")
    page.wait_for_timeout(3_000)  # As long as a draft would be saved in.
    page.get_by_label("Language").select_option("triton")
    assert shown(page) == "# an evening's work"
    editor(page, a_stage, "residual_norm")
    expect(page.get_by_label("Language")).to_have_value("triton")
    assert shown(page) == "# an evening's work"


def test_who_looks_at_the_other_language_finds_what_was_handed_in_again(watched: Watched, a_stage: Stage) -> None:
    a_stage.grade(results.wrong(), results.WRONG_SOURCE, email=f"{WHO}@example.org", slug="scan_histogram")
    page = watched.page(login=WHO)
    editor(page, a_stage, "scan_histogram")
    before = shown(page)
    assert "n // block" in before
    page.get_by_label("Language").select_option("cuda")
    page.get_by_label("Language").select_option("triton")
    assert shown(page) == before


def test_lines_of_a_run_are_not_marked_in_a_text_that_was_changed_since(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    for changed in (False, True):
        editor(page, a_stage, "matmul_naive")
        write(page, results.WRONG_SOURCE)
        page.keyboard.press("ControlOrMeta+Enter")
        expect(page.locator("[data-run-panel]")).to_contain_text("ueue")
        if changed:
            page.locator(".cm-content").focus()
            page.keyboard.press("ControlOrMeta+Home")
            page.keyboard.insert_text("# above\n")
        a_stage.finish(a_stage.claim(), results.crashed())
        expect(page.locator("[data-run-panel]")).to_contain_text("Runtime error")
        expect(page.locator(".cm-lint-marker-error")).to_have_count(0 if changed else 1)


A_STREAM = """
window.EventSource = class extends EventTarget {
  static CLOSED = 2;
  constructor() { super(); window.stream = this; }
  close() {}
};
"""
A_PART = """html => {
  const name = document.querySelector("[data-live] [data-part]").dataset.part;
  stream.dispatchEvent(new MessageEvent("part", { data: JSON.stringify({ name, html }) }));
}"""


def test_news_of_a_submission_leave_what_somebody_writes(watched: Watched, a_stage: Stage) -> None:
    """The reason of a decision stands in a part of the page that changes when a regrade ends."""
    waiting = a_stage.submit(results.SOURCE, email=f"{WHO}@example.org")
    page = watched.page(login="ines")
    page.add_init_script(A_STREAM)
    page.goto(f"{a_stage.url}/submissions/{waiting}")
    page.evaluate(A_PART, '<input id="why" value="as it came">')
    page.locator("#why").fill("half a sentence")
    page.evaluate(A_PART, '<p>Regraded.</p><input id="why" value="as it came">')
    expect(page.get_by_text("Regraded.")).to_be_visible()
    expect(page.locator("#why")).to_have_value("half a sentence")
    expect(page.locator("#why")).to_be_focused()


@pytest.mark.quick
def test_a_form_is_sent_once_for_two_clicks(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.goto(f"{a_stage.course_url}/announcements/new")
    page.get_by_label("Title").fill("Moved to Monday")
    page.get_by_label("Text").fill("Everything.")
    asked: list[Route] = []

    def late(route: Route) -> None:
        if route.request.method == "POST":
            asked.append(route)
        else:
            route.continue_()

    page.route("**/announcements", late)
    button = page.get_by_role("button", name="Publish")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box
    for _ in range(2):
        # By the mouse itself: a locator waits until the first click's page is there.
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        wait_for(page, asked)
        page.wait_for_timeout(500)
    assert len(asked) == 1
    asked[0].continue_()
    page.wait_for_url(lambda url: not url.endswith("/new"))


def test_a_network_that_breaks_while_behind_leaves_nobody_stuck(watched: Watched, a_stage: Stage) -> None:
    watched.expected.extend(["409", "ERR_FAILED"])
    first, second = watched.page(login=WHO), watched.page(login=WHO)
    editor(first, a_stage, "softmax")
    editor(second, a_stage, "softmax")
    write(second, "# the newer of softmax")
    expect(state(second)).to_have_text(SAVED)

    def refuse(route: Route) -> None:
        route.abort()

    first.route(AGAIN, refuse)
    write(first, "# mine")
    expect(state(first)).to_contain_text("kept in this browser")
    first.unroute(AGAIN, refuse)
    expect(_notice(first)).to_contain_text("Another window saved a newer draft")


def test_a_draft_is_not_written_over_by_an_older_version(watched: Watched, a_stage: Stage) -> None:
    version = a_stage.grade(results.wrong(), results.WRONG_SOURCE, email=f"{WHO}@example.org", slug="layernorm")
    page = watched.page(login=WHO)
    editor(page, a_stage, "layernorm")
    write(page, "# an evening's work")
    expect(state(page)).to_have_text(SAVED)
    page.goto(f"{a_stage.assignment_url('layernorm')}?version={version}")
    expect(page.locator(".cm-content")).to_contain_text("n // block")
    expect(_notice(page)).to_contain_text("is kept in this browser")
    write(page, "# a small change")
    expect(state(page)).to_have_text(SAVED)
    editor(page, a_stage, "layernorm")
    page.get_by_role("button", name="Show it").click()
    assert shown(page) == "# an evening's work"


def test_a_draft_that_gets_no_answer_is_sent_again(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    page.clock.install()
    editor(page, a_stage, "matmul_tiled")
    hung = []

    def hang(route: Route) -> None:
        hung.append(route)

    page.route(SAVING, hang)
    write(page, "# into the void")
    page.clock.run_for(2_000)
    expect(state(page)).to_contain_text("Saving")
    page.clock.run_for(40_000)
    expect(state(page)).to_contain_text("kept in this browser")
    page.unroute(SAVING, hang)
    page.clock.run_for(10_000)
    expect(state(page)).to_have_text(SAVED)


def test_the_focus_goes_on_where_a_notice_was_answered(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login=WHO)
    editor(page, a_stage, "vector_add")
    page.get_by_role("button", name="Reset").press("Enter")
    page.get_by_role("button", name="Undo").press("Enter")
    expect(page.locator(".cm-content")).to_be_focused()


def test_a_button_that_copies_has_its_name_again(watched: Watched, a_stage: Stage) -> None:
    submission = a_stage.grade(results.wrong(), results.WRONG_SOURCE, email=f"{WHO}@example.org")
    page = watched.page(login=WHO)
    page.goto(f"{a_stage.url}/submissions/{submission}")
    button = page.locator("[data-copy]")
    button.click()
    expect(button).to_have_text(re.compile("Copied|Selected"))
    button.click()
    page.wait_for_timeout(2500)
    expect(button).to_have_text("Copy")


def test_the_gradebook_shows_many_students_and_always_the_total(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines", viewport=LAPTOP)
    page.goto(f"{a_stage.course_url}/gradebook")
    row, head = page.locator("[data-gradebook] tbody tr").first, page.locator("[data-gradebook] thead")
    top = box_of(head)["y"] + box_of(head)["height"]
    assert (LAPTOP["height"] - top) // box_of(row)["height"] >= 15
    total = row.locator(".gradebook__total")
    before = box_of(total)
    page.locator(".gradebook__scroll").evaluate("box => { box.scrollLeft = box.scrollWidth }")
    assert box_of(total) == before
    assert before["x"] + before["width"] < LAPTOP["width"]


def test_the_schedule_fits_a_laptop_and_can_be_saved_from_anywhere(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines", viewport=LAPTOP)
    page.goto(f"{a_stage.course_url}/schedule")
    assert page.locator("#schedule .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
    expect(page.get_by_role("button", name="Save the schedule")).to_be_in_viewport(ratio=1)
    page.locator("#schedule details summary").first.press("Enter")
    expect(page.locator("#schedule details input").first).to_be_visible()
    assert page.locator("#schedule .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")


def test_a_student_is_found_with_the_keyboard_alone(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines", java_script_enabled=False)
    page.goto(f"{a_stage.course_url}/extensions")
    page.get_by_label("Find a student").focus()
    page.keyboard.type("alice")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Students: e-mail addresses or student ids")).to_have_value("alice@example.org")
    expect(page.get_by_label("New due date", exact=False)).to_be_visible()
    page.get_by_label("Late days for the whole term").check()
    expect(page.get_by_label("New due date", exact=False)).to_be_hidden()


def box_of(one: Locator) -> dict[str, float]:
    """Where it is drawn."""
    found = one.bounding_box()
    assert found is not None
    return dict(found)


def test_escape_closes_no_grade_that_somebody_writes_about(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.goto(f"{a_stage.course_url}/gradebook")
    page.locator("[data-gradebook] tbody td a").first.click()
    reason = page.get_by_label("Why", exact=True)
    reason.fill("The node was down that night")
    reason.press("Escape")
    assert reason.input_value() == "The node was down that night"
    reason.fill("")
    reason.press("Escape")
    expect(page.locator("[data-gradebook-panel]")).to_be_hidden()


def later_files(part: str) -> re.Pattern[str]:
    """The scripts that a built file asks for when it needs them."""
    text = next((ROOT / "web/static/dist").glob(f"{part}-*.js")).read_text(encoding="utf-8")
    names = re.findall(r'import\("\./([\w-]+\.js)"\)', text)
    assert names
    return re.compile("|".join(re.escape(name) for name in names))


def test_an_editor_whose_colours_do_not_come_is_one_and_has_them_later(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("ERR_FAILED")
    page = watched.page(login=WHO)
    colours = later_files("editor")
    page.route(colours, lambda route: route.abort())
    editor(page, a_stage, "reduction")
    write(page, "def plain(): return 1")
    expect(state(page)).to_have_text(SAVED)
    coloured = page.locator(".cm-line span").filter(has_text=re.compile("^def$"))
    expect(coloured).to_have_count(0)
    page.unroute(colours)
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(coloured).to_have_count(1)


def test_a_chart_that_cannot_be_drawn_leaves_its_page_as_it_is(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("ERR_FAILED")
    source = f"{results.SOURCE}# of this test alone\nALONE = 1\n"
    measured = a_stage.grade(results.passed(), source, email=f"{WHO}@example.org")
    page = watched.page(login=WHO)
    drawing = later_files("charts")
    # Charts come last, and a busy machine is late.
    with page.expect_event("requestfailed", lambda request: drawing.search(request.url) is not None, timeout=60_000):
        page.route(drawing, lambda route: route.abort())
        page.goto(f"{a_stage.url}/submissions/{measured}")
    expect(page.locator("figure[data-chart]").first).to_be_visible()
    expect(page.locator("figure[data-chart] svg")).to_have_count(0)


def first_hangs(page: Page, address: str) -> list[Route]:
    """The first request there gets no answer; what was asked. Its route stays: taken away it would be answered."""
    asked: list[Route] = []

    def answer(route: Route) -> None:
        asked.append(route)
        if len(asked) > 1:
            route.continue_()

    page.route(address, answer)
    return asked


def wait_for(page: Page, asked: list[Route]) -> None:
    """Until the page has asked; a busy machine is late."""
    deadline = time.monotonic() + 20
    while not asked and time.monotonic() < deadline:
        page.wait_for_timeout(20)
    assert asked


def test_a_grade_that_gets_no_answer_becomes_a_page_of_its_own(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.clock.install()
    page.goto(f"{a_stage.course_url}/gradebook")
    cell = page.locator("[data-gradebook] tbody td a").first
    address = cell.get_attribute("href") or ""
    asked = first_hangs(page, f"**{address}")
    cell.click()
    wait_for(page, asked)
    page.clock.run_for(40_000)
    page.wait_for_url(f"**{address}")


def test_a_grade_that_gets_no_answer_disturbs_nobody_who_looks_at_another(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.clock.install()
    page.goto(f"{a_stage.course_url}/gradebook")
    first, second = page.locator("[data-gradebook] tbody td a").all()[:2]
    asked = first_hangs(page, f"**{first.get_attribute('href')}")
    first.click()
    wait_for(page, asked)
    second.click()
    reason = page.locator("[data-gradebook-panel] textarea, [data-gradebook-panel] input[type=text]").first
    reason.fill("A long reason")
    page.clock.run_for(60_000)
    page.wait_for_timeout(200)
    assert page.url.endswith("/gradebook")
    expect(reason).to_have_value("A long reason")


def answered_while_writing(page: Page, late: Route, address: str) -> Locator:
    """Write why, and have the answer that is late come then; the field, which holds what was written."""
    reason = page.get_by_label("Why", exact=True)
    reason.fill("A long reason")
    with page.expect_response(address):
        late.continue_()
    page.wait_for_timeout(300)
    expect(reason).to_have_value("A long reason")
    return reason


def test_a_grade_that_was_asked_for_twice_is_not_put_over_what_somebody_writes(
    watched: Watched, a_stage: Stage
) -> None:
    page = watched.page(login="ines")
    page.goto(f"{a_stage.course_url}/gradebook")
    cell = page.locator("[data-gradebook] tbody td a").first
    address = f"**{cell.get_attribute('href')}"
    asked = first_hangs(page, address)
    cell.click()
    wait_for(page, asked)
    cell.click()
    reason = answered_while_writing(page, asked[0], address)
    expect(reason).to_be_focused()


def test_another_grade_that_comes_late_is_not_put_over_what_somebody_writes(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.goto(f"{a_stage.course_url}/gradebook")
    first, second = page.locator("[data-gradebook] tbody td a").all()[:2]
    second.click()
    title = page.locator("#cell-title")
    expect(title).to_be_focused()
    shown = title.inner_text()
    address = f"**{first.get_attribute('href')}"
    asked = first_hangs(page, address)
    first.click()
    wait_for(page, asked)
    reason = answered_while_writing(page, asked[0], address)
    # The reason is about the grade that is there.
    assert title.inner_text() == shown
    reason.fill("")
    reason.press("Escape")
    expect(second).to_be_focused()


def test_who_leaves_what_they_wrote_gets_the_grade_they_asked_for(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.goto(f"{a_stage.course_url}/gradebook")
    first, second = page.locator("[data-gradebook] tbody td a").all()[:2]
    first.click()
    page.get_by_label("Why", exact=True).fill("Not this one")
    before = page.locator("#cell-title").inner_text()
    page.once("dialog", lambda dialog: dialog.accept())
    second.click()
    expect(page.locator("#cell-title")).not_to_have_text(before)
    expect(page.get_by_label("Why", exact=True)).to_have_value("")


# --- forms beside each other -----------------------------------------------------------------------------------------


def _graded_by_hand(stage: Stage) -> str:
    """The page where a work of Bob's is graded, with a rubric of two items."""
    work = stage.submit(results.SOURCE, email=f"{WHO}@example.org", slug="saxpy")
    _grade_all(stage)
    with stage.database.transaction() as session:
        tom = session.scalars(select(User).where(User.email == "tom@example.org")).one()
        member = courses.membership(session, tom, demo.SLUG)
        row = courses.assignment_of(session, member, "saxpy").row
        if not rubrics.items_of(session, row.id):
            for text, points in (("Clear", 3.0), ("No units", -1.0)):
                rubrics.add_item(session, member, row, group="Writing", text=text, points=points)
    return f"{stage.url}/submissions/{work}/comments"


@pytest.mark.quick
def test_a_comment_that_is_sent_leaves_the_ticks_of_the_rubric(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="tom")
    page.goto(_graded_by_hand(a_stage))
    box = page.get_by_role("checkbox", name="Clear")
    box.set_checked(not box.is_checked())
    ticked, total = box.is_checked(), page.locator("[data-total]").inner_text()
    page.get_by_label("Text (Markdown)").fill("Which index is the last?")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("article").filter(has_text="Which index is the last?")).to_be_visible()
    expect(box).to_be_checked(checked=ticked)
    expect(page.locator("[data-total]")).to_have_text(total)
    # What was sent is not there once more.
    expect(page.get_by_label("Text (Markdown)")).to_have_value("")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".rubric__total")).to_contain_text("by Tom Turner")
    page.reload()
    expect(box).to_be_checked(checked=ticked)


def test_a_rubric_that_is_saved_leaves_the_comment(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="tom")
    address = _graded_by_hand(a_stage)
    page.goto(address)
    page.locator("#L2 [data-line]").click()
    text = page.get_by_label("Text (Markdown)")
    text.fill("Half a sentence")
    # A list of choices takes letters for itself; a box to tick does not.
    box = page.get_by_role("checkbox", name="Clear")
    box.focus()
    with page.expect_navigation():
        page.keyboard.press("s")
    expect(text).to_have_value("Half a sentence")
    expect(page.get_by_role("textbox", name="Lines")).to_have_value("2")
    expect(page.locator(".line--chosen")).to_have_count(1)
    # The next student is no place for it; it is where it was.
    other = a_stage.submit(results.SOURCE, email="carol@example.org", slug="saxpy")
    _grade_all(a_stage)
    page.reload()
    said = []
    page.once("dialog", lambda dialog: said.append(dialog.message) or dialog.dismiss())
    box.focus()
    page.keyboard.press("n")
    expect(text).to_have_value("Half a sentence")
    assert "not sent yet" in said[0]
    page.once("dialog", lambda dialog: dialog.accept())
    page.keyboard.press("n")
    page.wait_for_url(f"**/submissions/{other}/comments")
    expect(text).to_have_value("")
    page.goto(address)
    expect(text).to_have_value("Half a sentence")


def test_ticks_that_were_kept_are_not_saved_over_what_another_grader_saved(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("409")
    address = _graded_by_hand(a_stage)
    first, second = watched.page(login="tom"), watched.page(login="ines")
    for page in (first, second):
        page.goto(address)
    units = first.get_by_role("checkbox", name="No units")
    units.set_checked(not units.is_checked())
    ticked = units.is_checked()
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.locator(".rubric__total")).to_contain_text("by Ines Iglesias")
    first.get_by_label("Text (Markdown)").fill("Between the two")
    first.get_by_role("button", name="Comment", exact=True).click()
    expect(first.get_by_role("article").filter(has_text="Between the two")).to_be_visible()
    first.get_by_role("button", name="Save", exact=True).click()
    expect(first.get_by_role("alert")).to_contain_text("Somebody else graded this student meanwhile")
    expect(first.get_by_role("alert")).to_contain_text("Ines Iglesias")
    expect(first.get_by_role("alert")).to_be_focused()
    expect(units).to_be_checked(checked=ticked)
    # Refused, they are as little stored as before.
    first.get_by_label("Text (Markdown)").fill("And once more")
    first.get_by_role("button", name="Comment", exact=True).click()
    expect(first.get_by_role("article").filter(has_text="And once more")).to_be_visible()
    expect(units).to_be_checked(checked=ticked)
    second.get_by_role("button", name="Save", exact=True).click()
    expect(second.locator(".rubric__total")).to_contain_text("by Ines Iglesias")
    first.get_by_role("button", name="Save", exact=True).click()
    expect(first.get_by_role("alert")).to_contain_text("The same items are ticked")
    expect(units).to_be_checked(checked=ticked)
    first.get_by_role("link", name="use the saved ones").click()
    expect(first.get_by_role("alert")).to_have_count(0)
    expect(units).to_be_checked(checked=not ticked)
    units.set_checked(ticked)
    first.get_by_role("button", name="Save", exact=True).click()
    expect(first.locator(".rubric__total")).to_contain_text("by Tom Turner")


# --- answers that are lost -------------------------------------------------------------------------------------------

TAKING = "**/assignments/*/submissions"


def lose_the_answer(page: Page) -> None:
    """The next time that something is handed in the server takes it, and its answer never comes."""

    def lose(route: Route) -> None:
        route.fetch(max_redirects=0)
        route.abort()

    page.route(TAKING, lose, times=1)


def test_a_run_whose_answer_was_lost_is_the_same_run_when_it_is_sent_again(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("ERR_FAILED")
    page = watched.page(login=WHO)
    editor(page, a_stage, "vector_add")
    write(page, "# lost on its way back\n")
    before = _handed_in(a_stage, Mode.run)
    lose_the_answer(page)
    page.keyboard.press("ControlOrMeta+Enter")
    panel = page.get_by_role("region", name="Result of your run")
    expect(panel).to_contain_text("could not be reached")
    for number in (1, 2):
        # The same again, once there was an answer, is another one.
        page.locator(".cm-content").focus()
        with page.expect_response(TAKING):
            page.keyboard.press("ControlOrMeta+Enter")
        expect(panel.locator("[data-part=head]")).to_be_visible()
        assert _handed_in(a_stage, Mode.run) == before + number
    _grade_all(a_stage)


def test_a_submission_whose_answer_was_lost_is_the_same_when_it_is_sent_again(watched: Watched, a_stage: Stage) -> None:
    watched.expected.append("ERR_FAILED")
    page = watched.page(login=WHO)
    editor(page, a_stage, "vector_add")
    write(page, "# lost on its way back\n")
    before = _handed_in(a_stage, Mode.submission)
    lose_the_answer(page)
    page.keyboard.press("ControlOrMeta+Shift+Enter")
    expect(page).to_have_url(re.compile("^chrome-error:"))
    for number in (1, 2):
        editor(page, a_stage, "vector_add")
        assert "# lost on its way back" in shown(page)
        page.get_by_role("button", name="Submit").click()
        page.wait_for_url("**/submissions/*")
        expect(page.locator("[data-part=head]")).to_be_visible()
        assert _handed_in(a_stage, Mode.submission) == before + number
    editor(page, a_stage, "vector_add")
    lose_the_answer(page)
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile("^chrome-error:"))
    editor(page, a_stage, "vector_add")
    write(page, "# another text is another submission\n")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/submissions/*")
    assert _handed_in(a_stage, Mode.submission) == before + 4
    _grade_all(a_stage)


# Answers of which nothing comes but the headers, once.
HALF_AN_ANSWER = """
() => {
  const whole = window.fetch;
  let first = true;
  window.fetch = (address, options) => {
    if (!first) return whole(address, options);
    first = false;
    window.halves = 1;
    const never = new ReadableStream({
      start: (control) => options.signal.addEventListener("abort", () => control.error(options.signal.reason)),
    });
    return Promise.resolve(new Response(never, { headers: { "content-type": "text/html" } }));
  };
}
"""


def test_a_page_that_looks_again_goes_on_after_half_an_answer(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.clock.install()
    page.goto(f"{a_stage.course_url}/queue")
    page.evaluate(HALF_AN_ANSWER)
    page.clock.run_for(11_000)
    page.wait_for_function("window.halves === 1")
    page.clock.run_for(21_000)
    with page.expect_response("**/queue"):
        page.clock.run_for(11_000)


def test_a_page_that_looks_again_goes_on_after_a_look_without_an_answer(watched: Watched, a_stage: Stage) -> None:
    page = watched.page(login="ines")
    page.clock.install()
    page.goto(f"{a_stage.course_url}/queue")
    asked = first_hangs(page, "**/queue")
    page.clock.run_for(11_000)
    wait_for(page, asked)
    assert len(asked) == 1
    page.clock.run_for(21_000)
    with page.expect_response("**/queue"):
        page.clock.run_for(11_000)
