"""What a submission's kernels become on devices that are not there: registers, spills, tensor cores, TMA.

    messages    what judge and runner say to each other about it; standard library
    targets     devices that are compiled for; standard library
    parts       what all runners that compile have in common
    reading     the runner that reads what came of it
    machine_code    numbers read from a cubin

of Triton:

    triton_session  the runner that compiles
    absent      stands in for such a device: for triton's driver, and for what host code asks torch about
    dry         tensors without memory, on which the entry is called
    launches    every launch of the dry call, compiled; every candidate of an autotuner's
    faults      what went wrong, with the student's line

of CUDA C++, where there is an nvcc:

    cuda_session    the runner that compiles
    cuda_compiler   nvcc, held short; its errors with the student's line
    dry_library     the stand-in for CUDA's runtime, `dry_runtime.cpp`, on which host code is followed

of languages whose entry is called once for every layout of its tensors (`runner.languages.traced`), as a GPU's runner
calls it:

    traced_target   one target
    cute_session    CuTe DSL, where it is installed
    tirx_session    TIRx, where it is installed and there is an nvcc

`docs/compile_checks.md` says what is shown, how far it can be believed, and what it does not tell.
"""
