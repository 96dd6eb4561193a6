"""Source beside machine code: whose it is, what leads where, what is kept back; what changed between two versions."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import select

from autograder.contract import CompiledFor, CompiledKernel, Lane
from autograder.listings import PREFIX, KernelListing, Listings, Row, pack
from server.grading.artefacts import forget_artefacts, store_artefact
from server.models import Attempt, Submission
from server.nodes import nodes
from server.pages.compiled_diff import compiled_changes, instruction_changes
from server.pages.machine_code import linked
from tests.doubles.world import passed

ADD = KernelListing("add", "large", 0, "BLOCK=64", "1\tLDG.E R1\n2\t@P0 STG.E R1\n1\tNOP\n0\t.L_x_1:", "2\tst.global")


@pytest.fixture
def database_url(sqlite_url):
    return sqlite_url


def leave(world, name, data, target="sm_90a"):
    """The newest attempt at this submission has left a file."""
    with world.database.transaction() as session:
        query = select(Attempt).join(Submission, Submission.id == Attempt.submission_id)
        attempt = session.scalars(query.where(Submission.public_id == name).order_by(Attempt.fence.desc())).first()
        store_artefact(
            session, nodes.find_node(session, name="forge"), attempt=attempt.public_id, fence=attempt.fence,
            name=PREFIX + target, data=data, now=world.now,
        )  # fmt: skip


def graded(world, listings=None, **changes):
    name = world.grade(passed(2.0), node="forge", lane=Lane.h200, **changes)
    if listings is not None:
        leave(world, name, pack(listings))
    return name


def test_links_lead_to_the_first_instruction_and_count_all() -> None:
    found = linked([Row(3, "a"), Row(0, "label:"), Row(5, "b"), Row(3, "c")])
    assert dict(found.first) == {3: 0, 5: 2}
    assert dict(found.counts) == {3: 2, 5: 1}


def test_a_page_without_scripts_links_both_sides(world, visit):
    name = graded(world, Listings("sm_90a", (ADD,)))
    page = visit("Alice", f"/submissions/{name}/machine-code").html
    assert re.search(r'id="L1" data-line="1">.*?<a href="#i0" aria-label="Line 1: 2 instructions">2</a>', page)
    assert re.search(r'id="i1" data-line="2">.*?<a href="#L2" aria-label="From line 2">2</a></span>@P0 STG.E R1', page)
    assert "st.global" not in page
    assert "st.global" in visit("Alice", f"/submissions/{name}/machine-code?kind=ptx").html


def test_hostile_code_is_text(world, visit):
    hostile = KernelListing("<b>k</b>", "large", 0, "<i>", "1\t<script>alert(1)</script>\u202e")
    page = visit("Alice", f"/submissions/{graded(world, Listings('sm_90a', (hostile,)))}/machine-code").html
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert "<b>k" not in page


def test_its_owner_and_staff_see_it_and_nobody_else(world, visit):
    path = f"/submissions/{graded(world, Listings('sm_90a', (ADD,)))}/machine-code"
    assert [visit(person, path).status for person in ("Alice", "Tom", "Bob")] == [200, 200, 404]


def test_where_there_is_none_the_page_says_so(world, visit):
    name = graded(world)
    assert "There is no code to show" in visit("Alice", f"/submissions/{name}/machine-code").text
    leave(world, name, b"no listing at all")
    assert "There is no code to show" in visit("Alice", f"/submissions/{name}/machine-code").text


def test_it_is_kept_for_a_while_only(world, visit):
    name = graded(world, Listings("sm_90a", (ADD,)))
    with world.database.transaction() as session:
        later = world.now + timedelta(days=world.config.artefact_days + 1)
        assert forget_artefacts(session, now=later, config=world.config) == 1
    assert "There is no code to show" in visit("Alice", f"/submissions/{name}/machine-code").text


@pytest.mark.parametrize("query", ["target=sm_80", "kernel=7", "kernel=-1", "target=../x"])
def test_what_is_not_there_is_not_found(world, visit, query):
    name = graded(world, Listings("sm_90a", (ADD,)))
    assert visit("Alice", f"/submissions/{name}/machine-code?{query}").status == 404


# --- what changed -----------------------------------------------------------------------------------------------------

KERNEL = CompiledKernel("add", "large", 0, "BLOCK=64", "", registers=26, spills=3)


def test_kernels_of_two_versions_stand_beside_each_other() -> None:
    new = CompiledKernel("add", "large", 0, "BLOCK=128", "", registers=40)
    other = CompiledKernel("finish", "large", 1, "", "")
    both, added = compiled_changes([CompiledFor("sm_90a", (KERNEL,))], [CompiledFor("sm_90a", (new, other))])
    assert both.numbers[:2] == ((26, 40), (3, 0))
    assert (added.old, added.any) == (None, other)
    (gone,) = compiled_changes([CompiledFor("sm_90a", (KERNEL,))], [CompiledFor("sm_90a")])
    assert (gone.new, gone.any, gone.numbers[0]) == (None, KERNEL, (26, None))


def test_another_target_is_another_kernel() -> None:
    found = compiled_changes([CompiledFor("sm_90a", (KERNEL,))], [CompiledFor("sm_100a", (KERNEL,))])
    assert [(one.target, one.old is None, one.new is None) for one in found] == [
        ("sm_100a", True, False), ("sm_90a", False, True),
    ]  # fmt: skip


def test_instructions_are_counted_without_their_predicates() -> None:
    old = Listings("sm_90a", (ADD,))
    wide = KernelListing("add", "large", 0, "", "1\tLDG.E.128 R1\n2\tSTG.E R1\n1\tNOP")
    (change,) = instruction_changes(old, Listings("sm_90a", (wide,)))
    assert change.kinds == (("LDG.E", 1, 0), ("LDG.E.128", 0, 1))
    assert (change.before, change.after) == (3, 3)
    assert list(instruction_changes(old, old)) == []


def test_the_diff_page_folds_the_instructions_that_changed(world, visit):
    wide = KernelListing("add", "large", 0, "", "1\tLDG.E.128 R1")
    graded(world, Listings("sm_90a", (ADD,)))
    second = graded(world, Listings("sm_90a", (wide,)))
    page = visit("Alice", f"/submissions/{second}/diff")
    assert "3 → 1 instructions" in page.text
    assert '<details id="instructions-1"><summary>' in page.html
