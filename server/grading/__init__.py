"""The queue of record: which submission is graded next, by which attempt, and what came of it.

states               which changes of state are legal: pure
policy               the order of the queue: pure
syntax_check         whether a source plausibly compiles: pure
scores               points, from a result and the assignment's formula: pure
merge_results        a check and a measurement put together: pure
lock                 the one lock of an attempt: its submission's row
queue_snapshot       what waits, as the policy wants it
claim                takes the next submissions for free slots
supersede            a newer submission takes the place of an older one, and gives it back
suspects             submissions under which a node went silent
lease_clock          how far the recorder has heard what nodes say
sweep                gives back what was lost: the only retry
record               applies what a node sent
results              writes a result, once; points
leaderboard_entries  who is best on each board, kept right by whatever changes a result
ranking              the one ranking query
news                 tells a group what came of it
requeue              grades again
artefacts            files that attempts leave
watch                alerts about the queue and its nodes
interface            what the others are called by

service_times, schedule, calibration, forecast, snapshots, history     when somebody who waits has a result
"""

from __future__ import annotations

from server.grading import leaderboard_entries

__all__ = ["leaderboard_entries"]
"""Whoever imports anything of grading has who keeps boards up to date."""
