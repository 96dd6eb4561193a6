"""What sources share: what people change first does not hide it, what everybody was given does not show it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from autograder.assignment import pack
from autograder.contract import Language
from server.cli import admin
from server.courses import courses
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.models import (
    Assignment,
    AssignmentVersion,
    AuditEntry,
    Bundle,
    ComparedText,
    Comparison,
    ComparisonState,
    Course,
    Enrolment,
    PairMark,
    Role,
    SimilarPair,
    Submission,
    User,
)
from server.similarity import engine, process, similarity, supervisor
from server.similarity.gather import PUBLIC
from server.similarity.reduced import reduce
from server.similarity.runner import SILENT, claim, end_silent, perform
from server.similarity.scope import Scope, Which
from server.terms import erasure
from tests.doubles.world import START, World

STARTER = """import torch
import triton
import triton.language as tl


@triton.jit
def starter_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)
"""
OWN = '''
@triton.jit
def _rows(src, dst, rows, cols, stride, BLOCK: tl.constexpr):
    """Sum of rows by a tree."""
    row = tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):  # by blocks
        index = start + tl.arange(0, BLOCK)
        total += tl.load(src + row * stride + index, mask=index < cols, other=0.0).to(tl.float32)
    best = tl.max(total, axis=0) / tl.sum(total, axis=0)
    tl.atomic_add(dst + row % rows, best, sem="relaxed")
'''
RENAMED = """
@triton.jit
def kernel2(a, b, c, d, e, SIZE: tl.constexpr):
    # I wrote this all by myself.
    i = tl.program_id(1)
    acc = tl.zeros((SIZE,), dtype=tl.float32)

    for j in range(0, d, SIZE):
        k = j + tl.arange(0, SIZE)
        acc += tl.load(
            a + i * e + k, mask=k < d, other=0.0
        ).to(tl.float32)
    m = tl.max(acc, axis=0) / tl.sum(acc, axis=0)
    tl.atomic_add(b + i % c, m, sem='acquire')
"""
OTHER = """
@triton.jit
def _scan(inp, outp, n, WARPS: tl.constexpr, LANES: tl.constexpr):
    lane = tl.arange(0, LANES)[None, :]
    warp = tl.arange(0, WARPS)[:, None]
    values = tl.load(inp + warp * LANES + lane, mask=(warp * LANES + lane) < n, other=0)
    tl.store(outp + warp * LANES + lane, tl.cumsum(values, 1), mask=(warp * LANES + lane) < n)
    if WARPS > 4:
        tl.debug_barrier()
"""
CUDA = """__global__ void sum(const float* in, float* out, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) tile[threadIdx.x] += tile[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, tile[0]);
}
"""
CUDA_RENAMED = "// mine\n" + CUDA.replace("tile", "buf").replace("sum(", "reduce_all(").replace(" s", " step").replace(
    "(s", "(step"
).replace("+ s]", "+ step]").replace("< s)", "< step)")
EVERYTHING = Scope()
NASTY = "<script>alert(1)</script>"


def prints(*sources, language="triton", given=STARTER):
    handed_out = engine.fragments(reduce(given, language))
    return [engine.print_of(reduce(source, language), handed_out) for source in sources]


# --- the engine ------------------------------------------------------------------------------------------------------


def test_renaming_comments_and_layout_hide_nothing():
    left, right = prints(STARTER + OWN, RENAMED + STARTER)
    found = engine.compare(left, right)
    assert found is not None
    # Which fragments are kept where the two begin and end is chance: of 30 seeds of Python's hash the least was 0.64.
    assert min(found.left_share, found.right_share) > 0.6


def test_cuda_is_read_as_cuda():
    left, right = prints(CUDA, CUDA_RENAMED, language="cuda", given="")
    found = engine.compare(left, right)
    assert found is not None
    assert found.share > 0.7


def test_what_was_handed_out_is_no_match():
    left, right = prints(STARTER + OWN, STARTER + OTHER)
    assert engine.compare(left, right) is None
    with_it = prints(STARTER + OWN, STARTER + OTHER, given="")
    assert engine.compare(*with_it) is not None
    assert prints(STARTER) == [None]


def test_a_fragment_that_repeats_in_one_source_is_not_lost_with_the_starter():
    """copydetect's own exclusion pairs repeats with each other; ours must not."""
    left, right = prints(STARTER + OWN + OWN, STARTER + OWN)
    found = engine.compare(left, right)
    assert found is not None
    assert found.right_share > 0.9


def test_matched_lines_are_the_lines_of_the_source():
    left, right = STARTER + OWN, "\n\n" + RENAMED
    found = engine.matches(*prints(left, right), engine.fragments(reduce(STARTER, "triton")))
    own_from = STARTER.count("\n") + 2
    assert min(first for _, first, _ in found.left) in range(own_from, own_from + 4)
    assert max(last for *_, last in found.left) <= (STARTER + OWN).count("\n") + 1
    assert {number for number, *_ in found.right} <= {number for number, *_ in found.left}
    assert set(found.left_handed_out) & set(range(1, STARTER.count("\n")))
    assert not set(found.left_handed_out) & set(range(own_from + 2, own_from + 9))


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    "source", ["", "x", "\0\1\2", "#" * 100_000, "'" * 5000, "é" * 500, "\n" * 10_000, "def f(:\n"]
)
@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_strange_sources_are_read_or_left_out(source, language):
    reduced = reduce(source, language)
    assert len(reduced.lines) == len(reduced.text)
    engine.print_of(reduced, frozenset())
    engine.handed_out_lines(reduced, frozenset())


def test_what_most_people_have_alike_is_taken_away():
    many = [(person, one) for person, one in enumerate(prints(*[STARTER + OWN] * 10))]
    common = engine.common_of(many)
    assert engine.without(many[0][1], common) is None
    few = [(person, one) for person, one in enumerate(prints(*[STARTER + OWN] * 3))]
    assert engine.common_of(few) == frozenset()


# --- a comparison ----------------------------------------------------------------------------------------------------


@pytest.fixture
def world(database_url, tmp_path):
    world = World.make(database_url, tmp_path)
    with world.database.transaction() as session:
        world.enrol(session, "Tom", Role.ta)
        for name in ("Cleo", "Dan"):
            world.enrol(session, name)
        session.scalars(select(AssignmentVersion)).one().starters = {"triton": STARTER, "reading.py": "x = 1\n"}
    world.config = dataclasses.replace(world.config, reference=tmp_path / "reference")
    yield world
    world.database.dispose()


@pytest.fixture
def act(world):
    def call(person, work, name="gpu"):
        with world.database.transaction() as session:
            user = session.scalars(select(User).where(User.name == person)).one()
            return work(session, courses.membership(session, user, name))

    return call


@pytest.fixture
def compare(world, act):
    """Ask for a comparison and do it; its id."""

    def call(scope=EVERYTHING, person="Tom"):
        def ask(session, member):
            return similarity.start(session, member, session.get_one(Assignment, 1), scope, now=START).id

        comparison = act(person, ask)
        with world.database.transaction() as session:
            assert claim(session) == comparison
        perform(world.database, world.config, comparison)
        return comparison

    return call


def pairs(world, comparison):
    with world.database.reading() as session:
        rows = session.scalars(
            select(SimilarPair).where(SimilarPair.comparison_id == comparison).order_by(SimilarPair.share.desc())
        ).all()
        name = {row.id: row.name for row in session.scalars(select(User))}
        owner = {row.id: name[row.user_id] for row in session.scalars(select(Submission))}
        return [tuple(sorted((owner[row.left_id], owner.get(row.right_id, "a file")))) for row in rows]


def test_two_students_with_the_same_kernel_are_found_and_nobody_else(world, compare):
    world.submit("Alice", source=(STARTER + OWN).encode())
    world.submit("Bob", source=(RENAMED + STARTER).encode())
    world.submit("Cleo", source=(STARTER + OTHER).encode())
    world.submit("Dan", source=STARTER.encode())
    world.submit("Tom", source=(STARTER + OWN).encode())
    comparison = compare()
    assert pairs(world, comparison) == [("Alice", "Bob")]
    with world.database.reading() as session:
        row = session.get_one(Comparison, comparison)
        assert (row.state, row.sources) == (ComparisonState.done, 3)
        assert len(row.left_out) == 1
        assert "handed-out" in row.left_out[0]


def test_nobodys_versions_are_compared_with_their_own(world, compare):
    for _ in range(3):
        world.submit("Alice", source=(STARTER + OWN).encode())
    assert pairs(world, compare(Scope(Which.every))) == []


def test_an_older_version_is_found_only_where_all_are_looked_at(world, compare):
    world.submit("Alice", source=(STARTER + OWN).encode(), points=9.0)
    world.submit("Alice", source=(STARTER + OTHER).encode(), points=1.0)
    world.submit("Bob", source=(STARTER + RENAMED).encode())
    assert pairs(world, compare(Scope(Which.latest))) == []
    assert pairs(world, compare(Scope(Which.best))) == [("Alice", "Bob")]
    assert pairs(world, compare(Scope(Which.every))) == [("Alice", "Bob")]


def test_public_and_staff_solutions_are_files(world, compare):
    world.submit("Alice", source=(STARTER + OWN).encode())
    folder = world.config.home / PUBLIC / "vector_add"
    folder.mkdir(parents=True)
    (folder / "blog.py").write_text(RENAMED)
    (folder / "notes.txt").write_text(RENAMED)
    (folder / "binary.py").write_bytes(bytes(range(256)) * 20)
    solutions = world.config.reference / "vector_add" / "solutions"
    solutions.mkdir(parents=True)
    (solutions / "triton.py").write_text(OTHER)
    assert pairs(world, compare()) == [("Alice", "a file")]
    assert pairs(world, compare(Scope(public=False, staff=False))) == []


def test_a_published_milestone_is_found_in_who_copied_it(world, compare):
    world.submit("Alice", source=(STARTER + OWN).encode())
    world.submit("Bob", source=(STARTER + OTHER).encode())
    with world.database.transaction() as session:
        version = session.scalars(select(AssignmentVersion)).one()
        version.milestones = [
            {"name": "1_rows", "filename": "1_rows.py", "language": "triton", "source": STARTER + RENAMED}
        ]
    comparison = compare(Scope(public=False, staff=False))
    assert pairs(world, comparison) == [("Alice", "a file")]
    with world.database.reading() as session:
        (text,) = session.scalars(select(ComparedText))
        assert text.name == "milestone: 1_rows.py"


def test_a_kernel_that_a_rung_gives_is_nobodys(world, compare, tmp_path):
    world.submit("Alice", source=(STARTER + OWN).encode())
    world.submit("Bob", source=(STARTER + RENAMED).encode())
    given = tmp_path / "public" / "given"
    given.mkdir(parents=True)
    (given / "a.py").write_text(OWN)
    assert pairs(world, compare()) == [("Alice", "Bob")]
    with world.database.transaction() as session:
        version = session.scalars(select(AssignmentVersion)).one()
        bundle = pack({"assignments/vector_add": tmp_path / "public"})
        session.get_one(Bundle, version.bundle_hash).data = bundle
    assert pairs(world, compare()) == []


def other_course(world, *, staff):
    """An earlier term with the same rung, in which Eve handed the same in."""
    with world.database.transaction() as session:
        course = Course(slug="spring", title="Spring", created_at=START)
        eve = User(email="eve@example.org", name="Eve", handle="eve", created_at=START)
        session.add_all([course, eve])
        session.flush()
        tom = session.scalars(select(User).where(User.name == "Tom")).one()
        session.add(Enrolment(course_id=course.id, user_id=eve.id, role=Role.student, created_at=START))
        if staff:
            session.add(Enrolment(course_id=course.id, user_id=tom.id, role=Role.ta, created_at=START))
        first = session.get_one(Assignment, 1)
        row = Assignment(course_id=course.id, slug=first.slug, rung=1, title="Vector add", created_at=START)
        session.add(row)
        session.flush()
        mine = session.scalars(select(Submission)).first()
        values = {
            column.key: getattr(mine, column.key) for column in Submission.__table__.columns if column.key != "id"
        }
        source = (STARTER + RENAMED).encode()
        session.add(Submission(**{
            **values, "public_id": "01EVE", "course_id": course.id, "assignment_id": row.id, "user_id": eve.id,
            "source": source, "request_key": None,
        }))  # fmt: skip
        return course.id


def test_an_earlier_term_is_looked_at_by_who_was_staff_of_it(world, compare, act):
    world.submit("Alice", source=(STARTER + OWN).encode())
    course = other_course(world, staff=True)
    assert [one.slug for one in act("Tom", lambda s, m: similarity.cohorts(s, m, "vector_add"))] == ["spring"]
    comparison = compare(Scope(courses=(course,)))
    assert pairs(world, comparison) == [("Alice", "Eve")]
    with world.database.transaction() as session:
        user = User(email="uma@example.org", name="Uma", handle="uma", created_at=START)
        session.add(user)
        session.flush()
        session.add(Enrolment(course_id=1, user_id=user.id, role=Role.ta, created_at=START))
    pair = act("Tom", lambda s, m: similarity.evidence(s, m, 1).pair.id)

    def closed(session, member):
        return similarity.results(session, member, similarity.find(session, member, comparison)).closed

    assert act("Tom", closed) == frozenset()
    assert act("Uma", closed) == {pair}
    with pytest.raises(NotFoundError):
        act("Uma", lambda s, m: similarity.evidence(s, m, pair))


def test_a_course_that_one_is_not_staff_of_cannot_be_looked_at(world, compare):
    world.submit("Alice", source=(STARTER + OWN).encode())
    course = other_course(world, staff=False)
    with pytest.raises(InvalidInputError):
        compare(Scope(courses=(course,)))


def test_students_start_nothing_and_two_do_not_run_at_once(world, act):
    def ask(session, member):
        return similarity.start(session, member, session.get_one(Assignment, 1), Scope(), now=START).id

    with pytest.raises(ForbiddenError):
        act("Alice", ask)
    first = act("Tom", ask)
    with pytest.raises(ConflictError):
        act("Tom", ask)
    with world.database.transaction() as session:
        assert claim(session) == first
        assert claim(session) is None


def test_an_empty_cohort_and_one_student_come_to_nothing(world, compare):
    assert pairs(world, compare()) == []
    world.submit("Alice", source=(STARTER + OWN).encode())
    assert pairs(world, compare()) == []


def test_marks_are_kept_audited_and_hold_in_the_next_comparison(world, compare, act):
    world.submit("Alice", source=(STARTER + OWN).encode())
    world.submit("Bob", source=(STARTER + RENAMED).encode())
    compare()

    def mark(session, member, what=PairMark.noted, reason="Same kernel.", revision=0):
        return similarity.mark(session, member, 1, what, reason=reason, revision=revision, now=START).revision

    with pytest.raises(InvalidInputError):
        act("Tom", lambda s, m: mark(s, m, reason=" "))
    with pytest.raises(ForbiddenError):
        act("Bob", mark)
    assert act("Tom", mark) == 1
    with pytest.raises(ConflictError):
        act("Tom", mark)
    second = compare()
    with world.database.reading() as session:
        row = session.scalars(select(SimilarPair).where(SimilarPair.comparison_id == second)).one()
        assert (row.mark, row.reason) == (PairMark.noted, "Same kernel.")
        entry = session.scalars(select(AuditEntry).where(AuditEntry.action == "similarity.marked")).one()
        assert (entry.reason, entry.detail["after"]) == ("Same kernel.", "noted")
        # It stands in its course's log, and nowhere else.
        assert entry.course_id == session.scalars(select(Course).where(Course.slug == "gpu")).one().id
        either = session.get_one(Submission, row.right_id).user_id
    with world.database.transaction() as session:
        erasure.erase_account(session, session.get_one(User, either), now=START)
    with world.database.reading() as session:
        assert set(session.scalars(select(SimilarPair.reason))) == {"erased"}
        assert (
            session.scalars(select(AuditEntry).where(AuditEntry.action == "similarity.marked")).one().reason == "erased"
        )


def test_what_goes_wrong_is_said(world, act, monkeypatch):
    act("Tom", lambda s, m: similarity.start(s, m, s.get_one(Assignment, 1), Scope(), now=START))

    def fail(*_args):
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("server.similarity.runner.gather", fail)
    assert process.do_all(world.database, world.config) == 1
    with world.database.reading() as session:
        row = session.scalars(select(Comparison)).one()
        assert (row.state, row.error) == (ComparisonState.failed, "RuntimeError: the disk is full")


def test_one_whose_process_died_is_given_up(world, act):
    act("Tom", lambda s, m: similarity.start(s, m, s.get_one(Assignment, 1), Scope(), now=START))
    with world.database.transaction() as session:
        claim(session)
        assert end_silent(session) == 0
        session.scalars(select(Comparison)).one().heartbeat_at -= SILENT + timedelta(seconds=1)
        session.flush()
        assert end_silent(session) == 1
    with world.database.reading() as session:
        assert session.scalars(select(Comparison.state)).one() is ComparisonState.failed


def test_the_keeper_starts_one_process_where_something_waits(world, act, monkeypatch):
    started = []

    class Process:
        def __init__(self, command, *, env, **_given):
            started.append((command, env["PYTHONHASHSEED"]))

        def poll(self):
            return None

    monkeypatch.setattr(supervisor.subprocess, "Popen", Process)
    one = supervisor.Keeper(world.database)
    assert one.step() == 0
    act("Tom", lambda s, m: similarity.start(s, m, s.get_one(Assignment, 1), Scope(), now=START))
    assert [one.step(), one.step()] == [1, 0]
    # By a seed of its own: a comparison that is made again gives the same numbers.
    assert started == [(supervisor.COMMAND, "0")]


# --- pages and the command -------------------------------------------------------------------------------------------


def test_pages_show_a_list_and_the_evidence(world, visit, compare):
    world.submit("Alice", source=(STARTER + OWN + f"# {NASTY}\n").encode())
    world.submit("Bob", source=(STARTER + RENAMED).encode())
    comparison = compare()
    base = "/courses/gpu/similarity"
    for path in (base, f"{base}/{comparison}", f"{base}/pairs/1"):
        assert visit("Alice", path)[0] == 403
        status, text = visit("Tom", path)[:2]
        assert status == 200
        assert "not a verdict" in text
    assert NASTY in text
    assert "[1]" in text
    assert visit("Tom", f"{base}/99")[0] == 404
    assert visit("Tom", f"{base}/pairs/99")[0] == 404
    assert visit("Tom", f"{base}/pairs/1", {"mark": "noted", "revision": "0"})[0] == 422
    assert visit("Tom", f"{base}/pairs/1", {"mark": "noted", "revision": "0", "reason": "why"})[0] == 303
    assert visit("Tom", f"{base}/pairs/1", {"mark": "noted", "revision": "0", "reason": "x"})[0] == 409
    assert "None." in visit("Tom", f"{base}/{comparison}?show=open&page=9")[1]
    assert visit("Tom", base, {"assignment": "vector_add", "which": "all", "public": "true"})[0] == 303
    assert "Waiting" in visit("Tom", f"{base}/2")[1]
    assert visit("Tom", base, {"assignment": "vector_add"})[0] == 409


def test_the_command_compares_here_and_now(world, monkeypatch):
    world.submit("Alice", source=(STARTER + OWN).encode())
    world.submit("Bob", source=(STARTER + RENAMED).encode())
    monkeypatch.setenv("LADDER_HOME", str(world.config.home))
    monkeypatch.setenv("LADDER_DATABASE_URL", world.config.database_url)
    ran = CliRunner().invoke(admin, ["similarity", "gpu", "vector_add", "--by", "tom@example.org", "--no-staff"])
    assert ran.exit_code == 0, ran.output
    assert "2 sources compared, 0 left out: 1 pairs to look at." in ran.output
    refused = CliRunner().invoke(admin, ["similarity", "gpu", "vector_add", "--by", "alice@example.org"])
    assert refused.exit_code == 1


def test_only_sources_of_one_language_are_compared(world, compare):
    world.submit("Alice", source=CUDA.encode(), language=Language.cuda)
    world.submit("Bob", source=CUDA_RENAMED.encode(), language=Language.cuda)
    world.submit("Cleo", source=CUDA.encode(), language=Language.triton)
    assert pairs(world, compare()) == [("Alice", "Bob")]
