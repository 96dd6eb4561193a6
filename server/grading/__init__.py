"""The queue of record: which submission is graded next, by which attempt, and what came of it.

states    which changes of state are legal
scores    points, from a result and the assignment's formula: pure
lock      the one lock of an attempt: its submission's row
claim     takes the next submission for a free slot
sweep     gives back what was lost: the only retry
record    applies what a node sent
results   writes a result, once
service   what the others are called by
"""
