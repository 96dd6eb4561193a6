"""Records of languages: what they name is there, and a file's language is found."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from pygments.lexers import get_lexer_by_name

from autograder import languages
from autograder.contract import FIRST_LANGUAGE, GradeRequest, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.languages.record import HARNESS, Record
from autograder.sandbox.process import ProcessSandbox
from server.errors import InvalidInputError
from server.submissions import submissions

ROOT = Path(__file__).parents[2]
EVERY = pytest.mark.parametrize("record", languages.ALL, ids=lambda record: record.id)


def _sibling(monkeypatch: pytest.MonkeyPatch) -> Record:
    """Another language whose files end as the first one's do."""
    first = languages.ALL[0]
    other = replace(first, id="sibling", order=99, recognised_by=r"^import sibling$")
    monkeypatch.setattr(languages, "ALL", (*languages.ALL, other))
    return other


def test_the_vocabulary_has_a_word_for_every_record_in_their_order() -> None:
    assert [word.value for word in Language] == [record.id for record in languages.ALL]
    assert languages.ALL[0].id == FIRST_LANGUAGE
    assert len({record.order for record in languages.ALL}) == len(languages.ALL)


@EVERY
def test_what_a_record_names_can_be_imported_where_it_is_used(record: Record) -> None:
    for dotted in filter(None, (record.cpu_loader, record.gpu_loader, record.compiler)):
        module, _, name = dotted.partition(":")
        spec = find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        assert re.search(rf"^(?:class|def) {name}\b", Path(spec.origin).read_text(), re.MULTILINE)
    assert ":" in record.lexer or get_lexer_by_name(record.lexer)


@EVERY
def test_a_record_says_what_a_student_is_told(record: Record) -> None:
    assert record.cpu_lane
    assert record.compile_s > 0 or not record.compiler
    assert {kind.verdict for kind in record.error_kinds.values()} <= {"", *(verdict.value for verdict in Verdict)}


def test_languages_that_share_an_error_kind_mean_the_same_by_it() -> None:
    for record in languages.ALL:
        for kind, meaning in record.error_kinds.items():
            assert languages.error_kinds()[kind] == meaning


def test_records_import_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import autograder.languages; "
        "print(sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "['autograder']"


def test_the_extras_have_what_the_languages_need() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in {record.extra for record in languages.ALL}:
        needed = {package for record in languages.ALL if record.extra == extra for package in record.packages}
        assert {one for one in extras[extra] if not one.startswith(("torch", "numpy"))} == needed
    for record in languages.ALL:
        assert {extra: tuple(extras[extra]) for extra in record.optional} == record.optional


def test_a_node_lacks_the_languages_of_which_it_says_that_something_is_not_installed() -> None:
    facts = dict.fromkeys(languages.distributions(), "1.0")
    assert languages.lacking(facts) == frozenset()
    # Of what it does not speak nothing is known: nodes of an older release say less.
    assert languages.lacking({}) == frozenset()
    optional = [record for record in languages.ALL if record.extra != HARNESS]
    assert optional
    beside = [names for record in languages.ALL for names in record.optional.values()]
    assert beside
    for (package,) in beside:
        name = re.split(r"[^\w.-]", package, maxsplit=1)[0]
        assert languages.lacking(facts | {name: languages.NOT_INSTALLED}) == frozenset()
    for record in optional:
        name = re.split(r"[^\w.-]", record.packages[0], maxsplit=1)[0]
        assert languages.lacking(facts | {name: languages.NOT_INSTALLED}) == {record.id}
        assert not set(record.imports) & set(languages.imports())


@pytest.mark.parametrize("what", ["packages", "distributions", "system"])
def test_scripts_are_told_what_to_install(what: str) -> None:
    command = [sys.executable, "-m", "autograder.languages", what]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.split()
    assert said
    assert len(said) == len(set(said))
    outside = languages.distributions(record for record in languages.ALL if not record.in_images)
    assert outside
    assert not set(outside) & {re.split(r"[^\w.-]", word, maxsplit=1)[0] for word in said}


def test_nothing_else_is_told() -> None:
    done = subprocess.run([sys.executable, "-m", "autograder.languages"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


@EVERY
def test_a_file_is_of_the_language_that_has_its_ending(record: Record) -> None:
    owners = [one.id for one in languages.ALL if record.endings[0] in one.endings]
    found = languages.of_file(f"kernel{record.endings[0]}")
    assert found is not None
    assert found.id == owners[0]


def test_an_ending_of_nobodys_is_of_no_language() -> None:
    assert languages.of_file("kernel.txt") is None
    assert languages.known("english") is None
    with pytest.raises(KeyError):
        languages.of("english")


def test_where_endings_are_shared_the_file_says_its_language(monkeypatch: pytest.MonkeyPatch) -> None:
    other = _sibling(monkeypatch)
    first, among = languages.ALL[0], [record.id for record in languages.ALL]
    name = f"kernel{first.endings[0]}"
    said = {
        "x = 1\n": first,
        "import sibling\n": other,
        "# language: sibling\nx = 1\n": other,
        f"# language: {first.id}\nimport sibling\n": first,
        "\n" * 40 + "# language: sibling\n": first,
        "x = 'language: sibling'\n": first,
    }
    assert {text: languages.of_file(name, text, among=among) for text in said} == said
    assert languages.of_file(name, "import sibling\n", among=[first.id]) is first
    assert languages.of_file(f"sibling{first.endings[0]}", "x = 1\n", among=among) is other
    assert languages.of_file(f"{first.id}{first.endings[0]}", "import sibling\n", among=among) is first


@EVERY
@pytest.mark.parametrize("lane", list(Lane))
def test_a_lane_that_does_not_run_a_language_says_so_and_where_to_go(record: Record, lane: Lane) -> None:
    refused = record.refused(lane)
    assert bool(refused) is not bool(record.loader(lane))
    assert not refused or (record.title in refused and (lane is not Lane.cpu or record.cpu_lane in refused))


def test_the_judge_refuses_by_name_what_its_lane_does_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", folder)
    manifest = folder / "assignment.toml"
    manifest.write_text(re.sub(r"(?m)^languages = .*$", 'languages = ["gluon"]', manifest.read_text()))
    request = GradeRequest("vector_add", "", Language("gluon"), Lane.cpu, Mode.run, "x = 1\n", "mine.py")
    with closing(ProcessSandbox()) as sandbox:
        result = grade(request, assignment_folder=folder, reference_folder=None, sandbox=sandbox)
    assert result.verdict is Verdict.compile_error
    assert "Gluon does not run on the lane cpu" in result.explanation
    assert "GPU lane" in result.explanation


def test_the_server_refuses_it_before_it_is_taken() -> None:
    detail = SimpleNamespace(title="X", lanes=tuple(Lane), spec=SimpleNamespace(languages=tuple(Language)))
    refused = [record for record in languages.ALL if not record.cpu_loader]
    assert refused
    for record in refused:
        with pytest.raises(InvalidInputError, match=f"{record.title} does not run on the lane cpu.*GPU lane"):
            submissions._check_choice(detail, Lane.cpu, Language(record.id))
        submissions._check_choice(detail, Lane.h200, Language(record.id))
    for language in (language for language in Language if languages.of(language) not in refused):
        submissions._check_choice(detail, Lane.cpu, language)


def test_files_of_a_folder_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = _sibling(monkeypatch)
    monkeypatch.setattr(languages, "_BY_ID", {record.id: record for record in languages.ALL})
    first, among = languages.ALL[0], [record.id for record in languages.ALL]
    ending = first.endings[0]
    (tmp_path / f"b{ending}").write_text("import sibling\n")
    (tmp_path / f"a{ending}").write_text("x = 1\n")
    (tmp_path / "c.txt").write_text("x = 1\n")
    assert [path.stem for path in languages.files_in(tmp_path, first.id, among=among)] == ["a"]
    assert [path.stem for path in languages.files_in(tmp_path, other.id, among=among)] == ["b"]


@pytest.mark.parametrize(
    "change",
    [{"id": "Two words"}, {"endings": ()}, {"endings": ("py",)}, {"cpu_loader": "nowhere"}, {"compiler": "a.b:c:d"}],
    ids=str,
)
def test_a_record_that_cannot_be_used_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="the record of the language"):
        replace(languages.ALL[0], **change)
