"""The data party's result is in place before it leaves; a resumed party needs no peer for it."""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

import pytest
from tests.fixtures.observers import CallingObserver

from vesper.deployment import data_process, label_process
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import peer_connector
from vesper.deployment.data_process import run_data_party
from vesper.transport.channel import Channel
from vesper.transport.close_reason import CloseReason
from vesper.transport.durable_channel import DurableChannel
from vesper.transport.reconnect import Connect
from vesper.transport.transcript import read_transcript

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both


class Watched:
    """A connection that notes whether the result is in place when it is closed."""

    def __init__(self, inner: Channel, result: Path, seen: list[bool]) -> None:
        self._inner, self._result, self._seen = inner, result, seen
        self.send, self.receive = inner.send, inner.receive

    def close(self, why: CloseReason = CloseReason.DONE) -> None:
        self._seen.append(self._result.exists())
        self._inner.close(why)


def test_the_result_is_in_place_before_the_connection_is_closed(both: "Both") -> None:
    seen: list[bool] = []

    @contextmanager
    def connector(config: PartyConfig, **rest: Any) -> Iterator[Connect]:
        with peer_connector(config, **rest) as connect:
            yield lambda limit: Watched(connect(limit), config.party.state / "result", seen)

    for side in both.run(*both.configs(), connector=connector):
        side.result()
    assert seen == [True]


def test_all_frames_are_on_disk_before_the_result_is_in_place(
    both: "Both", monkeypatch: pytest.MonkeyPatch
) -> None:
    events: dict[int, list[str]] = defaultdict(list)  # by thread, hence by party

    def note(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def noted(*values: Any, **named: Any) -> Any:
            events[get_ident()].append(name)
            return real(*values, **named)

        monkeypatch.setattr(owner, name, noted)

    for name in ("flush_received", "mark_checkpoint", "send"):
        note(DurableChannel, name)
    note(data_process, "new_folder")
    note(label_process, "new_folder")
    for side in both.run(*both.configs()):
        side.result()
    before = [each[each.index("new_folder") - 1] for each in events.values()]
    assert before == ["flush_received"] * 2


@pytest.mark.parametrize("has_farewell", [True, False])
def test_a_data_party_that_died_before_its_result_resumes_without_its_peer(
    both: "Both", monkeypatch: pytest.MonkeyPatch, has_farewell: bool
) -> None:
    both.change('when_lost = "stop"', 'when_lost = "wait"')
    both.change("patience = 5.0", "patience = 1.0")
    data, label = both.configs()

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        if not has_farewell:
            dying.setattr(data_process, "write_run", die)
        for side in both.run(data, label):
            side.exception()
    if has_farewell:
        (data.party.state / "result").rename(data.party.state / "elsewhere")

    def give_up(task: str, done: int, total: int, note: str = "") -> None:
        if task.startswith("waiting") and done > 10 * data.party.patience:
            raise AssertionError("waits for a peer that has finished and is gone")

    result = run_data_party(data, resume=True, observer=CallingObserver(progress=give_up))
    stored = json.loads((data.party.state / "result" / "result.json").read_text())
    lines = read_transcript(data.party.state / "transcript.tsv")
    sent = sum(line.size for line in lines if line.direction == "data>label")
    assert stored["bytes_sent"] == result.bytes_sent == sent
    assert both.charged(data) == 3
