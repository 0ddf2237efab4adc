"""The data party after training: embeds nodes of a graph with the trained model.

    load:   fitted constants, weights and label posteriors of training; then the stages, on
            releases of this graph
    embed:  embeddings of the requested nodes, each computed together with the nodes of its block

The graph is the training graph, whose releases were stored, or a later one. The embedding of a node
is the same bit for bit whatever else is requested: on many processors the last bits of a row of a
matrix product depend on the number of rows, so this number is always the same.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.errors import VesperError
from vesper.graph.ids import Ids
from vesper.party.data_party import DIVERGED_MESSAGE
from vesper.party.representation import NO_NODES, Representation, query_nodes_of
from vesper.party.state import Arrays, load_weights, weights_of, without_prefix
from vesper.protocol.messages import IdTexts, Roster, Tensor

NO_EMBEDDINGS: Tensor = np.zeros((0, 1, 1), dtype=np.float32)
NODES_PER_BLOCK = 64
"""Nodes that are embedded together: their numbers differ only in the last six bits."""


def trained_arrays(representation: Representation) -> Arrays:
    """Return what `InferenceParty` needs in addition to the roster and the releases."""
    return {
        **{f"weights/{k}": v.numpy().copy() for k, v in representation.module.state_dict().items()},
        **{f"fitted/{k}": v for k, v in representation.fitted_arrays().items()},
        **{f"representation/{k}": v for k, v in representation.state_arrays().items()},
    }


class InferenceParty:
    """A trained model on a graph, up to the stage that validation chose.

    Args:
        representation: a new one of this graph; its releases are made, or replayed, here.
        ids: ids of the nodes of this graph.
        trained: the result of `trained_arrays` after training.
        roster: roster of training; training nodes that still exist keep their label posteriors.
        stage: last stage to run.
        is_new: the graph is not that of training. Then no query nodes are set: what depends on
            them was decided in training.
    """

    def __init__(
        self,
        representation: Representation,
        ids: Ids,
        *,
        trained: Arrays,
        roster: Roster,
        stage: int,
        is_new: bool,
    ) -> None:
        self._representation, self._ids = representation, ids
        representation.load_fitted(without_prefix("fitted", trained))
        load_weights(representation.module, weights_of(without_prefix("weights", trained)))
        # -1: no longer there
        labelled_nodes = ids.find_texts(roster.train[: len(roster.label_posteriors)])
        query_nodes = NO_NODES if is_new else self._query_nodes_of(roster)
        label_posteriors = roster.label_posteriors[labelled_nodes >= 0]
        representation.set_labels(
            labelled_nodes[labelled_nodes >= 0], label_posteriors, query_nodes
        )
        for each in range(stage + 1):
            representation.begin_stage(each)
        representation.load_state_arrays(without_prefix("representation", trained))
        representation.module.eval()

    def _query_nodes_of(self, roster: Roster) -> NDArray[np.int64]:
        """Return the query nodes of training, which was on this graph."""
        parts = [self._ids.find_texts(part) for part in (roster.train, roster.val, roster.test)]
        nodes = np.concatenate(parts)
        return query_nodes_of(nodes, num_test=len(roster.test), num_nodes=len(self._ids))

    @torch.no_grad()
    def embed(self, ids: IdTexts) -> tuple[IdTexts, Tensor]:
        """Return unknown ids, and embeddings (known ids, width, depth) in the order given."""
        nodes: NDArray[np.int64] = self._ids.find_texts(ids)
        unknown = tuple(text for text, node in zip(ids, nodes, strict=True) if node < 0)
        if len(unknown) == len(ids):
            return unknown, NO_EMBEDDINGS
        values = self._embedded(nodes[nodes >= 0])
        if not np.isfinite(values).all():
            raise VesperError(DIVERGED_MESSAGE)
        return unknown, values

    def _embedded(self, nodes: NDArray[np.int64]) -> Tensor:
        """(nodes, width, depth)."""
        if self._representation.is_random:
            return self._representation.embed(nodes, training=False).numpy()
        blocks, of_node = np.unique(nodes // NODES_PER_BLOCK, return_inverse=True)
        values: Tensor | None = None
        order = np.argsort(of_node, kind="stable")  # nodes of a block are adjacent
        ends = np.cumsum(np.bincount(of_node))
        for block, first, end in zip(blocks, [0, *ends], ends, strict=False):
            start, rows_of_block = block * NODES_PER_BLOCK, order[first:end]
            rows = np.arange(start, min(start + NODES_PER_BLOCK, len(self._ids)))
            embedded = self._representation.embed(rows, training=False).numpy()
            if values is None:
                values = np.empty((len(nodes), *embedded.shape[1:]), dtype=np.float32)
            values[rows_of_block] = embedded[nodes[rows_of_block] - start]
        assert values is not None
        return values
