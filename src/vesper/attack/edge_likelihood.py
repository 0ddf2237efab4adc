"""The best attack there is on one edge: the likelihood ratio of everything that was shown.

| shown | score of a pair |
| --- | --- |
| releases | log likelihood ratio, added up over releases: exact |
| a graph of noisy edges | whether the edge is in it |
| rows of the paper's GIN | the ratio of the rows of layer 1 (`row_ratios`) |

The attacker knows the features, the batches, the weights, and all edges but the one it asks for:
the adversary that epsilon speaks of. One who knows less does worse.
"""

import numpy as np
from numpy.typing import NDArray

from vesper.attack.rerun import Rerun
from vesper.attack.roc import RowRatios
from vesper.errors import InputError
from vesper.graph.edges import Pairs, are_edges
from vesper.mechanism.likelihood import log_ratios

LIKELIHOOD_KNOWS = "features, batches, weights and all other edges"


def score_likelihood(run: Rerun, pairs: Pairs, rows: RowRatios) -> NDArray[np.float64]:
    """Score each pair; (num_pairs,).

    Args:
        run: repeated, with `rows` watching.
        pairs: whose edges are asked for.
        rows: what the rows of the paper's plan said of them.

    Raises:
        InputError: the run shows nothing that carries noise in a known way.
    """
    if run.door.releases:
        ratios = [log_ratios(each, run.data.graph, pairs) for each in run.door.releases]
        return np.asarray(np.sum(ratios, axis=0))
    if run.door.noisy_graphs:
        return are_edges(run.door.noisy_graphs[0], pairs).astype(np.float64)
    if run.noise_plan.plan == "edge-free":
        return np.zeros(len(pairs))
    if rows.times:
        return rows.ratios
    raise InputError(
        f"edge-likelihood: expected a run with releases, noisy edges or noisy rows of GIN, got "
        f"method '{run.run_spec.config.run.method}'; try edge-influence or edge-similarity"
    )
