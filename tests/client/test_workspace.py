from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from autograder.assignment import pack
from autograder.contract import Language
from client import workspace
from client.errors import OursError, UsageError
from client.workspace import Note

REPOSITORY = Path(__file__).parents[2]


def _tar(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return buffer.getvalue()


def _member(name: str, **changes: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = 1
    for key, value in changes.items():
        setattr(member, key, value)
    return member


def test_an_archive_is_unpacked_over_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "README.md").write_text("newer")
    desk = tmp_path / "shelf"
    desk.mkdir()
    (desk / "README.md").write_text("older")
    workspace.unpack(pack({"assignments/softmax": tmp_path / "new"}), "softmax", desk, renew=True)
    assert (desk / "README.md").read_text() == "newer"


def test_folders_that_a_rung_gives_are_unpacked(tmp_path: Path) -> None:
    folder, desk = REPOSITORY / "assignments" / "profile_repair", tmp_path / "desk"
    workspace.unpack(pack({"assignments/profile_repair": folder}), "profile_repair", desk, renew=False)
    for name in ("given/a.cu", "given/c.py", "recorded/a.txt", "recorded/layer_trace.json"):
        assert (desk / name).read_bytes() == (folder / name).read_bytes()


@pytest.mark.parametrize(
    "member",
    [
        _member("assignments/softmax/../../../escaped"),
        _member("/escaped"),
        _member("assignments/softmax/link", type=tarfile.SYMTYPE, linkname="/etc/passwd", size=0),
        _member("assignments/softmax/hard", type=tarfile.LNKTYPE, linkname="/etc/passwd", size=0),
        _member("assignments/softmax/device", type=tarfile.CHRTYPE, size=0),
        _member("assignments/softmax/pipe", type=tarfile.FIFOTYPE, size=0),
    ],
    ids=lambda member: member.name,
)
def test_an_archive_that_reaches_out_of_its_folder_is_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    desk = tmp_path / "shelf"
    desk.mkdir()
    with pytest.raises(OursError, match="cannot be unpacked"):
        workspace.unpack(_tar(_member("assignments/softmax/README.md"), member), "softmax", desk, renew=False)
    assert list(desk.iterdir()) == []
    assert not list(tmp_path.rglob("escaped"))


def test_an_archive_of_another_assignment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OursError, match="no files of softmax"):
        workspace.unpack(_tar(_member("assignments/other/README.md")), "softmax", tmp_path, renew=False)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OursError, match="cannot be unpacked"):
        workspace.unpack(b"<html>" * 200, "softmax", tmp_path, renew=False)


def test_a_note_says_where_a_folder_came_from(tmp_path: Path) -> None:
    note = Note('http://x/"quoted"', "gpu", "softmax", "triton", "softmax.py")
    workspace.write_note(tmp_path, note)
    (tmp_path / "below").mkdir()
    assert workspace.find_note(tmp_path / "below") == (tmp_path, note)


def test_a_broken_note_is_named(tmp_path: Path) -> None:
    (tmp_path / workspace.NOTE).write_text("slug = ")
    with pytest.raises(UsageError, match=r"\.ladder\.toml"):
        workspace.find_note(tmp_path)


def test_the_folder_says_what_its_file_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.write_note(tmp_path, Note("http://x", "gpu", "softmax", "triton", "mine.py"))
    (tmp_path / "mine.py").write_text("pass\n")
    monkeypatch.chdir(tmp_path)
    target = workspace.find_target(None, None, None)
    assert (target.slug, target.language, target.course) == ("softmax", Language.triton, "gpu")
    assert target.folder == tmp_path


def test_a_slug_that_is_said_wins_over_the_folder(tmp_path: Path) -> None:
    workspace.write_note(tmp_path, Note("http://x", "gpu", "softmax", "triton", "mine.py"))
    (tmp_path / "mine.py").write_text("pass\n")
    target = workspace.find_target(tmp_path / "mine.py", "matmul_tiled", None)
    assert (target.slug, target.folder) == ("matmul_tiled", None)


@pytest.mark.parametrize(("name", "language"), [("softmax.py", Language.triton), ("softmax.cu", Language.cuda)])
def test_a_files_name_says_slug_and_language(tmp_path: Path, name: str, language: Language) -> None:
    (tmp_path / name).write_text("x\n")
    target = workspace.find_target(tmp_path / name, None, None)
    assert (target.slug, target.language, target.folder) == ("softmax", language, None)


def test_nothing_to_guess_from_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a file"):
        workspace.find_target(None, None, None)
    with pytest.raises(UsageError, match="there is no file"):
        workspace.find_target(tmp_path / "absent.py", None, None)
    (tmp_path / "x.py").write_text("x\n")
    with pytest.raises(UsageError, match="not one of"):
        workspace.find_target(tmp_path / "x.py", None, "fortran")
