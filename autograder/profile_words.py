"""What a profile's figures, stalls and instructions are called, and what each means in a sentence.

A word in parentheses in the comments of a rung's handout is the same as here; no vendor's counter is named.
"""

from __future__ import annotations

from collections.abc import Mapping

from autograder.profiles import Figure, Mix, Stall

STALLS: Mapping[Stall, tuple[str, str]] = {
    Stall.global_memory: ("Global memory", "waits for a value from L1, L2 or memory: more loads in flight, or fewer"),
    Stall.shared_memory: ("Shared memory", "waits for shared memory or a special function: look for bank conflicts"),
    Stall.memory_queue: ("Queue to memory", "too many small loads and stores: use wider ones"),
    Stall.shared_queue: ("Queue to shared memory", "too many shared-memory or special operations in a row"),
    Stall.texture_queue: ("Texture queue", "too many operations on textures"),
    Stall.math_pipe: ("Arithmetic busy", "the unit it needs is in use: this is what a compute-bound kernel looks like"),
    Stall.tensor_wait: ("Tensor cores", "waits for a matrix operation to end: issue the next before the last is done"),
    Stall.fixed_latency: (
        "Dependent instruction",
        "waits some cycles for the instruction before: more independent work",
    ),
    Stall.barrier: ("Block barrier", "waits for other warps of its block: balance them, or use fewer barriers"),
    Stall.memory_barrier: ("Memory fence", "waits until its writes can be seen"),
    Stall.branch: ("Branch", "waits for the target of a branch"),
    Stall.instruction_fetch: (
        "Instruction fetch",
        "waits for its code: common in very short kernels, or after unrolling",
    ),
    Stall.constant_cache: ("Constant cache", "waits for a constant: common in very short kernels"),
    Stall.dispatch: ("Dispatch", "the dispatcher holds it back"),
    Stall.sleeping: ("Sleeping", "the code asked to sleep"),
    Stall.draining: ("Last stores", "its last stores are still on their way: write wider, or less at the end"),
    Stall.not_selected: ("Ready, not chosen", "another warp was issued instead: there are enough warps"),
    Stall.selected: ("Issued", "no stall"),
    Stall.other: ("Other", "a reason that has no name here"),
}
MIX: Mapping[Mix, tuple[str, str]] = {
    Mix.tensor: ("Tensor cores", "matrix multiplications by the matrix unit"),
    Mix.tma: ("TMA", "tiles copied by the Tensor Memory Accelerator"),
    Mix.async_copy: ("Asynchronous copies", "from global to shared memory, past the registers"),
    Mix.global_load_128: ("Global loads, 128 bits", "the widest a thread can make"),
    Mix.global_load_64: ("Global loads, 64 bits", ""),
    Mix.global_load_32: ("Global loads, 32 bits or less", "a wider load moves more with one instruction"),
    Mix.global_store_128: ("Global stores, 128 bits", "the widest a thread can make"),
    Mix.global_store_64: ("Global stores, 64 bits", ""),
    Mix.global_store_32: ("Global stores, 32 bits or less", "a wider store moves more with one instruction"),
    Mix.shared: ("Shared memory", "loads and stores"),
    Mix.local: ("Local memory", "spills, or arrays that are indexed: this goes through the caches"),
    Mix.atomic: ("Atomics", ""),
    Mix.floating: ("Floating point", "without the tensor cores"),
    Mix.special: ("Special functions", "exponentials, roots, reciprocals, sines"),
    Mix.integer: ("Integer", "mostly addresses"),
    Mix.convert: ("Conversions", "between types"),
    Mix.control: ("Control flow", ""),
    Mix.barrier: ("Barriers", ""),
    Mix.move: ("Moves", "between registers, from constants, between threads of a warp"),
    Mix.other: ("Other", ""),
}
LIMITERS: Mapping[Figure, str] = {
    Figure.blocks_by_registers: "registers",
    Figure.blocks_by_shared_memory: "shared memory",
    Figure.blocks_by_warps: "warps: the blocks are as large as they can be for this many",
    Figure.blocks_by_slots: "the number of blocks: use larger ones",
}
SPEED: Mapping[Figure, str] = {
    Figure.compute_percent: "Compute",
    Figure.memory_percent: "Memory system",
    Figure.dram_percent: "Device memory",
    Figure.l2_percent: "L2 cache",
    Figure.l1_percent: "L1 cache and shared memory",
}
PARTS: Mapping[str, str] = {
    "counters": "Counters",
    "trace": "Timeline",
    "lines": "Source lines",
    "report": "The profiler's own report",
    "raw": "Counters",
    "details": "Advice",
    "source": "Source lines and instructions",
}
"""What may be missing as a whole, by the word that a profile has for it; a figure has its own name."""
NEAR = 60.0
"""From this part of a limit on, in percent, a kernel is said to be bound by it."""
