"""The label party's own graph: a data party in a thread of the same process.

It goes through the same session as any other, over a channel in memory, with its own state, ledger
and door. So what leaves its graph is charged and perturbed before the label party computes anything
from it, and all that the other data parties see is post-processing of that.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from vesper.deployment.config.multi_party_config import LabelTable
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.data_process import run_data_party
from vesper.deployment.state_folder import forget_unless_begun, is_finished, stay_for_peer
from vesper.errors import PeerError, VesperError
from vesper.mechanism.noise import NoiseSource
from vesper.session.result import DataResult
from vesper.transport.channel import Channel
from vesper.transport.memory import MemoryMeeting
from vesper.transport.reconnect import Connect
from vesper.transport.stream import Waiting, unheard

PATIENCE = 86_400.0
"""Seconds that the two ends wait for each other: they live and die together."""


class MetInMemory:
    """One end of a meeting in this process, as a place; by default the label party's end."""

    def __init__(self, meeting: MemoryMeeting, end: int = 1) -> None:
        self._meeting, self._end = meeting, end

    @contextmanager
    def place(self, config: PartyConfig, *, waiting: Waiting = unheard) -> Iterator[Connect]:
        """Where the other end is met."""

        def connect(limit: float | None) -> Channel:
            return self._meeting.connect(self._end, limit)

        yield connect


class OwnGraph(MetInMemory):
    """The data party of the label party's own graph, while it runs."""

    def __init__(
        self, name: str, meeting: MemoryMeeting, running: "Future[DataResult | None]"
    ) -> None:
        super().__init__(meeting)
        self._name, self._running = name, running

    def refuse_failed(self) -> None:
        """Raise why it failed, where it was the first to; that its peer is gone is no reason."""
        error = self._running.exception() if self._running.done() else None
        if error is None or isinstance(error, PeerError):
            return
        if isinstance(error, VesperError):
            error.whose = self._name
        raise error


@contextmanager
def own_graph(config: PartyConfig, *, resume: bool, noise: NoiseSource) -> Iterator[OwnGraph]:
    """Run the data party of the own graph until the block ends, or until it is finished.

    Args:
        config: its settings.
        resume: go on with what it has begun; the label party has met it before.
        noise: where its noise comes from.
    """
    meeting = MemoryMeeting(patience=PATIENCE)
    place = MetInMemory(meeting, end=0).place
    patient = config.model_copy(
        update={"party": config.party.model_copy(update={"patience": PATIENCE})}
    )

    def run() -> DataResult | None:
        if resume and is_finished(config):
            stay_for_peer(patient, place=place)  # the label party comes when it needs something
            return None
        if not resume:
            forget_unless_begun(config)  # it had begun, and the label party was ended before it
        return run_data_party(patient, resume=resume, noise=noise, place=place)

    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(run)
        running.add_done_callback(lambda _: meeting.leave())
        graph = OwnGraph(config.party.name, meeting, running)
        try:
            yield graph
        except PeerError:
            meeting.leave()
            running.exception()  # wait: it may be the cause
            graph.refuse_failed()
            raise
        finally:
            meeting.leave()
        running.exception()  # wait: what went wrong at the very end is not lost
        graph.refuse_failed()


def finish_own(table: LabelTable) -> None:
    """Let the own graph finish, where the label party was ended between its result and that one."""
    if table.graph is None or is_finished(table.graph):
        return
    with own_graph(table.graph, resume=True, noise=NoiseSource.from_os()) as graph:
        stay_for_peer(table.pair_with_own, place=graph.place)
