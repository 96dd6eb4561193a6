"""What a term comes to: which submission counts where, what it costs in late days, and the grades that follow.

latedays      how late days are spent: pure
deadlines     when an assignment is due and closes for one student
grade_inputs  everything that grades follow from, read from the tables
compute       what the facts come to: pure
recompute     grades brought up to date, in the transaction of whatever changed them
queries       grades, late days, charges, as others ask for them
whatif        what a term would come to with submissions that nobody has handed in

extensions  later dates and more late days
overrides   points that staff set
choices     a student's choice of what counts
publishing  grades published and withdrawn
policy      what lateness costs in a course
people      whom decisions are about

grid          everybody's grades
grade_detail  one of them in full
exports       grades as tables
imports       points from a table
points        points as people read them
"""

from __future__ import annotations

from server.gradebook import recompute

__all__ = ["recompute"]
"""Whoever imports anything of the gradebook has who works out grades for `server.dirty_grades`."""
