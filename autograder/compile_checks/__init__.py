"""What a submission's kernels become on devices that are not there: registers, spills, tensor cores, TMA.

    messages    what judge and runner say to each other about it; standard library
    targets     devices that are compiled for; standard library
    absent      stands in for such a device: for triton's driver, and for what host code asks torch about
    dry         tensors without memory, on which the entry is called
    launches    every launch of the dry call, compiled; every candidate of an autotuner's
    faults      what went wrong, with the student's line
    machine_code    numbers read from a cubin
    session     the two kinds of runner: one compiles a submission, one reads what came of it

`docs/compile_checks.md` says what is shown, how far it can be believed, and what it does not tell.
"""
