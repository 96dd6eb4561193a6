"""What a student installs: the wheel, with its base dependencies only."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from autograder.assignment import slugs
from client.account import Account, load_account
from client.api import Api

REPOSITORY = Path(__file__).resolve().parents[2]
STAFF_ONLY = ("hidden.toml", "mutants.toml", "notes.md", "solutions")

Ladder = Callable[..., Result]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=REPOSITORY, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel_names(distributions: Path) -> list[str]:
    (wheel,) = distributions.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment with the wheel in it and nothing that it did not ask for."""
    folder = tmp_path_factory.mktemp("laptop")
    venv.create(folder, with_pip=True)
    (wheel,) = distributions.glob("*.whl")
    command = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("the base dependencies cannot be installed: no package registry answers")
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def _run(program: Path, *arguments: str, account: Account | None = None) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if account is not None:
        environ |= {"LADDER_SERVER": account.server, "LADDER_TOKEN": account.token}
    return subprocess.run([program, *arguments], env=environ, capture_output=True, text=True, check=False)


def test_neither_distribution_has_anything_of_the_reference(distributions: Path, wheel_names: list[str]) -> None:
    (source,) = distributions.glob("*.tar.gz")
    with tarfile.open(source) as tar:
        names = [*wheel_names, *tar.getnames()]
    assert [name for name in names if "reference" in Path(name).parts or Path(name).name in STAFF_ONLY] == []


def test_no_line_of_a_staff_kernel_is_in_the_wheel(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    kernels = [path.read_bytes() for path in REPOSITORY.glob("reference/*/solutions/*")]
    with zipfile.ZipFile(wheel) as archive:
        shipped = [archive.read(name) for name in archive.namelist()]
    assert len(kernels) >= len(slugs(REPOSITORY / "assignments"))
    assert not {kernel for kernel in kernels if any(kernel in data for data in shipped)}


def test_the_wheel_has_the_assignments_and_the_pages(wheel_names: list[str]) -> None:
    shipped = {name.partition("share/kernel-ladder/")[2] for name in wheel_names}
    for slug in slugs(REPOSITORY / "assignments"):
        assert f"assignments/{slug}/assignment.toml" in shipped
    assert any(name.startswith("web/templates/") for name in shipped)


def test_an_archive_that_students_get_has_nothing_of_the_reference(alice: str, ladder: Ladder, tmp_path: Path) -> None:
    with Api(load_account()) as api:
        for slug in slugs(REPOSITORY / "assignments"):
            archive = tmp_path / f"{slug}.tar"
            archive.write_bytes(api.archive("gpu-demo", slug))
            with tarfile.open(archive) as tar:
                names = tar.getnames()
            assert {Path(name).parts[:2] for name in names} == {("assignments", slug)}
            assert not {Path(name).name for name in names} & set(STAFF_ONLY)


@pytest.mark.full("slow")
def test_the_base_installation_is_small_and_explains_itself(installed: Path) -> None:
    shown = _run(installed / "ladder", "--help")
    assert shown.returncode == 0, shown.stderr
    assert "submit" in shown.stdout
    listed = _run(installed / "python", "-m", "pip", "list", "--format", "freeze").stdout.lower()
    for heavy in ("torch", "triton", "sqlalchemy", "fastapi", "celery", "supervisor"):
        assert f"{heavy}==" not in listed


@pytest.mark.full("slow")
def test_the_base_installation_talks_to_a_server(installed: Path, alice: str) -> None:
    listed = _run(installed / "ladder", "list", account=load_account())
    assert listed.returncode == 0, listed.stderr
    assert "vector_add" in listed.stdout


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (["check", "vector_add.py"], "harness"),
        (["admin", "create-user"], "server"),
        (["admin", "grade-file", "vector_add", "vector_add.py"], "harness"),
        (["assignments", "verify"], "harness"),
        (["web"], "server"),
        (["recorder"], "server"),
        (["worker"], "worker"),
        (["up"], "node"),
        (["demo"], "node"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_needs_more_says_which_extra(installed: Path, command: list[str], extra: str) -> None:
    Path("vector_add.py").write_text("pass\n")
    Path("reference/vector_add").mkdir(parents=True)
    Path("assignments/vector_add").mkdir(parents=True)
    Path("assignments/vector_add/assignment.toml").write_text("")
    done = _run(installed / "ladder", *command)
    assert (done.returncode, f"[{extra}]" in done.stderr) == (2, True), done.stderr
