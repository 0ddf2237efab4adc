"""A door that replays the releases of an earlier run: nothing is drawn, nothing is charged.

The ledger, which is only read, says which files of the release store count. The graph itself is not
needed: what has left it is all that a run may use of it from now on.
"""

from vesper.errors import InputError, VesperError
from vesper.graph.graph import Graph
from vesper.mechanism.aggregations.aggregation import Aggregation
from vesper.mechanism.door import FloatRows
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation
from vesper.mechanism.release import NEIGHBOR_SUM
from vesper.mechanism.release_store import Arrays, ReleaseStore
from vesper.privacy.ledger.account import STORED_KIND
from vesper.privacy.ledger.reader import LedgerReader


class ReplayDoor:
    """Gives out what a run released of a graph, in the same order.

    Args:
        ledger: records what was charged and stored.
        run: the name of the run in the ledger.
        release_store: where the releases of the run are stored.

    Raises:
        InputError: the ledger records no release by this run.
        VesperError: the ledger was tampered with.
    """

    def __init__(self, *, ledger: LedgerReader, run: str, release_store: ReleaseStore) -> None:
        self._ledger, self._release_store, self._number = ledger, release_store, 0
        broken = ledger.verify()
        if broken is not None:
            raise VesperError(f"{ledger.path}: entry {broken} was changed; see `vesper budget`")
        self._digests = stored_digests(ledger, run)
        if not self._digests:
            raise InputError(
                f"{ledger.path}: found no release by {run}; use the ledger of that run"
            )

    def release(
        self, messages: FloatRows, *, noise_std: float, aggregation: Aggregation = NEIGHBOR_SUM
    ) -> FloatRows:
        """Read the next release; only the shape of `messages` is used, to check the release."""
        sums: FloatRows = self._next()["sums"]
        if sums.shape != messages.shape:
            raise VesperError(
                f"stored release: expected shape {messages.shape}, got {sums.shape}; use the model "
                f"that was trained"
            )
        return sums

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Read the graph of noisy edges."""
        arrays = self._next()
        return Graph(arrays["indptr"], arrays["neighbors"])

    def spending_summary(self) -> str:
        """Return an empty text: a replay spends nothing."""
        return ""

    def uncertified_graph(self) -> Graph:
        """Refuse, as a charged door does."""
        raise ValueError("a replay door gives out stored releases only, not the graph")

    def _next(self) -> Arrays:
        number, self._number = self._number, self._number + 1
        if number not in self._digests:
            raise VesperError(
                f"release {number} was never made; a replay door makes no new releases"
            )
        return self._release_store.get(number, self._digests[number])


def stored_digests(ledger: LedgerReader, run: str) -> dict[int, str]:
    """Map the number of each stored release of a run to its digest."""
    numbers: dict[int, int] = {}  # sequence number of the charging entry -> release number
    digests: dict[int, str] = {}
    for entry in ledger.entries():
        if entry.run == run and "number" in entry.facts:
            numbers[entry.sequence] = int(entry.facts["number"])
        if entry.facts["kind"] == STORED_KIND and entry.facts["of"] in numbers:
            digests[numbers[entry.facts["of"]]] = str(entry.facts["digest"])
    return digests


def num_stored(ledger: LedgerReader, *, run: str) -> int:
    """Number of releases of a run that were stored."""
    return len(stored_digests(ledger, run))
