"""A door that records what it gives out: everything that the guarantee covers.

All else that the label party sees is computed from these releases and from edge-free data, and
reveals no more. For audits and attacks, which have both the graph and its releases.
"""

from dataclasses import dataclass

from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.aggregations.grid import Messages, to_grid
from vesper.mechanism.door import ChargedDoor, Door, FloatRows
from vesper.mechanism.noisy_graph.edgerand import EdgeRand
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.privacy.relation import NodeRelation


@dataclass(frozen=True, eq=False)
class RecordedRelease:
    """One release: the messages, the noise and the result."""

    messages: Messages
    """(num_nodes, width), on the grid as they were summed."""
    noise_std: float
    released: FloatRows
    """(num_nodes, width)."""
    aggregation: Aggregation = NEIGHBOR_SUM
    row_norm: float | None = None
    """Norm that rows were clipped to before the noise; None: no clipping."""


class RecordingDoor:
    """Forwards every call to a door and records what it returns."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.releases: list[RecordedRelease] = []
        self.noisy_graphs: list[Graph] = []
        self.flips_edges_independently = False
        """Whether noise was independent for each pair of nodes, as in randomised response."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Release and record."""
        released = self._door.release(messages, noise_std=noise_std, aggregation=aggregation)
        record = RecordedRelease(
            to_grid(messages), noise_std, released.copy(), aggregation, _row_norm_of(self._door)
        )
        self.releases.append(record)
        return released

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Return a graph of noisy edges and record it."""
        noisy = self._door.perturb(perturbation)
        self.noisy_graphs.append(noisy)
        self.flips_edges_independently = isinstance(perturbation, EdgeRand)
        return noisy

    def spending_summary(self) -> str:
        """Describe what the wrapped door has spent."""
        return self._door.spending_summary()

    def uncertified_graph(self) -> Graph:
        """Return the graph, if the wrapped door gives it out."""
        return self._door.uncertified_graph()


def _row_norm_of(door: Door) -> float | None:
    """Norm that a door charged under the node relation clips rows to; None for other doors."""
    relation = door.account.relation if isinstance(door, ChargedDoor) else None
    return relation.row_norm if isinstance(relation, NodeRelation) else None
