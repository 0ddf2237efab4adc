"""Interface of a method's part at the data party: nodes to embeddings, in stages.

Query nodes, as far as the data party can know them:

    query nodes = test nodes of the roster;  all nodes that are not on it, if it has no test nodes

What query nodes receive decides what is worth putting into messages. A label party that has no test
labels, or an estimator that is fitted before any prediction, will query the nodes that are not on
the roster.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Nodes = NDArray[np.int64]

NO_NODES: Nodes = np.zeros(0, dtype=np.int64)


class Representation(Protocol):
    """Nodes to embeddings, in stages; whatever depends on edges comes through a door."""

    @property
    def module(self) -> nn.Module:
        """All weights at the data party."""

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Take the label posteriors of the labelled nodes: (num_train, num_classes).

        There are no rows if the contract does not share labels. `query_nodes` are the nodes that
        predictions are wanted for, if they are known in advance.
        """

    def begin_stage(self, stage: int) -> None:
        """Prepare a stage: freeze the one before, release, and make new inputs."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Embed nodes for the label party: (B, width, depth)."""

    @property
    def is_random(self) -> bool:
        """Whether embeddings of a node are random and differ each time."""

    def select_stage(self, stage: int) -> None:
        """From now on, embed for the decoder of this stage, which validation has chosen."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `load_state_arrays` needs in addition to weights, masks and releases."""

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Continue as if nothing had happened since `state_arrays`."""

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what was fitted on the training graph in addition to weights: scales, centres."""

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Before stage 0: use what was fitted on the training graph, fit nothing on this one."""


class StatelessRepresentation:
    """Base of representations without state other than weights, masks and releases.

    By default it fits nothing, and embeddings of the last stage contain those of earlier stages.
    """

    is_random = False
    """The embedding of a node is the same each time."""

    def select_stage(self, stage: int) -> None:
        """Do nothing."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return nothing."""
        return {}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Do nothing."""

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Return nothing."""
        return {}

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Do nothing."""


def query_nodes_of(roster: Nodes, *, num_test: int, num_nodes: int) -> Nodes:
    """Return the nodes that predictions will be wanted for.

    Args:
        roster: the nodes on the roster: training, validation, test.
        num_test: number of test nodes, which are the end of the roster.
        num_nodes: number of nodes of the graph, on the roster or not.

    >>> query_nodes_of(np.array([4, 0, 2]), num_test=1, num_nodes=6).tolist()
    [2]
    >>> query_nodes_of(np.array([4, 0, 2]), num_test=0, num_nodes=6).tolist()
    [1, 3, 5]
    """
    if num_test:
        return roster[len(roster) - num_test :]
    is_other = np.ones(num_nodes, dtype=bool)
    is_other[roster] = False
    return np.flatnonzero(is_other)
