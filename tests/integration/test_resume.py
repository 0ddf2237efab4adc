"""Every method, stopped and resumed, ends with the weights of an undisturbed run."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from torch import nn

from vesper.errors import PeerLostError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.door import Door
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.method.registry import METHODS
from vesper.method.settings import Config
from vesper.model.objective_factory import LabelResponses
from vesper.privacy.ledger.store import Ledger
from vesper.protocol.messages import Farewell
from vesper.protocol.turns import Role
from vesper.session.checkpoint import FileCheckpoints
from vesper.session.config import load_config
from vesper.session.data_side import run_data_session
from vesper.session.doors import open_door
from vesper.session.label_responses import charge_label_responses
from vesper.session.label_side import DataPeer, run_label_session
from vesper.session.peer import Link
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import train
from vesper.transport.channel import MAX_FRAME_BYTES, Channel
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.memory import MemoryChannel, MemoryRendezvous

CLASSES, NODES, PATIENCE = 3, 300, 60.0


class Stopping:
    """A connection whose own end is stopped after so many frames."""

    def __init__(self, inner: MemoryChannel, frames: int) -> None:
        self._inner, self._frames = inner, frames

    def send(self, frame: bytes) -> None:
        self._frames -= 1
        if self._frames < 0:
            self._inner.close(CloseReason.USER)
            raise KeyboardInterrupt
        self._inner.send(frame)

    def receive(self, limit: int = MAX_FRAME_BYTES) -> bytes:
        return self._inner.receive(limit)

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._inner.close(why)


@pytest.fixture
def folder(tmp_path: Path, write_folders: Callable[..., Path]) -> Path:
    random_ = np.random.default_rng(0)
    labels = random_.integers(0, CLASSES, NODES)
    columns = {f"x{k}": random_.normal(size=NODES) + (labels == k) for k in range(CLASSES)}
    pairs = random_.integers(0, NODES, (4 * NODES, 2))
    split = [("train", "train", "val", "test")[k % 4] for k in range(NODES)]
    return write_folders(
        tmp_path,
        nodes={"id": range(NODES), **columns},
        edges={"src": pairs[:, 0], "dst": pairs[:, 1]},
        labels={"id": range(NODES), "label": labels, "split": split},
    )


def both_ends(
    config: Config,
    data: DataHoldings,
    labels: LabelHoldings,
    state: Path,
    ledger: Ledger,
    stop_after: int,
) -> tuple[nn.Module, nn.Module] | None:
    """Run or resume a session until the data party is stopped; None if it was."""
    rendezvous = MemoryRendezvous(patience=PATIENCE)

    def channel(role: str, frames: int) -> DurableChannel:
        (state / role).mkdir(parents=True, exist_ok=True)

        def connect(limit: float | None) -> Channel:
            return Stopping(rendezvous.connect(0 if role == "data" else 1, limit), frames)

        directions = ("data>label", "label>data")
        return DurableChannel(
            connect,
            state / role,
            names_session=role == "data",
            directions=directions if role == "data" else directions[::-1],
            reconnects=False,
        )

    def label_side() -> nn.Module | None:
        with closing(channel("label", 1 << 30)) as durable:
            checkpoints = FileCheckpoints(state / "label" / "checkpoint.npz", durable)
            link = Link(Role.LABEL, durable)
            responses = responses_in_state(config, labels, state)
            try:
                outcome = run_label_session(
                    [DataPeer(config, link)], labels, checkpoints=checkpoints, responses=responses
                )
            except PeerLostError:
                return None
            durable.finish(patience=PATIENCE)
            durable.linger()  # the data party may have been stopped before our farewell
            return outcome.label_side.module

    def data_side() -> nn.Module | None:
        noise = NoiseSource.for_simulation(config.run.seed)
        release_store = ReleaseStore(state / "releases")
        door_opener = partial(
            open_door,
            graph=data.graph,
            ledger=ledger,
            noise=noise,
            name="g",
            run="session",
            release_store=release_store,
        )
        with closing(channel("data", stop_after)) as durable:
            link = Link(Role.DATA, durable)
            checkpoints = FileCheckpoints(state / "data" / "checkpoint.npz", durable)
            try:
                outcome = run_data_session(
                    config, data, link, door_opener=door_opener, checkpoints=checkpoints
                )
                link.expect(Farewell)
            except KeyboardInterrupt:
                return None
            return outcome.data_side.module

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(label_side)
        ours, theirs = data_side(), running.result()
    return None if ours is None or theirs is None else (ours, theirs)


def responses_in_state(config: Config, labels: LabelHoldings, state: Path) -> LabelResponses | None:
    """Draw responses the first time; later calls, each with a new source, return the same ones."""
    path, noise = state / "label-ledger.sqlite", NoiseSource.from_os()
    return charge_label_responses(config, labels, path=path, noise=noise)


def charges(ledger: Ledger) -> int:
    return sum(entry.cost > 0 for entry in ledger.entries())


@pytest.mark.parametrize(
    ("method", "exchange"),
    [
        *((method, {}) for method in METHODS),
        ("certified", {"wire": "int8", "local_updates": 3}),
        ("certified", {"label_epsilon": 2.0}),
        ("paper-gin", {"wire": "float16", "local_updates": 2}),
    ],
)
def test_stopped_and_resumed(
    folder: Path, replay_door: Callable[[Path], Door], method: str, exchange: dict[str, object]
) -> None:
    settings = {"method": method, "epochs": 3, "width": 8, "batch_size": 16, "seed": 3}
    config = load_config(None, {**settings, **exchange})
    data, labels = open_data(folder / "data"), open_labels(folder / "label")
    chance, stops, ends = random.Random(method), 0, None
    with closing(Ledger(folder / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        while ends is None:
            stop_after = chance.randint(2, 15)
            ends = both_ends(config, data, labels, folder / "state", ledger, stop_after)
            stops += ends is None
        released = len(list((folder / "state" / "releases").glob("*.npz")))
        run_spec = run_spec_for(config, data, labels)
        noise_plan = run_spec.method.noise_plan(config, run_spec.sizes)
        assert charges(ledger) == (released if noise_plan.plan == "certified" else 0)
        noise = NoiseSource.for_simulation(config.run.seed)
        door = (
            replay_door(folder / "state" / "releases")
            if released
            else open_door(run_spec, data.graph, ledger, noise, name="g", run="undisturbed")[0]
        )
        responses = responses_in_state(config, labels, folder / "state")
        undisturbed = train(run_spec, data, labels, door, responses=responses)
    assert stops
    expected = (undisturbed.data_side.module, undisturbed.label_side.module)
    for actual, expected_module in zip(ends, expected, strict=True):
        for name, value in expected_module.state_dict().items():
            assert np.array_equal(actual.state_dict()[name].numpy(), value.numpy()), name
