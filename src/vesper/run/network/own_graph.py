"""The label party's own graph: a data party in a thread of the same process.

It goes through the same session as any other, over a channel in memory, with its own state, ledger
and door. So what leaves its graph is charged and perturbed before the label party computes anything
from it, and all that the other data parties see is post-processing of that.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from vesper.errors import PeerError
from vesper.mechanism.noise import NoiseSource
from vesper.run.network.data_run import run_data_party
from vesper.run.network.finished import is_finished, stay_for_peer
from vesper.run.result import DataResult
from vesper.run.setup.party_config import PartyConfig
from vesper.transport.channel import Channel
from vesper.transport.meetings import Connect
from vesper.transport.memory import MemoryMeeting
from vesper.transport.stream import Waiting, unheard

PATIENCE = 86_400.0
"""Seconds that the two ends wait for each other: they live and die together."""


class OwnGraph:
    """The data party of the label party's own graph, while it runs."""

    def __init__(self, meeting: MemoryMeeting, running: "Future[DataResult | None]") -> None:
        self._meeting, self._running = meeting, running

    @contextmanager
    def place(self, config: PartyConfig, *, waiting: Waiting = unheard) -> Iterator[Connect]:
        """Where the label party meets it."""
        yield lambda limit: self._meeting.connect(1, limit)

    def result(self) -> DataResult | None:
        """What it knows in the end; None when it had finished before.

        Raises:
            VesperError: it failed, for this reason.
        """
        return self._running.result()

    def refuse_failed(self) -> None:
        """Raise why it failed, where it was the first to; that its peer is gone is no reason."""
        error = self._running.exception() if self._running.done() else None
        if error is not None and not isinstance(error, PeerError):
            raise error


@contextmanager
def own_graph(config: PartyConfig, *, resume: bool, noise: NoiseSource) -> Iterator[OwnGraph]:
    """Run the data party of the own graph until the block ends, or until it is finished."""
    meeting = MemoryMeeting(patience=PATIENCE)

    @contextmanager
    def place(config: PartyConfig, *, waiting: Waiting = unheard) -> Iterator[Connect]:
        def connect(limit: float | None) -> Channel:
            return meeting.connect(0, limit)

        yield connect

    def run() -> DataResult | None:
        if resume and is_finished(config):
            stay_for_peer(config, place=place)
            return None
        has_begun = (config.party.state / "session").exists()
        return run_data_party(config, resume=resume and has_begun, noise=noise, place=place)

    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(run)
        running.add_done_callback(lambda _: meeting.leave())
        graph = OwnGraph(meeting, running)
        try:
            yield graph
        except PeerError:
            meeting.leave()
            running.exception()  # wait: it may be the cause
            graph.refuse_failed()
            raise
        finally:
            meeting.leave()
