"""The best possible attack on one edge: the likelihood ratio of everything the label party saw.

| seen by the label party | score of a pair |
| --- | --- |
| releases | exact log likelihood ratio, summed over releases |
| a graph of noisy edges | whether the edge is in it |
| rows of the paper's GIN | log likelihood ratio of the rows of layer 1 (`roc.RowRatios`) |

The attacker knows the features, the batches, the weights and all edges except the one in question:
the adversary in the definition of epsilon. An attacker who knows less does worse.
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
        run: the repeated run, observed by `rows`.
        pairs: (num_pairs, 2) pairs to score.
        rows: log likelihood ratios of the pairs from rows of the paper's plan.

    Raises:
        InputError: nothing in the run has noise of a known law.
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
