"""What is read from the sanitizer's logs: which lines, how often, and whether a check came to its end."""

from __future__ import annotations

from autograder.profiling.compute_sanitizer import command, read
from autograder.sanitizer import Check

OUT_OF_BOUNDS = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at add_one(const float *, float *, long)+0x90 in add_one.cu:7
=========     by thread (3,0,0) in block (1,0,0)
=========     Access to 0x7f1c4a000fa0 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f1c4a000000 of size 4000 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at add_one(const float *, float *, long)+0x90 in add_one.cu:7
=========     by thread (4,0,0) in block (1,0,0)
=========     Access to 0x7f1c4a000fa4 is out of bounds
=========     and is 5 bytes after the nearest allocation at 0x7f1c4a000000 of size 4000 bytes
=========
========= Invalid __global__ read of size 2 bytes
=========     at fill(float *)+0x30 in torch.cu:90
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x1 is misaligned
=========
========= ERROR SUMMARY: 3 errors
"""
RACES = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sum(float *)+0x140 in /tmp/job/sum.cu:9
=========     and Read access at sum(float *)+0x180 in /tmp/job/sum.cu:11 [96 hazards]
=========
========= Warning: Race reported between Read access at other()+0x10
=========     and Write access at other()+0x20 [1 hazard]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (1 error, 1 warning)
"""
BARRIER = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at scan(float *)+0x70 in scan.cu:5
=========     by thread (32,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
BROKEN_OFF = """\
========= COMPUTE-SANITIZER
========= Error: Target application terminated before first instrumented API call
"""


def test_threads_at_one_line_are_one_finding():
    log = read(Check.memcheck, OUT_OF_BOUNDS, "add_one.cu")
    strange, ours = log.findings
    assert (log.ended, log.said) == (True, "")
    assert (ours.line, ours.count, ours.thread) == (7, 2, "thread (3,0,0) in block (1,0,0)")
    assert ours.what == "Invalid __global__ write of size 4 bytes"
    assert ours.kernel == "add_one(const float *, float *, long)"
    assert ours.detail == "The access is out of bounds and is 1 bytes after the nearest allocation of size 4000 bytes"
    assert (strange.line, strange.kernel) == (0, "fill(float *)")


def test_a_race_names_both_lines():
    other, ours = read(Check.racecheck, RACES, "sum.cu").findings
    assert (ours.line, ours.other_line, ours.count) == (9, 11, 96)
    assert ours.what == "Write and read without a barrier between them"
    assert (other.line, other.other_line, other.count, other.kernel) == (0, 0, 1, "other()")


def test_a_barrier_that_not_all_reach_is_found():
    (found,) = read(Check.synccheck, BARRIER, "scan.cu").findings
    assert (found.line, found.what) == (5, "Barrier error detected. Divergent thread(s) in block.")


def test_a_check_that_broke_off_has_found_nothing_and_is_not_clean():
    log = read(Check.memcheck, BROKEN_OFF, "x.cu")
    assert (log.ended, log.findings) == (False, ())
    assert "terminated before" in log.said
    assert not read(Check.memcheck, "", "x.cu").ended


def test_a_program_that_prints_the_tool_s_lines_prints_into_another_file():
    assert "--log-file" in command("compute-sanitizer", Check.memcheck, "log", ["python", "x"])
