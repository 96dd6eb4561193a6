"""Profiles on request: which kernels hold the time, and what the device's counters say of them.

    asking      what judge and runner say to each other about it; standard library
    ncu         Nsight Compute: how it is called, and how its CSV becomes `autograder.profiles`; standard library
    able        whether this machine lets an ordinary user read counters; standard library
    timeline    a CUPTI trace as spans
    session     the runner that profiles: traces a call, picks kernels, runs the tool
    target      the program that the tool runs: one call of the submission

The tool runs in the runner's own sandbox, as the runner's own user, without a capability. `docs/profiling.md` says what
is shown and how far it can be believed.
"""
