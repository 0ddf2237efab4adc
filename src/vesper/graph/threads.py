"""How many threads a compiled loop may have: asked in one place.

Numba counts its threads by starting its own pool, which no loop here uses (`graph.team`), and which
sets the number of threads of torch in the whole process, against OMP_NUM_THREADS.
"""

from numba import get_num_threads


def threads_allowed() -> int:
    """As many as Numba would use.

    >>> threads_allowed() >= 1
    True
    """
    return int(get_num_threads())
