"""Who asks for more memory than there is gets an error, and goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from server import recorder
from server.config import load_config

MIB = 2**20
TRIES = """
import json, resource, sys
from pathlib import Path
from server.memory_limit import keep_within_the_container
before = resource.getrlimit(resource.RLIMIT_DATA)[0]
said, tried = keep_within_the_container(Path(sys.argv[1])), []
for size in (1 << 20, 1 << 30, 1 << 20):
    try:
        tried.append(len(bytearray(size)) == size)
    except MemoryError:
        tried.append(False)
print(json.dumps([said, tried, before == resource.getrlimit(resource.RLIMIT_DATA)[0]]))
"""


def tried(cgroup: Path) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", TRIES, str(cgroup)], capture_output=True, text=True, check=True, timeout=60
    )
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_too_much_is_an_error_and_no_end(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{512 * MIB}\n")
    assert tried(tmp_path) == [int(0.8 * 512 * MIB), [True, False, True], False]


@pytest.mark.full("slow")
@pytest.mark.parametrize(
    "files", [{}, {"memory.max": "max\n"}, {"memory/memory.limit_in_bytes": "9223372036854771712\n"}]
)
def test_where_there_is_no_limit_nothing_is_changed(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert tried(tmp_path) == [None, [True, True, True], True]


def test_the_recorder_keeps_within_its_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(recorder, "keep_within_the_container", lambda: order.append("kept"))
    monkeypatch.setattr(recorder, "consume", lambda _app: order.append("consumed") or 0)
    config = load_config({"LADDER_HOME": str(tmp_path)})
    assert recorder.run(config) == 0
    assert order == ["kept", "consumed"]
