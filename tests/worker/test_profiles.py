"""Whether a node makes profiles, and that a report is kept as large as the server takes it."""

from __future__ import annotations

import pytest

from autograder.contract import Lane
from autograder.profiles import MAX_REPORT_BYTES, REPORT
from autograder.profiling import able
from worker import artefacts, node
from worker.settings import NodeConfig


def test_a_node_without_a_gpu_makes_none(tmp_path):
    assert "no GPU" in node.no_profiles(NodeConfig(tmp_path, ("judge",)), (Lane.cpu,))


@pytest.mark.parametrize("why", ["", "Nsight Compute (ncu) is not installed on this node."])
def test_a_node_with_one_says_what_its_machine_says(tmp_path, monkeypatch, why):
    monkeypatch.setattr(able, "why_not", lambda _tool: why)
    assert node.no_profiles(NodeConfig(tmp_path, ("judge",)), (Lane.h200,)) == why


def test_a_report_is_kept_beyond_the_size_of_other_files(tmp_path):
    folder = tmp_path / artefacts.FOLDER
    folder.mkdir()
    (folder / REPORT).write_bytes(b"x" * MAX_REPORT_BYTES)
    (folder / "other").write_bytes(b"x" * (artefacts.MAX_BYTES + 1))
    ((name, data),) = artefacts.left_in(tmp_path)
    assert (name, len(data)) == (REPORT, MAX_REPORT_BYTES)
    (folder / REPORT).write_bytes(b"x" * (MAX_REPORT_BYTES + 1))
    assert artefacts.left_in(tmp_path) == ()
