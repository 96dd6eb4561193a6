"""How fast a submission is beside the reference.

`measurement` has the steps in their order: `calibration` before the submission is loaded, `paired_timing` (A B B A) and
batches while it lives, `aa_check` once it is killed, `validity` to decide which clock ranks and whether the result
stands. `estimators` are medians and intervals, `overhead_baseline` is the exchange without work, `references` keeps the
reference's runner warm. The thresholds are in `autograder.judge.rules`.
"""
