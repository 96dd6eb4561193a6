"""Every hostile `.cu` file gets its verdict and nothing else; without the defence that it meets it succeeds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import codec, toolchain
from autograder.contract import CompiledFor, FindingKind, GradeRequest, GradeResult, Lane, Language, Mode, Verdict
from autograder.judge import grade
from autograder.judge.compile import cross_compile
from autograder.sandbox import Promise
from autograder.sandbox.process import ProcessSandbox
from tests.hostile_cuda.corpus import SECRET, Attack, attacks, files
from tests.suite.choose import each, first_of_each

ROOT = Path(__file__).parents[2]
ALL = attacks()
QUICK = {min(first_of_each(ALL))}
BITES = [attack for attack in ALL if attack.bite]
NVCC = any(shutil.which("nvcc", path=place) for place in (None, "/usr/local/cuda/bin", "/usr/local/bin"))
SECRET_TEXT = "LOOT_that_no_runner_may_read"

pytestmark = [
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def secret() -> Iterator[Path]:
    """A file that everybody on this machine may read, outside of what a runner sees."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-cuda-"))
    folder.chmod(0o755)
    path = folder / "secret"
    path.write_text(SECRET_TEXT, encoding="utf-8")
    path.chmod(0o644)
    yield path
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    made = ProcessSandbox()
    yield made
    made.close()


def graded(
    attack: Attack,
    sandbox: ProcessSandbox,
    secret: Path,
    folder: Path,
    *,
    limits: dict[str, float],
    define: dict[str, str],
) -> GradeResult:
    """Grade one file on a copy of vector add with these limits and values."""
    assignment = folder / "vector_add"
    shutil.copytree(ROOT / "assignments" / "vector_add", assignment)
    manifest = assignment / "assignment.toml"
    text = manifest.read_text(encoding="utf-8").replace("pairs = 7", "pairs = 1")
    lines = "".join(f"{key} = {value}\n" for key, value in limits.items())
    manifest.write_text(text.replace("[limits]\n", f"[limits]\n{lines}"), encoding="utf-8")
    source = attack.source(define).replace(SECRET, str(secret))
    mode = Mode(attack.mode)
    request = GradeRequest("vector_add", "", Language.cuda, Lane.cpu, mode, source, "vector_add.cu")
    reference = ROOT / "reference" / "vector_add" if mode is Mode.submission else None
    return grade(request, assignment_folder=assignment, reference_folder=reference, sandbox=sandbox)


def said_of(target: CompiledFor) -> str:
    """All that the compile checks say of a target, names of kernels included."""
    return "\n".join(
        [
            target.message,
            f"{target.left_out} left out",
            *(f"{kernel.kernel}: {kernel.message}" for kernel in target.kernels),
        ]
    )


@pytest.fixture(autouse=True)
def _time_to_compile(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """What a busy machine takes is not what is tested, but for files that the compiler has no end with."""
    attack = request.node.callspec.params.get("attack") if hasattr(request.node, "callspec") else None
    bite = "without" in request.node.name
    budget_s = attack.compile_s if attack is not None and not bite else 120.0
    monkeypatch.setattr(cross_compile, "BUDGET_S", {Language.cuda: budget_s})
    monkeypatch.setattr(cross_compile, "DEADLINE_S", 200.0)


@each(ALL, QUICK)
def test_a_hostile_file_gets_its_verdict_and_nothing_else(
    attack: Attack, sandbox: ProcessSandbox, secret: Path, tmp_path: Path
) -> None:
    if any(Promise(promise) not in sandbox.promises for promise in attack.needs):
        pytest.skip("the process sandbox does not promise what this file meets on this machine")
    result = graded(attack, sandbox, secret, tmp_path, limits=attack.limits, define=attack.define)
    assert result.verdict is attack.verdict, (result.explanation, result.log[-2000:])
    assert SECRET_TEXT not in codec.dumps(result)
    assert {finding.kind for finding in result.findings} == set(attack.findings)
    if attack.compiled and NVCC:
        assert result.compiled
        for target in result.compiled:
            assert any(words in said_of(target) for words in attack.compiled), said_of(target)


@each(BITES, QUICK)
def test_without_what_it_meets_it_succeeds(
    attack: Attack, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without private files a runner is shown the secret's folder, and still the harness wherever the checkout lies."""
    bite = attack.bite
    assert bite is not None
    if attack.compiled and not NVCC:
        pytest.skip("what it attacks is not on this machine")
    if Promise.private_files in bite.without:
        shown = (*toolchain.readable(), str(secret.parent))
        monkeypatch.setattr(toolchain, "readable", lambda: shown)
    weak = ProcessSandbox()
    try:
        limits, define = bite.limits or attack.limits, bite.define or attack.define
        result = graded(attack, weak, secret, tmp_path, limits=limits, define=define)
    finally:
        weak.close()
    if bite.succeeds == "compiled":
        assert [target.message for target in result.compiled] == ["", ""]
        assert not any(kernel.message for target in result.compiled for kernel in target.kernels)
    elif bite.succeeds == "loot":
        assert SECRET_TEXT in codec.dumps(result), (result.verdict, result.log[-2000:])
    else:
        assert result.verdict == bite.succeeds, result.explanation


@pytest.mark.quick
def test_the_table_and_the_folder_say_the_same() -> None:
    assert {attack.name for attack in ALL} == files()


def test_a_row_says_enough() -> None:
    for attack in ALL:
        name = attack.name
        assert attack.meets, name
        assert attack.tries(), name
        assert attack.threat[0] in "ABCDEFG", name
        assert set(attack.findings) <= {kind.value for kind in FindingKind}, name
        on_gpu = attack.expected(gpu=True)
        assert isinstance(on_gpu, str) or set(on_gpu) <= set(Verdict), name
        assert bool(attack.because) == (not isinstance(on_gpu, str) and len(on_gpu) > 1), name
