"""Who somebody is in a course, what they see, and how assignments get there."""

from __future__ import annotations

import io
import shutil
import tarfile
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from autograder.assignment import content_hash
from server.courses import courses, demo, sync
from server.errors import ConflictError, ForbiddenError, InvalidInputError, NotFoundError
from server.models import Assignment, AssignmentVersion, AuditEntry, Bundle, Course, Role

COURSE, RUNG, SECRET = "gpu", "add_one", b"SECRET-OF-THE-STAFF"


def _update(database, **values):
    with database.transaction() as session:
        row = session.scalars(select(Assignment).where(Assignment.slug == RUNG)).one()
        for name, value in values.items():
            setattr(row, name, value)


def _synced(database, config, people):
    """Read the folders again; the numbers of the new versions."""
    with database.transaction() as session:
        return [change.number for change in sync.sync_assignments(session, config, people.course)]


def _grading_hashes(database):
    with database.reading() as session:
        return session.scalars(select(AssignmentVersion.grading_hash).order_by(AssignmentVersion.number)).all()


def _visible(database, user):
    with database.reading() as session:
        member = courses.membership(session, user, COURSE)
        listed = [item.slug for item in courses.assignments_of(session, member, datetime.now(UTC))]
        try:
            courses.assignment_of(session, member, RUNG)
        except NotFoundError:
            assert listed == []
            return False
        assert listed == [RUNG]
        return True


def test_everybody_is_what_they_were_enrolled_as(database, people):
    with database.reading() as session:
        roles = {
            name: courses.membership(session, getattr(people, name), COURSE).role
            for name in ("alice", "tom", "ines", "admin")
        }
    assert roles == {"alice": Role.student, "tom": Role.ta, "ines": Role.instructor, "admin": Role.instructor}


@pytest.mark.parametrize("name", ["carol", "stranger"])
def test_who_dropped_the_course_or_never_was_in_it_learns_nothing(database, people, name):
    with database.reading() as session:
        texts = []
        for slug in (COURSE, "no-such-course"):
            with pytest.raises(NotFoundError) as caught:
                courses.membership(session, getattr(people, name), slug)
            texts.append(caught.value.message)
        assert texts[0] == texts[1]
        assert COURSE not in [item.course.slug for item in courses.courses_of(session, getattr(people, name))]


def test_an_admin_is_in_every_course_and_a_student_in_theirs(database, people):
    with database.reading() as session:
        assert {item.course.slug for item in courses.courses_of(session, people.admin)} == {COURSE, "other"}
        assert [item.course.slug for item in courses.courses_of(session, people.alice)] == [COURSE]


def test_only_staff_may_do_what_staff_may(database, people):
    with database.reading() as session:
        courses.membership(session, people.tom, COURSE).require_staff()
        with pytest.raises(ForbiddenError):
            courses.membership(session, people.alice, COURSE).require_staff()


@pytest.mark.parametrize(
    "values", [{"published": False}, {"open_at": datetime(2100, 1, 1, tzinfo=UTC)}], ids=["unpublished", "not open yet"]
)
def test_students_see_an_assignment_once_it_is_published_and_open(database, people, values):
    assert _visible(database, people.alice)
    _update(database, **values)
    assert not _visible(database, people.alice)
    assert _visible(database, people.tom)


def test_an_assignment_carries_what_its_files_say(database, people):
    with database.reading() as session:
        detail = courses.assignment_of(session, courses.membership(session, people.alice, COURSE), RUNG)
        assert detail.spec.signature() == "add_one(x, out, n)"
        assert [case.name for case in detail.spec.cases] == ["small", "ranked"]
        assert list(detail.starters) == ["triton"]
        assert detail.lanes == ("cpu", "h200")
        assert [item["name"] for item in detail.version.milestones] == ["1_naive"]


def test_what_no_honest_kernel_passes_is_shown_when_staff_say_so(database, config, people):
    for root in (config.assignments, config.reference):
        shutil.copytree(root / RUNG, root / "sealed")
    manifest = config.assignments / "sealed" / "assignment.toml"
    text = manifest.read_text(encoding="utf-8").replace(f'slug = "{RUNG}"', 'slug = "sealed"\nchallenge = true')
    manifest.write_text(text, encoding="utf-8")
    _synced(database, config, people)
    with database.reading() as session:
        rows = session.execute(select(Assignment.slug, Assignment.published)).all()
        assert {row.slug: row.published for row in rows} == {RUNG: True, "sealed": False}


def test_a_starter_that_is_there_to_read_is_no_language(database, config, people, site):
    (config.assignments / RUNG / "starters" / "reading.py").write_text("def add_one(): 'x < y'\n")
    with database.transaction() as session:
        sync.sync_assignments(session, config, people.course)
    with database.reading() as session:
        detail = courses.assignment_of(session, courses.membership(session, people.alice, COURSE), RUNG)
        assert (list(detail.starters), detail.reading) == (["triton"], "def add_one(): 'x < y'\n")
    read = site.bearer(people.alice).get(f"/api/v1/courses/{COURSE}/assignments/{RUNG}").json()
    assert (list(read["starters"]), read["reading"]) == (["triton"], "def add_one(): 'x < y'\n")
    page = site.logged_in(people.alice, config).get(f"/courses/{COURSE}/assignments/{RUNG}").text
    assert "in plain PyTorch, to read" in page
    assert "x &lt; y" in page
    assert '<div class="code code--tall" tabindex="0" role="group" aria-label="The starter in plain PyTorch">' in page
    assert 'id="reading-1"' in page


def test_the_bundle_is_named_by_its_content(database, people):
    with database.reading() as session:
        bundle = session.scalars(select(Bundle)).one()
        assert content_hash(bundle.data) == bundle.hash
        assert bundle.size == len(bundle.data)


def test_only_changed_files_make_a_new_version(database, config, people):
    with database.transaction() as session:
        assert sync.sync_assignments(session, config, people.course) == []
    (config.reference / RUNG / "hidden.toml").write_text(
        (config.reference / RUNG / "hidden.toml").read_text().replace("1009", "1013")
    )
    with database.transaction() as session:
        changes = sync.sync_assignments(session, config, people.course)
        assert [(change.slug, change.number) for change in changes] == [(RUNG, 2)]
        row = session.scalars(select(Assignment)).one()
        assert session.get(AssignmentVersion, row.version_id).number == 2
        assert session.scalar(select(func.count()).select_from(Bundle)) == 2
        assert session.scalar(select(func.count()).where(AuditEntry.action == "assignment.versioned")) == 2


def test_an_admin_begins_a_course_and_adds_assignments_in_the_browser(database, config, people, site):
    browser = site.logged_in(people.admin, config)
    typed = {"slug": "gpu-2027", "title": "Next <term>", "timezone": "Europe/Berlin"}
    refused = browser.post("/courses", data={**typed, "slug": COURSE})
    assert (refused.status_code, "already" in refused.text, "Next &lt;term&gt;" in refused.text) == (409, True, True)
    assert browser.post("/courses", data=typed).headers["location"] == "/courses/gpu-2027/schedule"
    files = "/courses/gpu-2027/assignment-files"
    assert files in browser.get("/courses/gpu-2027/schedule").text
    offered = browser.get(files).text
    assert "New to this course" in offered
    assert f'value="{RUNG}" aria-label' in offered, "what is new is chosen by hand"
    assert 'href="/courses/gpu-2027/schedule">schedule</a>' in offered
    assert browser.post(files).status_code == 422
    added = browser.post(files, data={"slug": RUNG})
    assert "Assignments added or updated: 1. Students do not see" in browser.get(added.headers["location"]).text
    with database.reading() as session:
        seen = select(Course.slug, Assignment.published).join(Assignment.course)
        assert dict(map(tuple, session.execute(seen))) == {COURSE: True, "gpu-2027": False}
    assert "Nothing is new and nothing has changed." in browser.get(files).text
    (config.assignments / RUNG / "README.md").write_text("# Another handout\n")
    changed = browser.get(files).text
    assert "Changed since the course" in changed
    assert f'value="{RUNG}" checked aria-label' in changed
    # The other course keeps its version.
    assert _grading_hashes(database)[0] == _grading_hashes(database)[1]
    for user in (people.tom, people.ines):
        other = site.logged_in(user, config)
        assert other.post("/courses", data={**typed, "slug": "theirs"}).status_code == 403
        assert "Begin an empty course" not in other.get("/courses").text
    assert "Begin an empty course" not in other.get(f"/courses/{COURSE}/settings").text


def test_an_instructor_reads_only_folders_that_a_course_of_theirs_has(database, config, people, site):
    with database.transaction() as session:
        new = courses.create_course(session, slug="gpu-2027", title="Next term")
        courses.enrol(session, course=new, user=people.ines, role=Role.instructor)
    stranger = site.logged_in(people.stranger, config)
    theirs = "/courses/other/assignment-files"
    shown = stranger.get(theirs).text
    assert "An admin adds others" in shown
    assert RUNG not in shown
    assert stranger.post(theirs, data={"slug": RUNG}).status_code == 403
    ines = site.logged_in(people.ines, config)
    files = "/courses/gpu-2027/assignment-files"
    with database.transaction() as session:
        session.get_one(Course, people.course.id).archived_at = datetime.now(UTC)
    assert ines.post(files, data={"slug": RUNG}).status_code == 403
    with database.transaction() as session:
        session.get_one(Course, people.course.id).archived_at = None
    assert "New to this course" in ines.get(files).text
    assert ines.post(files, data={"slug": [RUNG, "unknown"]}).status_code == 403
    assert ines.post(files, data={"slug": RUNG}).status_code == 303
    with database.reading() as session:
        rows = session.execute(select(Course.slug, Assignment.slug).join(Assignment.course)).all()
        assert sorted(map(tuple, rows)) == [(COURSE, RUNG), ("gpu-2027", RUNG)]


def test_the_page_of_assignment_files_names_no_place_of_the_server(config, people, site):
    browser = site.logged_in(people.ines, config)
    files = f"/courses/{COURSE}/assignment-files"
    (config.assignments / RUNG / "assignment.toml").write_text("slug = 7\n")
    shown = browser.get(files).text
    assert "Cannot be read." in shown
    assert f"assignments/{RUNG}/assignment.toml" in shown
    refused = browser.post(files, data={"slug": RUNG})
    assert refused.status_code == 422
    assert str(config.assignments.parent) not in shown + refused.text
    shutil.rmtree(config.assignments)
    assert "has no such folders" in browser.get(files).text
    assert "has no assignment folders" in site.logged_in(people.admin, config).get(files).text


def _no_file(folder):
    (folder / "README.md").unlink()
    (folder / "README.md").mkdir()


def _long_name(folder):
    (folder / ("a" * 120)).write_text("too long for a name in a tar")


def _loop(folder):
    (folder / "starters" / "triton.py").unlink()
    (folder / "starters" / "triton.py").symlink_to("triton.py")


@pytest.mark.parametrize(
    ("broken", "why"),
    [(_no_file, "README.md cannot be read: Is a directory."), (_long_name, "name is too long"), (_loop, "triton.py")],
)
def test_a_folder_that_cannot_be_read_keeps_no_other_from_being_read(*, database, config, people, site, broken, why):
    for root in (config.assignments, config.reference):
        shutil.copytree(root / RUNG, root / "broken")
    manifest = config.assignments / "broken" / "assignment.toml"
    manifest.write_text(manifest.read_text().replace(f'slug = "{RUNG}"', 'slug = "broken"'))
    broken(config.assignments / "broken")
    (config.assignments / RUNG / "README.md").write_text("# Another handout\n")
    browser = site.logged_in(people.admin, config)
    files = f"/courses/{COURSE}/assignment-files"
    shown = browser.get(files)
    assert (shown.status_code, "Cannot be read." in shown.text, why in shown.text) == (200, True, True)
    assert str(config.assignments.parent) not in shown.text
    refused = browser.post(files, data={"slug": [RUNG, "broken"]})
    assert (refused.status_code, why in refused.text) == (422, True)
    assert browser.post(files, data={"slug": RUNG}).status_code == 303
    assert len(_grading_hashes(database)) == 2
    with pytest.raises(InvalidInputError, match=why):
        _synced(database, config, people)


@pytest.mark.parametrize(
    ("file", "same"),
    [
        ("assignments/add_one/README.md", True),
        ("assignments/add_one/starters/triton.py", True),
        ("assignments/add_one/milestones/1_naive.py", True),
        ("assignments/add_one/problem.py", False),
        ("reference/add_one/hidden.toml", False),
        ("reference/add_one/solutions/triton.py", False),
    ],
)
def test_a_new_version_grades_the_same_way_unless_what_decides_changed(*, database, config, people, file, same):
    path = config.assignments.parent / file
    path.write_text(path.read_text() + "\n# A note.\n")
    assert _synced(database, config, people) == [2]
    before, after = _grading_hashes(database)
    assert (before == after) is same


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('title = "', 'title = "A new ', True),
        ('summary = "', 'summary = "In short: ', True),
        ("correctness = 60", "correctness = 70", True),
        ("what to add one to", "one is added to it", True),
        ('entry = "add_one"', 'entry = "plus_one"', False),
        ("n = 16", "n = 17", False),
        ('kind = "exact"', 'kind = "bounded"\nfactor = 1.0', False),
    ],
)
def test_what_the_manifest_only_tells_people_decides_nothing(*, database, config, people, old, new, same):
    path = config.assignments / RUNG / "assignment.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert _synced(database, config, people) == [2]
    before, after = _grading_hashes(database)
    assert (before == after) is same


def test_what_staff_note_makes_no_version_and_travels_nowhere(database, config, people):
    staff = config.reference / RUNG
    (staff / "notes.md").write_text("Measured on Tuesday.\n")
    (staff / "mutants.toml").write_text("# none yet\n")
    (staff / "submissions").mkdir()
    (staff / "submissions" / "passed_other.py").write_text("x = 1\n")
    assert _synced(database, config, people) == []
    (config.assignments / RUNG / "README.md").write_text("# Another handout\n")
    assert _synced(database, config, people) == [2]
    with database.reading() as session:
        for bundle in session.scalars(select(Bundle)):
            with tarfile.open(fileobj=io.BytesIO(bundle.data)) as tar:
                names = {name for name in tar.getnames() if not name.startswith(f"assignments/{RUNG}/")}
            assert names == {f"reference/{RUNG}/hidden.toml", f"reference/{RUNG}/solutions/triton.py"}


def test_files_that_went_back_to_an_earlier_content_use_its_bundle_again(database, config, people):
    path = config.assignments / RUNG / "README.md"
    before = path.read_text()
    for text in (before + "more\n", before):
        path.write_text(text)
        with database.transaction() as session:
            assert len(sync.sync_assignments(session, config, people.course)) == 1
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Bundle)) == 2
        assert session.scalar(select(func.max(AssignmentVersion.number))) == 3


def test_two_courses_share_a_bundle(database, config, people):
    with database.transaction() as session:
        sync.sync_assignments(session, config, courses.course_by_slug(session, "other"))
        assert session.scalar(select(func.count()).select_from(Bundle)) == 1
        assert session.scalar(select(func.count()).select_from(Assignment)) == 2


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("assignments/add_one/assignment.toml", "rung = 1", "rung = 'one'", r"assignment\.toml:3: rung: has to be int"),
        (
            "assignments/add_one/assignment.toml",
            "summary",
            "sumary",
            r"assignment\.toml:4: sumary: .*Did you mean 'summary'",
        ),
        ("assignments/add_one/assignment.toml", "slug =", "slug", r"assignment\.toml:1: is not TOML"),
        ("reference/add_one/hidden.toml", "choose", "chose", r"hidden\.toml:5: .*chose: .*Did you mean 'choose'"),
    ],
)
def test_a_malformed_manifest_changes_nothing_and_says_file_line_and_key(
    *, database, config, people, file, old, new, said
):
    path = config.assignments.parent / file
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InvalidInputError, match=said), database.transaction() as session:
        sync.sync_assignments(session, config, people.course)
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(AssignmentVersion)) == 1


@pytest.mark.parametrize("file", ["README.md", "starters/triton.py"])
def test_a_missing_file_is_named(database, config, people, file):
    (config.assignments / RUNG / file).unlink()
    with pytest.raises(InvalidInputError, match=f"{file} is missing"), database.transaction() as session:
        sync.sync_assignments(session, config, people.course)


def test_the_archive_has_the_public_files_and_nothing_of_the_staffs(database, people):
    with database.reading() as session:
        bundle = session.scalars(select(Bundle)).one().data
        data = sync.archive(
            session, courses.assignment_of(session, courses.membership(session, people.alice, COURSE), RUNG)
        )
    assert SECRET in bundle
    assert SECRET not in data
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = set(tar.getnames())
    assert {
        f"assignments/{RUNG}/{name}" for name in ("assignment.toml", "README.md", "problem.py", "starters/triton.py")
    } <= names
    assert all(name.startswith(f"assignments/{RUNG}/") for name in names)


def test_dates_have_an_order(database, people):
    now = datetime.now(UTC)
    with database.transaction() as session:
        row = session.scalars(select(Assignment)).one()
        with pytest.raises(InvalidInputError):
            courses.set_dates(session, row, open_at=now, due_at=now - timedelta(days=1), late_until=None)
        courses.set_dates(session, row, open_at=None, due_at=now, late_until=now + timedelta(days=1))
        assert row.due_at == now


@pytest.mark.parametrize(
    ("field", "values"),
    [("slug", {"slug": "Has Spaces"}), ("title", {"title": ""}), ("timezone", {"timezone": "Mars/Olympus"})],
)
def test_a_course_that_cannot_be_is_refused_by_field(database, people, field, values):
    with database.transaction() as session, pytest.raises(InvalidInputError) as caught:
        courses.create_course(session, **{"slug": "new", "title": "New", **values})
    assert caught.value.field == field


def test_a_course_exists_once(database, people):
    with database.transaction() as session, pytest.raises(ConflictError):
        courses.create_course(session, slug=COURSE, title="Again")


def test_who_dropped_a_course_can_be_enrolled_again(database, people):
    with database.transaction() as session:
        courses.enrol(session, course=people.course, user=people.carol, role=Role.ta)
        assert courses.membership(session, people.carol, COURSE).role is Role.ta


def test_the_demo_course_can_be_seeded_twice(database, config):
    for password, renew in (("a first password", False), ("a second password", True)):
        with database.transaction() as session:
            seeded = demo.seed(session, config, password=password, renew=renew)
    assert seeded.created == () == seeded.changes
    assert len(seeded.renewed) == len(demo.PEOPLE)
    with database.reading() as session:
        row = session.scalars(select(Assignment)).one()
        assert datetime.now(UTC) < row.due_at < row.late_until
