"""Manifests are read strictly, and say what is wrong with them and where."""

from __future__ import annotations

import dataclasses
import io
import re
import shutil
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.assignment import (
    MOST_R_ZERO,
    Case,
    Layout,
    content_hash,
    evaluate,
    load_assignment,
    load_families,
    load_mutants,
    pack,
    slugs,
    unpack,
)
from autograder.contract import Lane, Language
from autograder.errors import ContractError, ManifestError
from autograder.judge.rules import GPU, HOST

FIXTURES = Path(__file__).parents[1] / "fixtures"
DOUBLE = FIXTURES / "assignments" / "double"
FAMILY = """[[family]]
category = "odd"
size = { n = { prime = [3, 99] } }
dtype = "float32"

"""
MUTANT = """[[mutant]]
name = "m"
language = "triton"
find = "a"
replace = "b"
killed_by = "one"
why = "w"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DOUBLE, tmp_path / "double"))


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "assignment.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_manifest_is_read_whole() -> None:
    found = load_assignment(DOUBLE)
    assert (found.slug, found.rung, found.languages) == ("double", 1, (Language.triton,))
    assert found.signature() == "double(a, out, negative, m, n, a_row)"
    assert [argument.name for argument in found.inputs] == ["a"]
    assert [argument.name for argument in found.outputs] == ["out", "negative"]
    assert found.cases[1].layout == {"a": Layout(pad=7, offset=1), "out": Layout(pad=3)}
    assert found.limits.call_s == 2.0
    assert found.limits.processes == 16


def test_shapes_dtypes_and_costs_follow_from_the_case() -> None:
    found = load_assignment(DOUBLE)
    case = Case("any", {"m": 4, "n": 6}, "float16")
    a, out, negative = found.arguments[:3]
    assert found.shape_of(a, case) == found.shape_of(out, case) == (4, 6)
    assert found.shape_of(negative, case) == (4,)
    assert found.shape_of(dataclasses.replace(a, shape=("m + 1", "2 * n", "3")), case) == (5, 12, 3)
    assert (found.dtype_of(a, case), found.dtype_of(negative, case)) == ("float16", "int32")
    assert found.cost_of(case) == (24.0, 2 * 24 * 2 + 16)


def test_lanes_have_their_own_cases_and_policies(folder: Path) -> None:
    edit(folder, 'name = "ranked"\n', 'name = "ranked"\nlanes = ["b200"]\n')
    found = load_assignment(folder)
    assert [case.name for case in found.cases_for(Lane.cpu)] == ["small", "padded"]
    assert [case.name for case in found.cases_for(Lane.b200)] == ["small", "padded", "ranked"]
    assert found.policy(Lane.b200) is None
    policy = found.policy(Lane.cpu)
    assert policy is not None
    assert (policy.pairs, policy.speed_points) == (3, False)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Double"', 'titel = "Double"', "titel: is not a key that an assignment has. Did you mean 'title'?"),
        ('title = "Double"', "", "'title' is missing"),
        ("rung = 1", 'rung = "1"', "rung: has to be int, not str"),
        ("rung = 1", "rung = true", "rung: has to be int, not bool"),
        ('languages = ["triton"]', 'languages = ["tritn"]', "Did you mean 'triton'?"),
        ('languages = ["triton"]', 'languages = "triton"', "has to be a list, not str"),
        ('role = "input"', 'role = "in"', "'in' is none of input, output, size, stride, scalar"),
        ('role = "size"', 'role = "scalar"', "the scalar 'm' needs float32 or int64, no shape"),
        ('shape = ["m", "n"]', 'shape = ["m", "k"]', "'k' is a size that no case sets"),
        ('shape = ["m", "n"]', 'shape = ["m", "2 * k + 1"]', "'k' is a size that no case sets"),
        ('shape = ["m", "n"]', 'shape = ["m", "n +"]', "cannot be evaluated"),
        ('of = "a"', 'of = "b"', "'b' is not an argument"),
        ('dtype = "float32"\n', 'dtype = "float"\n', "'float' is none of float64"),
        ("size = { m = 3, n = 5 }", "size = { m = 3 }", "case 'small' does not set 'n'"),
        ('name = "padded"', 'name = "small"', "two cases have the same name"),
        ("layout = { a = {", "layout = { b = {", "'b' in `layout` is no tensor"),
        ("[tolerance.negative]", "[tolerance.positive]", "needs one entry per output and no other"),
        ("[lane.cpu]", "[lane.tpu]", "is none of cpu"),
        ("pairs = 3", "pairs = 3\nr_full = 20.0", "below r_zero"),
        ("pairs = 3", "pairs = 3\nr_full = 0.0", "has to be above 0"),
        ("pairs = 3", "pairs = 3\nr_full = nan", "has to be above 0"),
        ("pairs = 3", "pairs = 3\nr_zero = inf", "has to be a number"),
        ("pairs = 3", "pairs = 3\nr_zero = 101.0", "lane.cpu.r_zero: cannot be above 100"),
        ("correctness = 60", "correctness = inf", "points.correctness: has to be 0 or more"),
        ("pairs = 3", "pairs = 3\nranks = false\napart = true", "apart: needs `ranks`"),
        ("pairs = 3", "pairs = 3\n[lane.b200]\napart = 1", "apart: has to be bool, not int"),
        ('flops = "m * n"', 'flops = "m * k"', "cannot be evaluated"),
        ('flops = "m * n"', 'flops = "m *"', "cannot be evaluated"),
        ('flops = "m * n"', 'flops = "m / (n - n)"', "cannot be evaluated"),
        ('slug = "double"', 'slug = "twice"', "says 'twice', the folder is 'double'"),
        ("rung = 1", "rung =", "is not TOML"),
        ("[[case]]", "[[cases]]", "cases: is not a key that an assignment has. Did you mean 'case'?"),
        ('dtype = "float32"\n', 'dtype = "flot32"\n', "Did you mean 'float32'?"),
        ('kind = "exact"', 'kind = "exakt"', "is no kind of tolerance. Did you mean 'exact'?"),
        ("[lane.cpu]", "[lane.h20]", "lane.h20: is none of cpu, h100, h200, b200. Did you mean 'h200'?"),
        (
            "size = { m = 3, n = 5 }",
            "size = { m = 3, n = 5, nn = 5 }",
            "sets 'nn', as few others do. Did you mean 'n'?",
        ),
        ("size = { m = 3, n = 5 }", "size = { m = 3, n = -5 }", "'n' cannot be below 0"),
        ('entry = "double"', 'entry = "class"', "entry: 'class' cannot be a name in Python"),
        ('name = "a_row"', 'name = "a row"', ".name: 'a row' cannot be a name in Python"),
        ("call_s = 2", "call_s = -2", "limits.call_s: has to be above 0"),
        ("total_s = 20", "total_s = 301", "limits.total_s: has to be 300 or less"),
        ("pairs = 3", "pairs = 0", "lane.cpu.pairs: has to be 1 or more"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, old: str, new: str, words: str) -> None:
    edit(folder, old, new)
    with pytest.raises(ManifestError) as caught:
        load_assignment(folder)
    assert words in str(caught.value)
    assert "assignment.toml" in str(caught.value)


def test_a_lane_that_measures_apart_needs_a_case_to_measure(folder: Path) -> None:
    edit(folder, "pairs = 3", "pairs = 3\napart = true")
    policy = load_assignment(folder).policy(Lane.cpu)
    assert policy is not None
    assert policy.apart
    edit(folder, "ranked = true", "ranked = true\nlanes = ['h200']")
    with pytest.raises(ManifestError, match="needs a ranked case"):
        load_assignment(folder)


def test_the_line_of_a_wrong_key_is_given(folder: Path) -> None:
    edit(folder, "rung = 1", 'rung = "1"')
    with pytest.raises(ManifestError) as caught:
        load_assignment(folder)
    assert (caught.value.key, caught.value.line) == ("rung", 3)


def test_the_line_of_a_wrong_element_of_a_list_is_given(folder: Path) -> None:
    edit(folder, 'languages = ["triton"]', 'languages = ["tritn"]')
    with pytest.raises(ManifestError) as caught:
        load_assignment(folder)
    assert (caught.value.key, caught.value.line) == ("languages[0]", 7)


def test_the_line_is_that_of_the_case_that_is_wrong(folder: Path) -> None:
    """Every case sets `dtype`; the third is wrong, not the first."""
    text = (folder / "assignment.toml").read_text(encoding="utf-8")
    third = [place.start() for place in re.finditer(r"^\[\[case\]\]", text, re.MULTILINE)][2]
    wrong = text[:third] + text[third:].replace('dtype = "float32"', 'dtype = "float"', 1)
    (folder / "assignment.toml").write_text(wrong, encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        load_assignment(folder)
    assert (caught.value.key, caught.value.line) == ("case[2].dtype", wrong[: wrong.index('"float"')].count("\n") + 1)


@pytest.mark.parametrize(
    ("file", "text", "words", "line"),
    [
        (
            "hidden.toml",
            "[[famly]]\n",
            "famly: is not a key that a family of hidden cases has. Did you mean 'family'?",
            1,
        ),
        ("hidden.toml", FAMILY + FAMILY.replace('"float32"', '"floot32"'), "family[1].dtype: 'floot32' is none of", 9),
        ("hidden.toml", FAMILY + FAMILY.replace("category", "categry"), "Did you mean 'category'?", 7),
        ("mutants.toml", "[[mutants]]\n", "mutants: is not a key that a mutant has. Did you mean 'mutant'?", 1),
        ("mutants.toml", MUTANT + MUTANT, "mutant[1].name: two mutants have the name 'm'", 9),
        ("mutants.toml", MUTANT + 'verdict = "wrong_anwser"', "Did you mean 'wrong_answer'?", 8),
        ("mutants.toml", MUTANT + 'verdict = "passed"', "is no verdict that a mutant can get", 8),
        ("mutants.toml", MUTANT.replace('find = "a"', 'find = ""'), "is empty", 4),
    ],
)
def test_what_is_wrong_in_the_staffs_files_is_said(tmp_path: Path, file: str, text: str, words: str, line: int) -> None:
    (tmp_path / file).write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        (load_families if file == "hidden.toml" else load_mutants)(tmp_path)
    assert words in str(caught.value)
    assert (caught.value.path.name, caught.value.line) == (file, line)


def test_a_missing_manifest_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        load_assignment(tmp_path)


def test_assignments_are_listed_by_rung(folder: Path) -> None:
    second = Path(shutil.copytree(folder, folder.parent / "first"))
    edit(second, 'slug = "double"', 'slug = "first"')
    edit(second, "rung = 1", "rung = 0")
    assert slugs(folder.parent) == ("first", "double")
    assert slugs(folder.parent, Lane.cpu) == ("first", "double")
    assert slugs(folder.parent, Lane.b200) == ()


@pytest.mark.parametrize("draw", ["{ choose = [1], near = [2] }", "{}", "{ choose = [] }"])
def test_a_family_draws_each_number_in_exactly_one_way(tmp_path: Path, draw: str) -> None:
    text = f'[[family]]\ncategory = "x"\ndtype = "float32"\nsize = {{ m = {draw} }}\n'
    (tmp_path / "hidden.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError, match="exactly one of choose, near, between and prime"):
        load_families(tmp_path)


def test_mutants_are_read(tmp_path: Path) -> None:
    (tmp_path / "mutants.toml").write_text(
        '[[mutant]]\nname = "off_by_one"\nlanguage = "triton"\n'
        'find = "<"\nreplace = "<="\nkilled_by = "odd"\nwhy = "x"\n',
        encoding="utf-8",
    )
    (mutant,) = load_mutants(tmp_path)
    assert (mutant.name, mutant.verdict) == ("off_by_one", "wrong_answer")


NAMES = {"n": 8.0, "e": 4.0}


@pytest.mark.parametrize(
    ("formula", "value"),
    [("2 * n * e", 64.0), ("-n ** 2", -64.0), ("n // 3 - 1", 1.0), ("ceil(n / 3)", 3.0), ("max(n, log2(e))", 8.0)],
)
def test_formulas_are_arithmetic(formula: str, value: float) -> None:
    assert evaluate(formula, NAMES) == value


@pytest.mark.parametrize(
    "formula",
    [
        "k", "n.real", "n()", "__import__('os')", "(lambda: 1)()", "[n]", "n if n else e", "'a' * 9", "min()", "n / 0",
        "9.0 ** 9 ** 9", "log2(0)", "max(n, key=e)", "n < e", "n and e", "~n",
    ],
)  # fmt: skip
def test_formulas_are_nothing_but_arithmetic(formula: str) -> None:
    with pytest.raises(ValueError):
        evaluate(formula, NAMES)


files = st.dictionaries(
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=3).map("/".join),
    st.binary(max_size=50),
    max_size=5,
).filter(lambda named: not any(other.startswith(f"{name}/") for name in named for other in named))


@given(files)
def test_a_bundle_holds_exactly_its_files_and_its_bytes_follow_from_them(
    tmp_path_factory: pytest.TempPathFactory, named: dict[str, bytes]
) -> None:
    folder, target = tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("out")
    for name, data in named.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    bundle = pack({"assignments/x": folder})
    unpack(bundle, target)
    found = {
        path.relative_to(target / "assignments/x").as_posix(): path.read_bytes()
        for path in target.rglob("*")
        if path.is_file()
    }
    assert found == named
    again = tmp_path_factory.mktemp("again")
    shutil.copytree(target / "assignments/x", again / "y") if named else (again / "y").mkdir()
    assert content_hash(pack({"assignments/x": again / "y"})) == content_hash(bundle)


def test_compiled_files_are_not_packed(folder: Path) -> None:
    before = pack({"a": folder})
    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__" / "problem.pyc").write_bytes(b"x")
    assert pack({"a": folder}) == before


def test_a_folder_may_be_packed_in_part(folder: Path, tmp_path: Path) -> None:
    (folder / "solutions").mkdir()
    (folder / "solutions" / "triton.py").write_text("x = 1\n")
    (folder / "notes.md").write_text("Said among staff.\n")
    (folder / "solutions.md").write_text("Said among staff.\n")
    bundle = pack({"a": folder, "b": folder}, only={"b": ("solutions", "hidden.toml")})
    unpack(bundle, tmp_path / "out")
    assert (tmp_path / "out/a/notes.md").is_file()
    found = [path for path in (tmp_path / "out/b").rglob("*") if path.is_file()]
    assert found == [tmp_path / "out/b/solutions/triton.py"]


def test_another_content_has_another_name(folder: Path) -> None:
    before = content_hash(pack({"a": folder}))
    edit(folder, "Double a matrix", "Double the matrix")
    assert content_hash(pack({"a": folder})) != before
    assert before.startswith("sha256:")


def bundle_of(member: tarfile.TarInfo, data: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member.size = len(data)
        tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../outside", "/etc/outside"])
def test_a_bundle_cannot_write_outside_its_folder(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(ContractError, match="files only"):
        unpack(bundle_of(tarfile.TarInfo(name), b"x"), inside)
    assert not (tmp_path / "outside").exists()
    assert not Path("/etc/outside").exists()


def test_a_bundle_cannot_hold_links_to_elsewhere(tmp_path: Path) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with pytest.raises(ContractError, match="files only"):
        unpack(bundle_of(link), tmp_path)


def test_speed_points_end_where_the_judge_measures_less_carefully():
    assert {GPU.max_ratio_for_full_sampling, HOST.max_ratio_for_full_sampling} == {MOST_R_ZERO}
