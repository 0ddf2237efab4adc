"""Threads for compiled loops, and compiled code on disk. Knows nothing of graphs.

In reading order:

    compile_cache   `cached_njit`: compile once, load the machine code in later processes
    intrinsics      four machine instructions that Numba does not offer
    pool            sharing out the pieces of a kernel over threads, and how many threads to use
"""
