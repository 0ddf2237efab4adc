"""The numbers that the paper's plans are calibrated with: *claimed* unless said otherwise.

| number | what it is |
| --- | --- |
| `layer_sensitivity` | the paper's bound of one layer, operator norm 1: sqrt 2, or eta(D_min) |
| `vfgnn_sensitivity` | of L layers with noise on the output alone, proved or as the paper has it |
"""

from vesper.errors import InputError
from vesper.mechanism.gcn_truncated import TruncatedGcn
from vesper.mechanism.gin import GinAggregation
from vesper.mechanism.sampled.layers import Aggregator, aggregation_of
from vesper.mechanism.vfgnn import VfgnnOutput


def layer_sensitivity(aggregator: Aggregator, *, min_degree: int, max_degree: int) -> float:
    """How far the paper says that one edge moves one layer.

    Raises:
        InputError: the aggregator has no finite claim, or no node could ever be heard.
    """
    if aggregator == "gin":
        return GinAggregation().claimed_edge_sensitivity()
    if aggregator == "gcn":
        raise InputError("aggregator: the paper bounds GCN only when it is truncated")
    if min_degree > max_degree:
        raise InputError(
            f"min_degree: expected at most max_degree={max_degree}, got {min_degree}; "
            "all nodes would be too low in degree to hear a neighbour"
        )
    return TruncatedGcn(min_degree=min_degree).claimed_edge_sensitivity()


def vfgnn_sensitivity(
    aggregator: Aggregator, *, max_degree: int, num_layers: int, norm: float, as_published: bool
) -> float:
    """How far one edge moves the output: claim S-VFGNN, or as the paper has it."""
    output = VfgnnOutput(
        aggregation_of(aggregator, min_degree=1),
        max_degree=max_degree,
        num_layers=num_layers,
        norm=norm,
    )
    return output.claimed_edge_sensitivity() if as_published else output.edge_sensitivity()
