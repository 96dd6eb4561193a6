"""What did the work: calls beside the verdict, whose results go to staff or to a profile.

`work_probe` replays the public cases with kernels that do nothing and traces the ranked ones; `post_timing_trace` looks
once more right after the timed calls; `work_findings` says what follows. `counting` counts what calls do to memory,
`one_call` has a tool look at one call: `profiling` profiles it, `sanitizing` checks its accesses. `run_requirements`
holds a profile against the rung.
"""
