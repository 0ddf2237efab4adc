"""The best attack there is on one edge: the likelihood ratio of everything that was shown.

| shown | score of a pair |
| --- | --- |
| releases | log likelihood ratio, added up over releases: exact |
| a graph of noisy edges | whether the edge is in it |
| rows of the paper's GIN | the ratio of the rows of layer 1, with the weights of the end |

The attacker knows the features, the batches, the weights, and all edges but the one it asks for:
the adversary that epsilon speaks of. One who knows less does worse.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.attack.rerun import Rerun
from vesper.errors import InputError
from vesper.graph.pairs import Pairs, are_edges
from vesper.mechanism.door import OpenDoor
from vesper.mechanism.likelihood import log_ratios
from vesper.model.pmp import PerturbedMessagePassing, PmpLayer
from vesper.model.rows import normalized
from vesper.model.scaling import Inputs, Scaling

KNOWS = "features, batches, weights and all other edges"


def score_likelihood(run: Rerun, pairs: Pairs) -> NDArray[np.float64]:
    """Score each pair; (num_pairs,).

    Raises:
        InputError: the run shows nothing that carries noise in a known way.
    """
    door, module = run.door, run.shown.inner.module
    if door.releases:
        ratios = [log_ratios(each, run.data.graph, pairs) for each in door.releases]
        return np.asarray(np.sum(ratios, axis=0))
    if door.noisy_graphs:
        return are_edges(door.noisy_graphs[0], pairs).astype(np.float64)
    if run.promise.plan == "edge-free":
        return np.zeros(len(pairs))
    method = run.agreement.config.run.method
    if isinstance(module, PerturbedMessagePassing) and method.endswith("gin"):
        return _of_rows(run, module, pairs)
    raise InputError(
        f"edge-likelihood: expected a run with releases, noisy edges or the rows of GIN, got "
        f"method '{method}'; try edge-influence or edge-similarity"
    )


@torch.no_grad()
def _of_rows(run: Rerun, module: PerturbedMessagePassing, pairs: Pairs) -> NDArray[np.float64]:
    """Sums over all times that a node was shown; without noise it is counted as 1."""
    sums = run.shown.sums
    assert sums is not None
    module.eval()
    features = run.data.features
    inputs = Inputs(features, Scaling(features)).of(np.arange(len(features)))
    first = module.layers[0]
    assert isinstance(first, PmpLayer)
    weight = first.unit_weight().double()  # (width, width)
    encodings = normalized(module.encoder(inputs))  # (num_nodes, width)
    around = OpenDoor(run.data.graph).release(encodings.numpy(), noise_std=0.0)
    own = encodings.double()
    means = ((own + torch.from_numpy(around).double()) @ weight.T).numpy()  # all edges known
    said = (own @ weight.T).numpy()  # what one neighbour adds
    heard = said[pairs[:, ::-1]]  # (num_pairs, 2, width)
    present = are_edges(run.data.graph, pairs)
    without = means[pairs] - heard * present[:, None, None]  # (num_pairs, 2, width)
    times = run.shown.times[pairs][:, :, None]  # (num_pairs, 2, 1)
    rows = sums[:, : heard.shape[2]][pairs]  # (num_pairs, 2, width), of layer 1
    noise = module.noise
    variance = 1.0 if noise is None else noise.noise_std**2
    inner = ((rows - times * (without + heard / 2)) * heard).sum(axis=(1, 2))
    return np.asarray(inner / variance)
