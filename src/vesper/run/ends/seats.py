"""Data parties at the label party's table: meet each, then see all of them as one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vesper.errors import RemoteProtocolError
from vesper.graph.labels import SPLITS, LabelHoldings
from vesper.method.method import Method, Sizes
from vesper.method.settings import Config
from vesper.model.decoder import Decoder
from vesper.model.joined_decoder import JoinedDecoder
from vesper.model.objectives import num_outputs
from vesper.protocol.messages import DataHello, LabelHello
from vesper.run.agreement import Agreement, agreement_of
from vesper.run.ends.absence import Absence
from vesper.run.ends.link import Link
from vesper.run.ends.opening import PROTOCOL_VERSION, refuse_other
from vesper.run.ends.remote import RemoteDataParty
from vesper.run.ends.several import Member, RemoteDataParties
from vesper.run.setup.contract import canonical


@dataclass(frozen=True)
class Seat:
    """A data party at the label party's table."""

    config: Config
    """What the two have approved; of several parties, budgets alone may differ."""
    link: Link
    name: str = "the data party"
    method: Method | None = None
    """None: the one that the settings name."""
    absence: Absence | None = None
    """Where the run may go on without it."""
    write_down: Callable[[], None] = lambda: None
    """Keeps what came last, before anything that follows from it is sent to others."""


def meet(seat: Seat, labels: LabelHoldings) -> Agreement:
    """Say hello to a data party and find out how the run will go."""
    config, link, contract = seat.config, seat.link, canonical(seat.config)
    hello = link.expect(DataHello)
    outputs = num_outputs(config.run.task, labels.classes)
    link.send(LabelHello(version=PROTOCOL_VERSION, contract=contract, num_outputs=outputs))
    refuse_other(hello, contract)  # after the answer, so that the peer can say what differs, too
    counts = {split: len(labels.rows(split)) for split in SPLITS}
    enough = max(sum(counts.values()), 1)
    if not (0 < hello.num_features < 1 << 31 and enough <= hello.num_nodes < 1 << 40):
        raise RemoteProtocolError(
            f"the peer speaks of {hello.num_nodes} nodes with {hello.num_features} features, "
            f"expected at least {enough} with at least one; `vesper align` finds ids that it lacks"
        )
    link.agree_on(config.run.wire, seed=config.run.seed)
    sizes = Sizes(
        num_nodes=hello.num_nodes,
        num_train=counts["train"],
        num_features=hello.num_features,
        num_classes=outputs,
    )
    return agreement_of(config, sizes, num_val=counts["val"], num_test=counts["test"])


def joined(
    seats: Sequence[Seat],
    decoders: Sequence[Decoder],
    *,
    num_rows: int,
    lost: Callable[[str], None],
) -> tuple[RemoteDataParty | RemoteDataParties, Decoder]:
    """One data party as it is; several as one."""
    remotes = [RemoteDataParty(seat.link) for seat in seats]
    if len(seats) == 1:
        return remotes[0], decoders[0]
    decoder = JoinedDecoder(decoders)
    members = [
        Member(seat.name, remote, shape, seat.absence, seat.write_down)
        for seat, remote, shape in zip(seats, remotes, decoder.shapes, strict=True)
    ]

    def leave(member: int, last_stage: int) -> None:
        decoder.leave(member, last_stage=last_stage)

    return RemoteDataParties(members, num_rows=num_rows, leave=leave, lost=lost), decoder
