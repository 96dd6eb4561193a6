"""What compilers make of a submission: for devices that are not there, and ahead of the first call.

`cross_compile` compiles for every target that a rung names, and `requirements` and `target_rejections` hold the result
against the rung. `cache_warmup` compiles for this lane's device before anything is called, and `compile_cache` hands on
what compilers have made from runner to runner. `compiler_client` talks to the sandboxed compilers.
"""
