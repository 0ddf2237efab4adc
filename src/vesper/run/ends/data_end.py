"""The data party's end of a session: meet, agree, open the door, drive.

The roster and everything else that comes from the peer is checked here before it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass

from vesper.graph.holdings import DataHoldings
from vesper.mechanism.door import Door
from vesper.method.method import Sizes
from vesper.method.settings import Config
from vesper.party.data_party import DataParty
from vesper.party.representation import Representation
from vesper.progress import Progress, silent
from vesper.protocol.messages import DataHello, LabelHello, Roster
from vesper.run.agreement import Agreement, agreement_of
from vesper.run.ends.checkpoint import Checkpoints
from vesper.run.ends.link import Link
from vesper.run.ends.opening import PROTOCOL_VERSION, refuse_other
from vesper.run.ends.roster import limits_of_roster, nodes_of, refuse_other_voices, refuse_outputs
from vesper.run.ends.told import UNTOLD, Told
from vesper.run.session import NOWHERE, drive
from vesper.run.setup.contract import canonical

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
    told: Told = UNTOLD,
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
    refuse_outputs(hello.num_outputs, num_nodes=data.graph.num_nodes)
    link.agree_on(config.run.wire, seed=config.run.seed)
    roster = link.expect(Roster, limits_of_roster(data.ids, outputs=hello.num_outputs))
    nodes = nodes_of(data, roster)
    refuse_other_voices(roster, outputs=hello.num_outputs, are_lent=config.run.label_messages)
    sizes = Sizes(
        num_nodes=data.graph.num_nodes,
        num_train=len(roster.train),
        num_features=data.features.shape[1],
        num_classes=hello.num_outputs,
    )
    agreed = agreement_of(config, sizes, num_val=len(roster.val), num_test=len(roster.test))
    door, agreed = prepare(agreed)
    told.agreed(agreed.method.promise(agreed.config, sizes), agreed.itinerary.most)
    run = agreed.config.run
    data_side = agreed.method.data_side(agreed.config, sizes, features=data.features, door=door)
    party = DataParty(
        data_side,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        local_updates=run.local_updates,
    )
    party.meet(nodes, roster.voices, num_nodes=data.graph.num_nodes, num_test=len(roster.test))

    def said() -> str:
        return "  ".join(part for part in (note(), door.spent()) if part)

    drive(
        party,
        link,
        agreed.itinerary,
        checkpoints=checkpoints,
        progress=progress,
        note=said,
        told=told,
    )
    return DataOutcome(agreed, door, data_side, roster, link.bytes_sent)
