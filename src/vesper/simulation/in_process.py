"""All parties in one process, trained through session, protocol and memory channels.

Each data party starts from its `RunSpec`. The result is a `TrainedSession`: all sides with the
weights that validation chose, and the metric of each stage.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """All sides after training, and the metrics of all stages."""

    data_sides: tuple[Representation, ...]
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric of each stage."""
    best_stage: int
    """The stage that validation chose."""
    validation_scores: NDArray[np.float64]
    """Scores of the best stage on validation nodes, in the order of the label table."""
    bytes_to_label_party: int
    bytes_to_data_party: int

    @property
    def data_side(self) -> Representation:
        """The representation of the first data party."""
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
    """Train all parties, each in its own thread; the first data party uses the calling thread.

    Args:
        data_parties: with their open doors.
        labels: of the label party.
        observer: observes the label party.
        responses: to the labels, if they are protected.
        stage0_entry: where to resume from stage 0, for a single data party.
    """
    pairs = [memory_pair() for _ in data_parties]
    data_links = [Link(Role.DATA, data_channel) for data_channel, _ in pairs]
    label_links = [Link(Role.LABEL, label_channel) for _, label_channel in pairs]

    def label_thread() -> LabelOutcome:
        # Both sides approved the same settings; noise may be planned for less than that epsilon.
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
        label_future = pool.submit(label_thread)
        others = [pool.submit(data_thread, k) for k in range(1, len(data_parties))]
        start = stage0_entry.data_checkpoints if stage0_entry else NO_CHECKPOINTS
        first = _future_of(lambda: data_thread(0, start))
    data_futures = [first, *others]
    _raise_root_cause(data_futures, label_future)
    data_outcomes = [future.result() for future in data_futures]
    label_outcome = label_future.result()
    for outcome in data_outcomes:
        outcome.data_side.select_stage(label_outcome.best_stage)
    return TrainedSession(
        data_sides=tuple(outcome.data_side for outcome in data_outcomes),
        label_side=label_outcome.label_side,
        metric=label_outcome.metric,
        stages=label_outcome.stages,
        best_stage=label_outcome.best_stage,
        validation_scores=label_outcome.validation_scores,
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
            door_opener=lambda _: (data_party.door, run_spec),
            checkpoints=checkpoints,
        )
        link.expect(Farewell)
    return outcome


def _future_of(act: Callable[[], DataOutcome]) -> "Future[DataOutcome]":
    """Run `act` in this thread; its result or exception is in the future."""
    future: Future[DataOutcome] = Future()
    try:
        future.set_result(act())
    except Exception as error:
        future.set_exception(error)
    return future


def _raise_root_cause(
    data_futures: list["Future[DataOutcome]"], label_future: "Future[LabelOutcome]"
) -> None:
    """Raise the error that started it, not the lost peers that the other parties report."""
    raised = [future.exception() for future in data_futures] + [label_future.exception()]
    errors = [error for error in raised if error is not None]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, PeerError))
