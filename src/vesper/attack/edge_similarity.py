"""Attack by similarity: nodes that share an edge tend to have similar embeddings.

    score(u, v) = cosine of the centred embeddings of u and v, as the label party received them

It needs nothing but the received embeddings. Pairs are of labelled nodes, the only ones received.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.attack.rerun import Rerun
from vesper.graph.edges import Pairs

SIMILARITY_KNOWS = "the embeddings it received"


@torch.no_grad()
def score_similarity(run: Rerun, pairs: Pairs) -> NDArray[np.float64]:
    """Score each pair; (num_pairs,)."""
    inner = run.recorder.inner
    inner.module.eval()
    nodes, places = np.unique(pairs, return_inverse=True)
    embeddings = inner.embed(nodes, training=False)  # (nodes, width, depth)
    rows = embeddings.flatten(start_dim=1).double().numpy()
    rows = rows - rows.mean(axis=0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    ends = rows[places.reshape(pairs.shape)]  # (num_pairs, 2, width)
    return np.asarray((ends[:, 0] * ends[:, 1]).sum(axis=1))
