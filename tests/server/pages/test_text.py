"""What pages make of text, numbers and pictures: nothing that a student or a handout says becomes markup."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from autograder.contract import Mismatch, Pattern, State, Verdict
from server.http.templates import Templates, clip, verbatim, visible
from server.pages import formats
from server.pages.highlight import MAX_COLOURED_CHARS, MAX_LINES, highlight, listing
from server.pages.labels import STATES, VERDICTS, agent_name, status_label
from server.pages.markdown import handout_html
from server.pages.rendering import local_path
from server.pages.svg_geometry import damage_map, ratio_scale, staircase

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


SHOWN = [
    ("plain\n\ttext", "plain\n\ttext"),
    ("naïve Ω 数学 🙂", "naïve Ω 数学 🙂"),
    ("a\u202eb", "a⟨U+202E⟩b"),
    ("\x1b[31m\x00", "⟨U+001B⟩[31m⟨U+0000⟩"),
    ("soft\u00adhyphen\u200bspace\ufeff", "soft⟨U+00AD⟩hyphen⟨U+200B⟩space⟨U+FEFF⟩"),
    ("line\u2028end\r\n", "line⟨U+2028⟩end⟨U+000D⟩\n"),
    ("half \ud800", "half ⟨U+D800⟩"),
]


def test_unseen_characters_are_printed_as_their_code_points() -> None:
    assert [visible(text) for text, _ in SHOWN] == [shown for _, shown in SHOWN]


def test_a_template_escapes_and_unmasks_whatever_it_prints(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text("<a title='{{ x }}'>{{ x }}</a>{{ x|verbatim }}{{ markup }}")
    page = Templates(tmp_path, filters={}, names={}).render("page.html", {"x": "<'\u202e", "markup": Markup("<b>")})
    assert page == "<a title='&lt;&#39;⟨U+202E⟩'>&lt;&#39;⟨U+202E⟩</a>&lt;&#39;\u202e<b>"


def test_a_template_that_prints_what_it_was_not_given_fails(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text("{{ missing }}")
    with pytest.raises(UndefinedError):
        Templates(tmp_path, filters={}, names={}).render("page.html", {})


def test_long_text_is_cut_and_says_so() -> None:
    assert clip("x" * 1205, 200) == "x" * 200 + "… (1,005 more characters)"
    assert clip("short", 200) == "short"
    assert verbatim("<\u202e>") == "&lt;\u202e&gt;"


# --- handouts --------------------------------------------------------------------------------------------------------


def test_a_handout_keeps_only_foldable_sections_of_raw_html() -> None:
    html = handout_html(
        "<details>\n<summary>Hint <b>x</b></summary>\n\nfold\n\n</details>\n\n"
        '<script>alert(1)</script>\n\n<details open onclick="x">\n\na <img src=x onerror=y> b'
    )
    assert "<details>\n<summary>Hint &lt;b&gt;x&lt;/b&gt;</summary>" in html
    assert "</details>" in html
    for refused in ("<script", "<img", "<b>", "<details open"):
        assert refused not in html


def test_a_handout_links_to_nothing_that_runs() -> None:
    links = ("javascript:alert(1)", "vbscript:x", "data:text/html,x", "file:///etc/passwd")
    assert [link for link in links if "<a " in handout_html(f"[x]({link})")] == []


def test_maths_becomes_mathml_and_nothing_else() -> None:
    html = handout_html(r"$a < b$, $\text{<script>alert(1)</script>}$, $\color{red}{x}$ and $$\frac{1}{2}$$")
    assert "<mo>&lt;</mo>" in html
    assert "<mfrac>" in html
    assert "<script" not in html
    assert "mathcolor" not in html


def test_a_formula_on_its_own_lines_scrolls_by_itself() -> None:
    """On a phone it is wider than the page."""
    for text in ("$$\nx^2\n$$", "so $$x^2$$ holds"):
        assert '<div class="maths" tabindex="0" role="group" aria-label="Formula"><math' in handout_html(text), text


def test_a_formula_that_cannot_be_read_is_shown_as_its_text() -> None:
    assert "<code>\\frac{</code>" in handout_html(r"$\frac{$")


def test_a_handout_has_no_style_attribute_and_no_title_of_its_own() -> None:
    html = handout_html("# Title\n\n## Part\n\n| | n |\n|---|--:|\n| a | 1 |\n\n```python\nx = 1  # <b>\n```\n")
    assert "style=" not in html
    assert "Title" not in html
    assert '<h2 id="part">' in html
    assert '<td class="number">1</td>' in html
    assert "<th></th>" not in html
    assert "&lt;b&gt;" in html


def test_sections_with_one_name_have_ids_of_their_own() -> None:
    html = handout_html("## Part\n\n## Part\n\n### Über alles\n")
    assert re.findall(r'id="([^"]+)"', html) == ["part", "part-2", "ber-alles"]


# --- code ------------------------------------------------------------------------------------------------------------


def test_every_line_of_a_listing_is_closed_in_itself() -> None:
    shown = listing('"""doc\n<b>\n"""\nx = 1\n', "triton")
    assert [line.number for line in shown.lines] == [1, 2, 3, 4]
    for line in shown.lines:
        assert line.html.count("<span") == line.html.count("</span>")
    assert "&lt;b&gt;" in shown.lines[1].html


def test_a_listing_of_a_huge_source_is_cut_and_says_so() -> None:
    shown = listing("x\n" * (MAX_LINES + 7) + "y" * 50_000, "triton")
    assert len(shown.lines) == MAX_LINES
    assert shown.left_out == 8
    long = re.sub("<[^>]*>", "", listing("y" * 50_000, "triton").lines[0].html)
    assert len(long) < 3_000
    assert "48,000 more characters" in long


def test_lines_are_counted_as_the_compiler_counts_them() -> None:
    assert len(listing("a\r\nb\x0cc\u2028d\re\n", "triton").lines) == 3


def test_direction_marks_in_code_are_seen() -> None:
    assert "⟨U+202E⟩" in listing("# \u202e\n", "triton").lines[0].html
    assert "⟨U+202E⟩" in highlight("x\u202e" * MAX_COLOURED_CHARS, "triton")[:50]


def test_code_in_any_language_is_escaped() -> None:
    languages = ("triton", "cuda", "text", "", "no such language")
    assert [language for language in languages if "<b>" in highlight("<b>", language)] == []


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_numbers_carry_their_units() -> None:
    assert formats.microseconds(28.81) == "28.8 µs"
    assert formats.microseconds(1392.0) == "1.39 ms"
    assert formats.microseconds(2_410_000.0) == "2.41 s"
    assert formats.ratio(1.3402) == "1.34×"
    assert formats.interval(1.31, 1.372) == "1.31–1.37"
    assert formats.figure(0.0128) == "0.0128"
    assert formats.figure(183.2) == "183"
    assert formats.points(7.5) == "7.5"
    assert formats.points(60.0) == "60"
    assert formats.byte_size(2048 * 2**20) == "2.00 GiB"


DURATIONS = [(0.42, "0.42 s"), (3.14, "3.1 s"), (42.0, "42 s"), (125.0, "2 min 5 s"), (11_460, "3 h 11 min")]


def test_durations_have_no_digit_too_many() -> None:
    assert [(seconds, formats.duration(seconds)) for seconds, _ in DURATIONS] == DURATIONS


SHARES = [
    (0, 3, "0 %"),
    (555, 20011, "2.77 %"),
    (16383, 16384, "> 99.9 %"),
    (1, 10**6, "< 0.1 %"),
    (7, 7, "100 %"),
    (1, 3, "33.3 %"),
]


def test_a_share_that_is_not_all_never_reads_as_all() -> None:
    assert [(part, whole, formats.share(part, whole)) for part, whole, _ in SHARES] == SHARES


ESTIMATES = [
    (2.1, 2.2, 2.4, "about 3 s"),
    (2.1, 3.3, 4.5, "about 3 s (2 to 5)"),
    (0.0, 0.2, 4.5, "about 1 s (under 5)"),
    (27.0, 41.0, 68.0, "about 40 s (25 to 70)"),
    (140.0, 170.0, 290.0, "about 3 min (2 to 5)"),
    (10.0, 70.0, 300.0, "about 1 min (under 5)"),
    (7300.0, 9100.0, 13000.0, "about 2.5 h (2 to 4)"),
]


def test_an_estimate_is_rounded_outwards() -> None:
    assert [(*seconds, formats.estimate(*seconds)) for *seconds, _ in ESTIMATES] == ESTIMATES


FROM_NOW = [
    (timedelta(days=8, hours=1), "in 8 days"),
    (timedelta(hours=-2), "2 hours ago"),
    (timedelta(minutes=1), "in 1 minute"),
    (timedelta(seconds=20), "in less than a minute"),
    (timedelta(seconds=-20), "just now"),
]


def test_times_from_now() -> None:
    assert [(later, formats.relative(NOON + later, NOON)) for later, _ in FROM_NOW] == FROM_NOW


def test_a_time_stands_in_the_courses_zone() -> None:
    html = formats.when(NOON, "Europe/Berlin", both=True)
    assert "Sun 29 Nov, 13:00 CET" in html
    assert 'datetime="2026-11-29T12:00:00Z"' in html


def test_ticks_mark_code_and_odd_ones_are_text() -> None:
    assert formats.ticks("of `out` <b>") == "of <code>out</code> &lt;b&gt;"
    assert formats.ticks("a ` b") == "a ` b"


ORDINALS = [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (113, "113th")]


def test_ordinals() -> None:
    assert [(value, formats.ordinal(value)) for value, _ in ORDINALS] == ORDINALS


# --- pictures --------------------------------------------------------------------------------------------------------


def mismatch(**changes: object) -> Mismatch:
    values: dict[str, object] = {
        "output": "out", "shape": (100, 64), "dtype": "float32", "wrong": 64, "total": 6400,
        "pattern": Pattern.rows_from,
        "where": "row 99", "index": (99, 0), "expected": "1", "got": "nan", "tolerance": "0",
        "map": ((0, 0), (0, 0), (1000, 1)), "tile": (34, 32), **changes,
    }  # fmt: skip
    return Mismatch(**values)  # type: ignore[arg-type]


def test_a_damage_map_marks_the_share_by_size_and_the_first_tile() -> None:
    picture = damage_map(mismatch())
    assert picture is not None
    full, few = picture.marks
    assert full.side > 2 * few.side > 0
    assert picture.first == (0, 2)
    assert "2 of 6 tiles" in picture.label
    assert picture.down == ("row 0", "row 99")


def test_a_vector_is_folded() -> None:
    picture = damage_map(mismatch(shape=(100,), total=100, index=(41,), map=((0,) * 32, (500,)), tile=(1, 3)))
    assert picture is not None
    assert picture.first == (13, 0)
    assert "3 consecutive elements" in picture.caption


def test_an_output_without_elements_has_no_picture() -> None:
    assert damage_map(mismatch(map=())) is None


def test_intervals_stand_in_order_on_a_scale_that_shows_the_reference() -> None:
    scale = ratio_scale([(0.5, 0.6, 0.7), (1.9, 2.0, 2.1)])
    faster, slower = scale.intervals
    (reference,) = (tick for tick in scale.ticks if tick.is_reference)
    assert faster.low < faster.middle < faster.high < reference.x < slower.low < slower.high <= scale.width
    assert ratio_scale([]).ticks


def test_a_staircase_rises_and_is_filled_by_points() -> None:
    steps = staircase([1.0, 0.5, 0.0])
    assert [step.height for step in steps] == sorted(step.height for step in steps)
    assert steps[0].filled == steps[0].height
    assert steps[2].filled == 0.0
    assert staircase([]) == ()


# --- words -----------------------------------------------------------------------------------------------------------


def test_every_state_and_verdict_has_a_word() -> None:
    assert set(STATES) == set(State)
    assert set(VERDICTS) == set(Verdict)


def test_our_failure_never_looks_like_the_students() -> None:
    for label in (VERDICTS[Verdict.grader_error], STATES[State.failed]):
        assert label.tone == "care"
    assert status_label(State.running, None).word == "Running"
    assert status_label(State.queued, Verdict.passed).word == "Queued"


BROWSERS = [
    ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
    ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140 Safari/537.36 Edg/140", "Edge on Windows"),
    ("curl/8.1", "curl/8.1"),
    ("", "an unknown program"),
]


def test_browsers_have_names() -> None:
    assert [(agent, agent_name(agent)) for agent, _ in BROWSERS] == BROWSERS


def test_a_login_leads_only_to_our_own_pages() -> None:
    targets = ("//evil.example", "/\\evil.example", "https://evil.example", "", "/a\nb")
    assert [target for target in targets if local_path(target) != "/"] == []


def test_a_login_leads_to_the_page_that_was_wanted() -> None:
    assert local_path("/courses/gpu?x=1") == "/courses/gpu?x=1"
