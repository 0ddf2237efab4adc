"""What a method makes of nodes at the data party: the part that `DataParty` does not know.

Which nodes will be asked about, as far as the data party can know.

asked = test nodes of the roster;   all nodes that are not on it, where it names no test node

What asked nodes hear decides what is worth saying to them. A label party that holds no test label,
or an estimator that is fitted before anybody is asked about, will ask about the others.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

Nodes = NDArray[np.int64]

NO_NODES: Nodes = np.zeros(0, dtype=np.int64)


class Representation(Protocol):
    """Nodes to embeddings, in stages; whatever it learns from edges came through a door."""

    @property
    def module(self) -> nn.Module:
        """All weights at the data party."""

    def set_labels(
        self, nodes: Nodes, label_posteriors: NDArray[np.float32], query_nodes: Nodes = NO_NODES
    ) -> None:
        """Take what the training nodes say instead of a guess: (num_train, num_classes), or none.

        `query_nodes` are nodes that predictions are wanted for, where they are known beforehand.

        `label_posteriors` has no columns when the contract says that labels stay at the label party.
        """

    def begin_stage(self, stage: int) -> None:
        """Do what comes before a stage: freeze the one before, release, make new inputs."""

    def embed(self, nodes: Nodes, *, training: bool) -> Tensor:
        """Embed nodes for the label party: (B, width, depth)."""

    @property
    def is_random(self) -> bool:
        """Whether a node is embedded otherwise each time, by chance."""

    def select_stage(self, stage: int) -> None:
        """Embed from now on for the decoder of this stage, which validation has chosen."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """What `load_state_arrays` needs beside weights, masks and releases."""

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Go on as if nothing had happened since `state_arrays`."""

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """What was fitted on the graph of training beside weights: scales, centres."""

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Fit nothing on this graph, use what was fitted on that of training; before stage 0."""


class StatelessRepresentation:
    """The part of a representation that remembers nothing beside weights, masks and releases.

    It fits nothing either, and its embeddings of the last stage hold those of the stages before,
    unless a subclass says so.
    """

    is_random = False
    """It embeds a node the same way each time."""

    def select_stage(self, stage: int) -> None:
        """Need nothing."""

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def load_state_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Need nothing."""

    def fitted_arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def load_fitted(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Have nothing that could be fitted."""


def query_nodes_of(roster: Nodes, *, num_test: int, num_nodes: int) -> Nodes:
    """Give the nodes that predictions will be wanted for.

    Args:
        roster: the labelled nodes: training, validation, test.
        num_test: how many of these, at its end, are test nodes.
        num_nodes: of the graph, labelled or not.

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
