"""How many threads a compiled loop may have.

Numba counts its threads by starting its own pool, which no loop here uses (`graph.team`), and which
sets the number of threads of torch in the whole process. Then a run that built its graph first
would train with another number of threads than one that found it built, against OMP_NUM_THREADS,
and the last bits of some matrix products depend on it.
"""

from numba import get_num_threads
from numba.core import config
from numba.np.ufunc import parallel


def threads_allowed() -> int:
    """As many as Numba would use, without starting its pool.

    >>> threads_allowed() >= 1
    True
    """
    if parallel._is_initialized:  # somebody has started it, and may have asked for fewer
        return int(get_num_threads())
    return int(vars(config)["NUMBA_NUM_THREADS"])  # set by it while it is imported
