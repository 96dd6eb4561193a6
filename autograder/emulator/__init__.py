"""CUDA C++ on a processor: a student's `.cu` file, translated and compiled with g++, one fiber for every CUDA thread.

    translate   what a C++ compiler cannot read, rewritten in place: launches, shared memory
    build       g++, with or without sanitizers, to a shared library
    include/    the headers that take the place of CUDA's

It is no simulator of speed. It runs threads in an order that can be turned round, so that a missing barrier shows; says
which lanes never reach a shuffle; and, with sanitizers, where memory is touched that nobody owns. What is supported
stands in docs/cuda_emulator.md; the rest is refused by name.
"""
