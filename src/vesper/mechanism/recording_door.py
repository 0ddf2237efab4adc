"""A door that notes what it gives out: everything that the guarantee speaks about.

Whatever else the label party sees is computed from it and from edge-free data, and says no more.
For audits and attacks, which hold both the graph and what was seen of it.
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
    """One release: what nodes said, with how much noise it was summed, and what came out."""

    messages: Messages
    """(num_nodes, width), on the grid as they were summed."""
    noise_std: float
    released: FloatRows
    """(num_nodes, width)."""
    aggregation: Aggregation = NEIGHBOR_SUM
    row_norm: float | None = None
    """Norm that rows were clipped to before the noise; None: they were not."""


class RecordingDoor:
    """Passes everything on to a door, and notes what came back."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.releases: list[RecordedRelease] = []
        self.noisy_graphs: list[Graph] = []
        self.flips_edges_independently = False
        """Whether each pair of nodes was made noisy by itself, as randomised response does."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Release, and note it."""
        released = self._door.release(messages, noise_std=noise_std, aggregation=aggregation)
        record = RecordedRelease(
            to_grid(messages), noise_std, released.copy(), aggregation, _row_norm_of(self._door)
        )
        self.releases.append(record)
        return released

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Give a graph of noisy edges, and note it."""
        noisy = self._door.perturb(perturbation)
        self.noisy_graphs.append(noisy)
        self.flips_edges_independently = isinstance(perturbation, EdgeRand)
        return noisy

    def spending_summary(self) -> str:
        """What the door says."""
        return self._door.spending_summary()

    def uncertified_graph(self) -> Graph:
        """What the door gives."""
        return self._door.uncertified_graph()


def _row_norm_of(door: Door) -> float | None:
    """What an account for nodes makes its door clip rows to."""
    relation = door.account.relation if isinstance(door, ChargedDoor) else None
    return relation.row_norm if isinstance(relation, NodeRelation) else None
