"""All parties in one process, trained through session, protocol and memory channels.

What two parties know before anything is sent is their `RunSpec`; what comes out is `TrainedSession`: all
sides with the weights that validation chose, and how good each stage was.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from vesper.errors import PeerError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings
from vesper.mechanism.door import Door
from vesper.model.decoders import Decoder
from vesper.model.objective_factory import LabelResponses
from vesper.party.representation import Representation
from vesper.protocol.messages import Farewell
from vesper.protocol.turns import Role
from vesper.session.checkpoint import Checkpoints
from vesper.session.data_side import DataOutcome, run_data_session
from vesper.session.label_side import DataPeer, LabelOutcome, run_label_session
from vesper.session.loop import NO_CHECKPOINTS
from vesper.session.observer import NO_OBSERVER, SessionObserver
from vesper.session.peer import Link
from vesper.session.run_spec import RunSpec
from vesper.simulation.stage0_cache import Stage0Entry
from vesper.transport.channel import closing_with_reason
from vesper.transport.memory import MemoryChannel, memory_pair


@dataclass(frozen=True)
class InProcessDataParty:
    """A data party in this process."""

    run_spec: RunSpec
    data: DataHoldings
    door: Door
    name: str = "the data party"


@dataclass(frozen=True)
class TrainedSession:
    """All sides after training, and what was measured on the way."""

    data_sides: tuple[Representation, ...]
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    best_stage: int
    """The stage that validation has chosen."""
    bytes_to_label_party: int
    bytes_to_data_party: int

    @property
    def data_side(self) -> Representation:
        """Of the first data party."""
        return self.data_sides[0]


def train(
    run_spec: RunSpec,
    data: DataHoldings,
    labels: LabelHoldings,
    door: Door,
    *,
    observer: SessionObserver = NO_OBSERVER,
    responses: LabelResponses | None = None,
) -> TrainedSession:
    """Train one data party and the label party; the observer is the label party's."""
    data_party = InProcessDataParty(run_spec, data, door)
    return train_all_parties([data_party], labels, observer=observer, responses=responses)


def train_all_parties(
    data_parties: Sequence[InProcessDataParty],
    labels: LabelHoldings,
    *,
    observer: SessionObserver = NO_OBSERVER,
    responses: LabelResponses | None = None,
    stage0_entry: Stage0Entry | None = None,
) -> TrainedSession:
    """Let all ends meet, each in a thread; the first data party's is this one.

    A beginning is for one data party.
    """
    pairs = [memory_pair() for _ in data_parties]
    data_links = [Link(Role.DATA, data_channel) for data_channel, _ in pairs]
    label_links = [Link(Role.LABEL, label_channel) for _, label_channel in pairs]

    def label_thread() -> LabelOutcome:
        # Both sides approved the same settings; noise may be planned for less than their epsilon.
        data_peers = [
            DataPeer(data_party.run_spec.config, link, data_party.name, data_party.run_spec.method)
            for data_party, link in zip(data_parties, label_links, strict=True)
        ]
        try:
            return run_label_session(
                data_peers,
                labels,
                observer=observer,
                responses=responses,
                checkpoints=stage0_entry.label_checkpoints if stage0_entry else NO_CHECKPOINTS,
            )
        finally:
            for _, label_channel in pairs:
                label_channel.close()

    def data_thread(k: int, checkpoints: Checkpoints = NO_CHECKPOINTS) -> DataOutcome:
        return _run_data_thread(data_parties[k], data_links[k], pairs[k][0], checkpoints)

    with ThreadPoolExecutor(max_workers=len(data_parties)) as pool:
        answering = pool.submit(label_thread)
        others = [pool.submit(data_thread, k) for k in range(1, len(data_parties))]
        start = stage0_entry.data_checkpoints if stage0_entry else NO_CHECKPOINTS
        first = _future_of(lambda: data_thread(0, start))
    ours = [each.result() for each in _raise_root_cause([first, *others], answering)]
    theirs = answering.result()
    for outcome in ours:
        outcome.data_side.select_stage(theirs.best_stage)
    return TrainedSession(
        data_sides=tuple(outcome.data_side for outcome in ours),
        label_side=theirs.label_side,
        metric=theirs.metric,
        stages=theirs.stages,
        best_stage=theirs.best_stage,
        bytes_to_label_party=sum(link.bytes_sent for link in data_links),
        bytes_to_data_party=sum(link.bytes_sent for link in label_links),
    )


def _run_data_thread(
    data_party: InProcessDataParty, link: Link, channel: MemoryChannel, checkpoints: Checkpoints
) -> DataOutcome:
    run_spec = data_party.run_spec
    with closing_with_reason(channel):
        outcome = run_data_session(
            run_spec.config,
            data_party.data,
            link,
            door_opener=lambda agreed: (data_party.door, run_spec),
            checkpoints=checkpoints,
        )
        link.expect(Farewell)
    return outcome


def _future_of(act: Callable[[], DataOutcome]) -> "Future[DataOutcome]":
    """Act here and now; keep what came of it."""
    future: Future[DataOutcome] = Future()
    try:
        future.set_result(act())
    except Exception as error:
        future.set_exception(error)
    return future


def _raise_root_cause(
    ours: list["Future[DataOutcome]"], answering: "Future[LabelOutcome]"
) -> list["Future[DataOutcome]"]:
    """Raise what went wrong, not what it did to the others: they say that a peer is gone."""
    found = [each.exception() for each in ours] + [answering.exception()]
    errors = [error for error in found if error is not None]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, PeerError))
    return ours
