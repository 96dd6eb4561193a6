"""The harness: judges a submission from outside the process that runs it.

Nothing in here asks where it runs: a student's machine, a node and CI all call `autograder.judge.grade` with a device,
a sandbox, cases and limits as arguments. `autograder.contract`, `autograder.assignment` and `autograder.codec` import
the standard library only, because the server and the worker import them.
"""
