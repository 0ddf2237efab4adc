"""The label party's own graph: a data party in a thread of the same process.

It runs the same session as any other data party, over a channel in memory, with its own state,
ledger and door. So what leaves its graph is charged and perturbed before the label party computes
anything from it, and all that the other data parties see is post-processing of that.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from vesper.deployment.certificate_watch import Warn, ignore_warning
from vesper.deployment.config.multi_party_config import MultiPartyConfig
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.data_process import run_data_party
from vesper.deployment.state_folder import (
    discard_unless_started,
    is_finished,
    return_reservation,
    wait_for_peer_to_finish,
)
from vesper.errors import PeerError, VesperError
from vesper.mechanism.noise import NoiseSource
from vesper.session.observer import SessionObserver
from vesper.session.result import DataResult
from vesper.transport.channel import Channel
from vesper.transport.memory import MemoryRendezvous
from vesper.transport.reconnect import Connect
from vesper.transport.stream import Waiting, ignore_waiting

OWN_GRAPH_PATIENCE = 86_400.0
"""Seconds that the two ends wait for each other: they start and end in the same process."""


class InMemoryConnector:
    """Connector for one end of a rendezvous in this process; by default the label party's."""

    def __init__(self, rendezvous: MemoryRendezvous, end: int = 1) -> None:
        self._rendezvous, self._end = rendezvous, end

    @contextmanager
    def connector(
        self, config: PartyConfig, *, waiting: Waiting = ignore_waiting, warn: Warn = ignore_warning
    ) -> Iterator[Connect]:
        """Yield a function that connects to the other end."""

        def connect(limit: float | None) -> Channel:
            return self._rendezvous.connect(self._end, limit)

        yield connect


class OwnGraph(InMemoryConnector):
    """The data party of the label party's own graph, while it runs."""

    def __init__(
        self, name: str, rendezvous: MemoryRendezvous, running: "Future[DataResult | None]"
    ) -> None:
        super().__init__(rendezvous)
        self._name, self._running = name, running

    def raise_if_failed(self) -> None:
        """Raise the error that it failed with, except for the loss of its peer."""
        error = self._running.exception() if self._running.done() else None
        if error is None or isinstance(error, PeerError):
            return
        if isinstance(error, VesperError):
            error.party_name = self._name
        raise error


class _WarningObserver(SessionObserver):
    """Passes warnings on, and nothing else: progress is that of the label party."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn

    def warning(self, text: str) -> None:
        """Pass the warning on."""
        self._warn(text)


@contextmanager
def run_own_graph(
    config: PartyConfig,
    *,
    resume: bool,
    noise: NoiseSource,
    warn: Warn = ignore_warning,
) -> Iterator[OwnGraph]:
    """Run the data party of the own graph until the block ends, or until it is finished.

    Args:
        config: its settings.
        resume: continue its run, to which the label party has connected before.
        noise: source of its noise.
        warn: receives warnings for the owner of the graph.
    """
    rendezvous = MemoryRendezvous(patience=OWN_GRAPH_PATIENCE)
    connector = InMemoryConnector(rendezvous, end=0).connector
    patient = config.model_copy(
        update={"party": config.party.model_copy(update={"patience": OWN_GRAPH_PATIENCE})}
    )

    def run() -> DataResult | None:
        if resume and is_finished(config):
            # The label party connects if it lacks something.
            wait_for_peer_to_finish(patient, connector=connector)
            return_reservation(config)  # it may have been stopped just before
            return None
        if not resume:  # it may have started, and the label party was stopped before it noted that
            discard_unless_started(config)
        return run_data_party(
            patient,
            resume=resume,
            noise=noise,
            observer=_WarningObserver(warn),
            connector=connector,
        )

    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(run)
        running.add_done_callback(lambda _: rendezvous.close())
        graph = OwnGraph(config.party.name, rendezvous, running)
        try:
            yield graph
        except PeerError:
            rendezvous.close()
            running.exception()  # wait: it may be the cause
            graph.raise_if_failed()
            raise
        finally:
            rendezvous.close()
        running.exception()  # wait, so that an error at the very end is not lost
        graph.raise_if_failed()


def finish_own_graph(table: MultiPartyConfig) -> None:
    """Let the own graph finish if the label party was stopped between the two results."""
    if table.graph is None:
        return
    if is_finished(table.graph):
        return_reservation(table.graph)  # it may have been stopped just before
        return
    with run_own_graph(table.graph, resume=True, noise=NoiseSource.from_os()) as graph:
        wait_for_peer_to_finish(table.own_graph_peer, connector=graph.connector)
