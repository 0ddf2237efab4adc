"""An honest session, recorded once, to be replayed with errors in it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.errors import RemoteProtocolError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.method.settings import Config
from vesper.privacy.ledger.store import Ledger
from vesper.protocol.codec import decode
from vesper.protocol.messages import EvaluationReply, Farewell, Gradients, Verdict
from vesper.protocol.turns import Role
from vesper.session.config import load_config
from vesper.session.data_side import run_data_session
from vesper.session.doors import open_door
from vesper.session.label_side import DataPeer, run_label_session
from vesper.session.peer import Link
from vesper.transport.channel import MAX_FRAME_BYTES, Channel
from vesper.transport.close_reason import CloseReason, error_for_close_reason
from vesper.transport.memory import memory_pair

NODES, EPOCHS, STEPS, PATIENCE = 60, 3, 2, 1
SETTINGS = {
    "epochs": EPOCHS,
    "patience": PATIENCE,
    "batch_size": 10,
    "hops": 1,
    "width": 4,
    "seed": 5,
}
NUMBERS = count()


class Script:
    """A peer that sends these frames, one per `receive`, and then closes with a reason."""

    def __init__(
        self,
        frames: Sequence[bytes],
        on_receive: Callable[[int], object] = int,
        *,
        close_reason: CloseReason = CloseReason.FAULT,
    ) -> None:
        self._frames, self._on_receive, self.taken = frames, on_receive, 0
        self._close_reason = close_reason
        self.sent: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        self._on_receive(self.taken)
        if self.taken == len(self._frames):
            raise error_for_close_reason(self._close_reason, "the peer")
        self.taken += 1
        return self._frames[self.taken - 1]

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        return


@dataclass(frozen=True)
class Outcome:
    """How the session ended for one party."""

    error: VesperError | None
    frames: list[bytes]
    """Frames that it sent."""
    taken: int
    """Number of frames that it received from the peer."""
    charges: int = 0


@dataclass(frozen=True)
class Parties:
    """The inputs of both parties."""

    folder: Path
    config: Config
    data: DataHoldings
    labels: LabelHoldings

    def other(self, **run: object) -> Config:
        """The same settings except for some of [run]."""
        changed = self.config.run.model_copy(update=run)
        return self.config.model_copy(update={"run": changed})

    def data_party(
        self, frames: Sequence[bytes], *, close_reason: CloseReason = CloseReason.FAULT
    ) -> Outcome:
        """Run the data party with a charged door; errors other than VesperError are bugs."""
        script, error = Script(frames, close_reason=close_reason), None
        path = self.folder / f"{next(NUMBERS)}.sqlite"
        with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
            try:
                self.run_as_data_party(script, ledger)
            except VesperError as caught:
                error = caught
            charges = charges_in(ledger)
        path.unlink()
        return Outcome(error, script.sent, script.taken, charges)

    def run_as_data_party(self, channel: Channel, ledger: Ledger) -> None:
        noise = NoiseSource.for_simulation(1)
        door_opener = partial(
            open_door, graph=self.data.graph, ledger=ledger, noise=noise, name="g", run="r"
        )
        link = Link(Role.DATA, channel)
        run_data_session(self.config, self.data, link, door_opener=door_opener)
        link.expect(Farewell)

    def label_party(
        self, frames: Sequence[bytes], *, close_reason: CloseReason = CloseReason.FAULT
    ) -> Outcome:
        """Run the label party."""
        script, error = Script(frames, close_reason=close_reason), None
        try:
            run_label_session([DataPeer(self.config, Link(Role.LABEL, script))], self.labels)
        except VesperError as caught:
            error = caught
        return Outcome(error, script.sent, script.taken)


@dataclass(frozen=True)
class Recorded(Parties):
    """The inputs of both parties, and the frames of their honest session."""

    of_data: tuple[bytes, ...]
    of_label: tuple[bytes, ...]
    charges: dict[int, int]
    """Charges of the data party, by the number of stages it has started."""

    def checked(
        self, frames: Sequence[bytes], *, close_reason: CloseReason = CloseReason.FAULT
    ) -> Outcome:
        """Run the data party; check that it charges no more than accepted frames warrant."""
        outcome = self.data_party(frames, close_reason=close_reason)
        accepted = frames[: outcome.taken - isinstance(outcome.error, RemoteProtocolError)]
        assert outcome.charges <= self.charges[min(stages_started(accepted), max(self.charges))]
        return outcome


class Tapped:
    """A channel that records what is sent."""

    def __init__(self, inner: Channel) -> None:
        self._inner, self.sent = inner, list[bytes]()

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)
        self._inner.send(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        return self._inner.receive(limit)

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._inner.close(why)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("honest"), wire="float32")


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(tmp_path_factory.mktemp("rounded"), wire="int8")


@pytest.fixture(params=["honest", "rounded"])
def either(request: pytest.FixtureRequest) -> Recorded:
    fixture = request.getfixturevalue(request.param)
    assert isinstance(fixture, Recorded)
    return fixture


def recorded(folder: Path, *, wire: str) -> Recorded:
    """Record the session of two honest parties."""
    chance = np.random.default_rng(0)
    classes = np.arange(NODES) // 3 % 3
    (folder / "data").mkdir()
    (folder / "label").mkdir()
    columns = {f"f{k}": chance.normal(size=NODES) + (classes == k) for k in range(3)}
    pq.write_table(pa.table({"id": range(NODES), **columns}), folder / "data" / "nodes.parquet")
    pairs = {"src": range(NODES), "dst": [(k + 3) % NODES for k in range(NODES)]}
    pq.write_table(pa.table(pairs), folder / "data" / "edges.parquet")
    splits = [("train", "val", "test")[k % 3] for k in range(NODES)]
    table = {"id": range(NODES), "label": classes, "split": splits}
    pq.write_table(pa.table(table), folder / "label" / "labels.parquet")
    config = load_config(None, {**SETTINGS, "wire": wire})
    data, labels = open_data(folder / "data"), open_labels(folder / "label")
    parties = Parties(folder, config, data, labels)
    data_channel, label_channel = (Tapped(end) for end in memory_pair(patience=60))
    charges: dict[int, int] = {}
    with (
        closing(Ledger(folder / "honest.sqlite", clock=lambda: 0.0)) as ledger,
        ThreadPoolExecutor(1) as pool,
    ):
        data_peers = [DataPeer(config, Link(Role.LABEL, label_channel))]
        label_session = pool.submit(run_label_session, data_peers, labels)
        parties.run_as_data_party(data_channel, ledger)
        label_session.result()
        sent, received = tuple(data_channel.sent), tuple(label_channel.sent)
    with closing(Ledger(folder / "again.sqlite", clock=lambda: 0.0)) as ledger:

        def record_charges(taken: int) -> None:
            stage = stages_started(received[:taken])
            charges[stage] = max(charges.get(stage, 0), charges_in(ledger))

        parties.run_as_data_party(Script(received, record_charges), ledger)
    return Recorded(folder, config, data, labels, sent, received, charges)


def charges_in(ledger: Ledger) -> int:
    return sum(entry.cost > 0 for entry in ledger.entries())


def stages_started(frames: Sequence[bytes]) -> int:
    """How many stages an honest data party has started after these frames of its peer."""
    messages = [decode(frame) for frame in frames[2:]]  # hello and roster
    stage, epoch, steps, is_measuring = 0, 0, 0, False
    for message in messages:
        if isinstance(message, Gradients):
            steps += 1
        elif is_measuring:
            stage, epoch, is_measuring = stage + 1, 0, False
        elif isinstance(message, EvaluationReply):
            assert steps == STEPS
            epoch, steps = epoch + 1, 0
            is_measuring = epoch == EPOCHS or message.verdict is Verdict.STOP
    return stage + 1 if len(frames) >= 2 else 0
