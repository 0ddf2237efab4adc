"""The data party's end of a session: meet, agree, open the door, drive.

The roster and everything else that comes from the peer is checked here before it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vesper.errors import RemoteProtocolError, first_three
from vesper.graph.holdings import DataHoldings
from vesper.mechanism.door import Door
from vesper.method.method import Sizes
from vesper.method.settings import Config
from vesper.party.data_party import DataParty
from vesper.party.representation import Nodes, Representation
from vesper.progress import Progress, silent
from vesper.protocol.messages import DataHello, LabelHello, Roster
from vesper.run.agreement import Agreement, agreement_of
from vesper.run.checkpoint import Checkpoints
from vesper.run.contract import canonical
from vesper.run.link import Link
from vesper.run.opening import PROTOCOL_VERSION, refuse_other
from vesper.run.session import NOWHERE, drive

MOST_OUTPUTS = 1 << 16

Prepare = Callable[[Agreement], tuple[Door, Agreement]]
"""Opens the door of an agreement, and gives it back with noise that fits behind the door."""


@dataclass(frozen=True)
class DataOutcome:
    """What the data party has after a session."""

    agreement: Agreement
    door: Door
    data_side: Representation
    roster: Roster
    bytes_sent: int


def data_end(
    config: Config,
    data: DataHoldings,
    link: Link,
    *,
    prepare: Prepare,
    checkpoints: Checkpoints = NOWHERE,
    progress: Progress = silent,
    note: Callable[[], str] = str,
) -> DataOutcome:
    """Go through a whole session as the data party; the peer's farewell is left to the caller."""
    contract = canonical(config)
    link.send(
        DataHello(
            version=PROTOCOL_VERSION,
            contract=contract,
            num_nodes=data.graph.num_nodes,
            num_features=data.features.shape[1],
        )
    )
    hello = link.expect(LabelHello)
    refuse_other(hello, contract)
    if not 1 <= hello.num_outputs <= MOST_OUTPUTS:
        raise RemoteProtocolError(f"the peer asks for a model of {hello.num_outputs} outputs")
    roster = link.expect(Roster)
    nodes = nodes_of(data, roster)
    sizes = Sizes(
        num_nodes=data.graph.num_nodes,
        num_train=len(roster.train),
        num_features=data.features.shape[1],
        num_classes=hello.num_outputs,
    )
    if roster.voices.shape not in ((sizes.num_train, sizes.num_classes), (0, sizes.num_classes)):
        raise RemoteProtocolError(f"the peer's labels have the shape {roster.voices.shape}")
    agreed = agreement_of(config, sizes, num_val=len(roster.val), num_test=len(roster.test))
    door, agreed = prepare(agreed)
    run = agreed.config.run
    data_side = agreed.method.data_side(agreed.config, sizes, features=data.features, door=door)
    party = DataParty(data_side, learning_rate=run.learning_rate, weight_decay=run.weight_decay)
    party.meet(nodes, roster.voices)

    def said() -> str:
        return "  ".join(part for part in (note(), door.spent()) if part)

    drive(party, link, agreed.itinerary, checkpoints=checkpoints, progress=progress, note=said)
    return DataOutcome(agreed, door, data_side, roster, link.bytes_sent)


def nodes_of(data: DataHoldings, roster: Roster) -> Nodes:
    """Find the nodes of a roster: training, validation, test.

    Raises:
        RemoteProtocolError: an id is no node or comes twice, or a split is empty that may not be.
    """
    ids = roster.train + roster.val + roster.test
    nodes = data.ids.find_texts(ids)
    unknown = np.flatnonzero(nodes < 0)
    if len(unknown):
        raise RemoteProtocolError(
            f"the peer's roster has {len(unknown)} ids that are no node here "
            f"({first_three(ids[k] for k in unknown)}); `vesper align` finds them all"
        )
    if len(np.unique(nodes)) < len(nodes):
        raise RemoteProtocolError("the peer's roster has an id twice")
    if not (roster.train and roster.val):
        raise RemoteProtocolError("the peer's roster has no training or no validation nodes")
    return nodes
