"""One data party's graph that came after training: behind a door, with a budget of its own.

Nothing is fitted on it: weights, scales and centres are those of training. What it releases is
charged to an account of its own, under its own fingerprint.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings
from vesper.graph.summary import refuse_unknown_labels
from vesper.mechanism.door import ChargedDoor, Door
from vesper.mechanism.fingerprint import fingerprint
from vesper.mechanism.noise import NoiseSource
from vesper.method.settings import Config
from vesper.party.answering_party import AnsweringParty, arrays_of_trained
from vesper.party.representation import Representation
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.progress import Progress, silent
from vesper.protocol.messages import Roster
from vesper.run.agreement import Agreement, agreement_of
from vesper.run.doors import open_door
from vesper.run.pair import Holder
from vesper.run.result import SnapshotCost
from vesper.run.serving.kept_run import feature_columns, with_hops
from vesper.run.serving.subject import refuse_other_columns, without_poll


@dataclass(frozen=True, eq=False)
class LaterParty:
    """A data party's graph that came later."""

    name: str
    run: str
    """What the ledger calls its charges."""
    data: DataHoldings
    door: Door
    agreement: Agreement
    """With noise that fits behind the door."""

    def answering(self, trained: Representation, roster: Roster, *, stage: int) -> AnsweringParty:
        """Take over what was trained; makes the releases that the stage needs.

        Args:
            trained: the data party's side after training.
            roster: of training; training nodes that are still there keep their voices.
            stage: which validation chose.
        """
        agreed = self.agreement
        side = agreed.method.data_side(
            agreed.config, agreed.sizes, features=self.data.features, door=self.door
        )
        return AnsweringParty(
            side,
            self.data.ids,
            trained=arrays_of_trained(trained),
            roster=roster,
            stage=stage,
            is_new=True,
        )

    def cost(self) -> SnapshotCost:
        """What this graph was promised and has spent so far."""
        agreed = self.agreement
        promise = agreed.method.promise(agreed.config, agreed.sizes)
        epsilon = spent = promise.certified_epsilon
        releases = 0
        if isinstance(self.door, ChargedDoor):
            account = self.door.account
            assert account.budget is not None
            epsilon, spent = account.budget.epsilon, account.spent_epsilon()
            releases = account.charges_of(self.run)
        return SnapshotCost(
            name=self.name,
            run=self.run,
            num_nodes=agreed.sizes.num_nodes,
            plan=promise.plan,
            epsilon=epsilon,
            delta=promise.delta,
            spent_epsilon=spent,
            releases=releases,
        )


@dataclass(frozen=True, eq=False)
class Successors:
    """Opens later graphs of one data party; none that is released may be that of another window.

    Args:
        holder: the party in training, with the hops that are released.
        config: its settings; each graph has the whole of their epsilon.
        ledger: is charged.
        folder: of the graph of training.
        place: of a party's folder in the folder of a window.
        seed: of the noise of training.
    """

    holder: Holder
    config: Config
    ledger: Ledger
    folder: Path
    place: Path
    seed: int
    _known: dict[str, Path] = field(default_factory=dict, init=False)
    """Fingerprints met so far, and whose they are."""

    def open(
        self,
        folder: Path,
        labels: LabelHoldings,
        *,
        run: str,
        stream: int,
        progress: Progress = silent,
    ) -> LaterParty:
        """Open a folder before training, so that what cannot be used is refused before.

        Args:
            folder: holds nodes and edges.
            labels: by which predictions will be judged.
            run: what the ledger calls its charges.
            stream: added to the seed for its noise.
            progress: is told how far it is.

        Raises:
            InputError: it cannot be used, or its edges are those of another one.
            BudgetError: its releases do not fit what is left of its budget.
        """
        refuse_other_columns(feature_columns(self.folder), folder)
        later = open_data(folder, progress=progress)
        refuse_unknown_labels(later.ids, labels)
        agreed = self.holder.agreement
        promise = agreed.method.promise(agreed.config, agreed.sizes)
        settings = without_poll(with_hops(self.config, hops=promise.hops))
        sizes = replace(agreed.sizes, num_nodes=later.graph.num_nodes)
        if promise.plan == "certified":
            self._refuse_known(folder, later.graph)
        planned = agreement_of(settings, sizes, num_val=0, num_test=0)
        noise = NoiseSource.for_simulation(self.seed + stream)
        door, fitting = open_door(planned, later.graph, self.ledger, noise, run=run)
        return LaterParty(self.holder.name, run, later, door, fitting)

    def _refuse_known(self, folder: Path, graph: Graph) -> None:
        key = key_of(self.ledger)
        self._known.setdefault(fingerprint(self.holder.data.graph, key=key), self.folder)
        name = fingerprint(graph, key=key)
        if name in self._known:
            raise InputError(
                f"{folder}: its edges are exactly those of {self._known[name]}, and a graph is not "
                f"released twice; take a window in which the graph of every data party is new"
            )
        self._known[name] = folder
