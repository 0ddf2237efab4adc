"""Releases in memory: captured while a model is trained, given out again when it is loaded.

    CapturingDoor   forwards to another door, and keeps a copy of what left the graph
    StoredDoor      gives out what was kept, in the same order; nothing is drawn, nothing is charged

Neither has the graph. A method that reads the graph itself has nothing that could be stored.
"""

from collections.abc import Sequence

from vesper.errors import VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.door import Door, FloatRows
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.mechanism.release_store import Arrays


class CapturingDoor:
    """Forwards every call to a door and keeps what it returns."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.releases: list[Arrays] = []
        self.gave_out_graph = False
        """Whether the graph itself was given out, without noise."""

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Release and keep a copy."""
        released = self._door.release(messages, noise_std=noise_std, aggregation=aggregation)
        self.releases.append({"sums": released.copy()})
        return released

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Return a graph of noisy edges and keep it."""
        noisy = self._door.perturb(perturbation)
        self.gave_out_graph |= perturbation is None
        self.releases.append({"indptr": noisy.indptr, "neighbors": noisy.neighbors})
        return noisy

    def spending_summary(self) -> str:
        """Describe what the wrapped door has spent."""
        return self._door.spending_summary()

    def uncertified_graph(self) -> Graph:
        """Return the graph, if the wrapped door gives it out."""
        self.gave_out_graph = True
        return self._door.uncertified_graph()


class StoredDoor:
    """Gives out what was released before."""

    def __init__(self, releases: Sequence[Arrays]) -> None:
        self._releases, self._number = releases, 0

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Return the next release; only the shape of `messages` is used, to check it."""
        sums: FloatRows = self._next("sums")["sums"]
        if sums.shape != messages.shape:
            raise VesperError(
                f"stored release: expected shape {messages.shape}, found {sums.shape}; use the "
                f"version of vesper that trained the model"
            )
        return sums.copy()

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Return the graph of noisy edges."""
        arrays = self._next("indptr", "neighbors")
        return Graph(arrays["indptr"], arrays["neighbors"])

    def spending_summary(self) -> str:
        """Return an empty text: nothing is spent."""
        return ""

    def uncertified_graph(self) -> Graph:
        """Refuse: the graph was never stored."""
        raise ValueError("a stored door gives out releases only, not the graph")

    def _next(self, *names: str) -> Arrays:
        number, self._number = self._number, self._number + 1
        if number >= len(self._releases) or set(self._releases[number]) != set(names):
            raise VesperError(
                f"stored release {number}: expected {' and '.join(names)}, found none; use the "
                f"version of vesper that trained the model"
            )
        return self._releases[number]
