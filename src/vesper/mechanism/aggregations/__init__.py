"""Aggregations of neighbours' messages in exact integers, each with a proved bound.

In reading order:

    aggregation                    the interface, and rows computed by threads of this process
    grid                           messages rounded to int8, laid out for the cache
    neighbor_sum, sum_kernels      the sum, which the certified plan uses, and its compiled loop
    attention, maximum,            the alternatives, and their compiled loops
    clamped_gcn, weighted_kernels
    row_noise                      clipping, noise and units: the last step before a row may leave
    partition                      the rows of a release shared out over the workers of an engine
"""

from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.maximum import GridMax
from vesper.mechanism.aggregations.row_noise import rounding_of

__all__ = [
    "STEPS",
    "Aggregation",
    "GridAttention",
    "GridGcn",
    "GridMax",
    "rounding_of",
]
