"""A side that stops sends why; the other ends at once, or waits, and both can be resumed."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.fixtures.observers import CallingObserver

from vesper.deployment import data_peers
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import peer_connector
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.errors import BudgetError, PeerLostError, PeerStoppedError, RemoteProtocolError
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason
from vesper.transport.reconnect import Connect

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both


class Corrupting:
    """A connection that changes the last byte of one frame on its way out, counted from 0."""

    def __init__(self, inner: Channel, number: int) -> None:
        self._inner, self._left = inner, number
        self.receive = inner.receive

    def send(self, frame: bytes) -> None:
        self._left -= 1
        self._inner.send(frame if self._left != -1 else frame + b"!")

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._inner.close(why)


class Stopping:
    """Progress that raises the user's Ctrl-C once a side has trained so many steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def __call__(self, task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == self._steps:
            raise KeyboardInterrupt


def never(why: str) -> None:
    """Fail: a side waits where it must not."""
    raise AssertionError(why)


def bytes_sent(config: PartyConfig) -> int:
    """Bytes that the result says this side has sent."""
    stored = json.loads((config.party.state / "result" / "result.json").read_text())
    return int(stored["bytes_sent"])


def weights(config: PartyConfig) -> dict[str, Any]:
    stored = np.load(config.party.state / "result" / f"{config.party.role}_party.npz")
    return {name: stored[name] for name in stored.files}


def assert_same_as_undisturbed(both: "Both", disturbed: tuple[PartyConfig, PartyConfig]) -> None:
    """Train once more with the same noise, elsewhere; compare weights, and bytes sent in all."""
    both.change('state = "state"', 'state = "undisturbed"')
    both.change("ledger.sqlite", "undisturbed.sqlite")
    again = both.configs()
    for side in both.run(*again, noise=NoiseSource.for_simulation(7)):
        side.result()
    for actual, expected in zip(map(weights, disturbed), map(weights, again), strict=True):
        assert set(actual) == set(expected)
        assert all(np.array_equal(actual[name], expected[name]) for name in expected)
    assert [bytes_sent(each) for each in disturbed] == [bytes_sent(each) for each in again]


def test_the_peer_does_not_learn_of_a_refused_budget(both: "Both") -> None:
    """Whether a budget suffices depends on edges: for the peer, nobody connects, without reason."""
    for side in both.run(*both.configs()):
        side.result()
    both.change('state = "state"', 'state = "second"')
    data, label = both.configs()
    waited: list[int] = []

    def stop_waiting(task: str, done: int, total: int, note: str = "") -> None:
        if task.startswith("waiting"):
            waited.append(done)
            if done >= 2:
                raise KeyboardInterrupt

    ours, theirs = both.run(
        data, label, of_label={"observer": CallingObserver(warning=never, progress=stop_waiting)}
    )
    with pytest.raises(BudgetError, match="does not allow"):
        ours.result()
    with pytest.raises(KeyboardInterrupt):
        theirs.result()
    assert waited
    for config in (data, label):  # both can start again, with another budget
        assert not (config.party.state / "session").exists()


@pytest.mark.parametrize("stopped", ["data", "label"])
def test_the_peer_learns_of_a_users_stop_and_waits(both: "Both", stopped: str) -> None:
    both.change('when_lost = "stop"', 'when_lost = "wait"')
    data, label = both.configs()
    warnings: list[str] = []
    runs: dict[str, Callable[..., Any]] = {
        "data": lambda **how: run_data_party(data, noise=NoiseSource.for_simulation(7), **how),
        "label": lambda **how: run_label_party(label, **how),
    }
    other = "label" if stopped == "data" else "data"
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(runs[other], observer=CallingObserver(warning=warnings.append))
        with pytest.raises(KeyboardInterrupt):
            pool.submit(runs[stopped], observer=CallingObserver(progress=Stopping(3))).result()
        again = pool.submit(runs[stopped], resume=True)
        assert again.result().method == waiting.result().method
    name = {"data": "platform", "label": "bank"}[stopped]
    assert warnings[0] == f"{name} was stopped by its user; waiting for it to come back"
    assert both.charged(data) == 3
    assert_same_as_undisturbed(both, (data, label))


def test_a_side_that_must_not_wait_stops_and_both_can_be_resumed(both: "Both") -> None:
    data, label = both.configs()
    noise = NoiseSource.for_simulation(7)
    ours, theirs = both.run(
        data, label, noise=noise, observer=CallingObserver(progress=Stopping(2))
    )
    with pytest.raises(KeyboardInterrupt):
        ours.result()
    with pytest.raises(PeerLostError, match="platform was stopped by its user"):
        theirs.result()
    for side in both.run(data, label, noise=noise, resume=True, of_label={"resume": True}):
        side.result()
    assert_same_as_undisturbed(both, (data, label))


def corrupted(role: str, number: int) -> Callable[..., Any]:
    """Make a connector that corrupts one frame of one side."""

    @contextmanager
    def connector(config: PartyConfig, **rest: Any) -> Iterator[Connect]:
        with peer_connector(config, **rest) as connect:

            def dial(limit: float | None) -> Channel:
                channel = connect(limit)
                return Corrupting(channel, number) if config.party.role == role else channel

            yield dial

    return connector


@pytest.mark.parametrize(
    ("role", "number"),
    [("label", 3), ("label", 6), ("data", 2), ("data", 5)],  # 0 is the greeting
    ids=["first gradients", "gradients", "first embeddings", "embeddings"],
)
def test_the_sender_learns_of_a_corrupt_frame_and_both_can_be_resumed(
    both: "Both", monkeypatch: pytest.MonkeyPatch, role: str, number: int
) -> None:
    both.change('when_lost = "stop"', 'when_lost = "wait"')
    data, label = both.configs()
    noise = NoiseSource.for_simulation(7)
    with monkeypatch.context() as broken:
        connector = corrupted(role, number)
        broken.setattr(data_peers, "peer_connector", connector)
        ours, theirs = both.run(
            data,
            label,
            noise=noise,
            observer=CallingObserver(warning=never),
            connector=connector,
            of_label={"observer": CallingObserver(warning=never)},
        )
    sender, receiver = (ours, theirs) if role == "data" else (theirs, ours)
    with pytest.raises(RemoteProtocolError, match="bytes too many"):
        receiver.result()
    with pytest.raises(PeerStoppedError, match="it rejects what this side has sent"):
        sender.result()
    both.change('when_lost = "wait"', 'when_lost = "stop"')
    data, label = both.configs()
    for side in both.run(data, label, noise=noise, resume=True, of_label={"resume": True}):
        side.result()
    assert both.charged(data) == 3
    assert_same_as_undisturbed(both, (data, label))
