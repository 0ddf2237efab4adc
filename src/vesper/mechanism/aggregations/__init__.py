"""Aggregations."""

from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.attention import GridAttention
from vesper.mechanism.aggregations.clamped_gcn import GridGcn
from vesper.mechanism.aggregations.clipped_sum import rounding_of
from vesper.mechanism.aggregations.grid import STEPS
from vesper.mechanism.aggregations.maximum import GridMax

__all__ = [
    "Aggregation",
    "GridAttention",
    "GridGcn",
    "GridMax",
    "STEPS",
    "rounding_of",
]
