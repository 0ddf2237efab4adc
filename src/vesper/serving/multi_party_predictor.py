"""Predictions with several data parties, each queried or read from its own cache.

    scores = sum over parties of their scores   ->   calibrated probabilities, or numbers

A node is predicted when all parties have answered for it. The budget reported is that of the party
with the least left.

The label party's own graph is served by a thread of the same process. Its answers are computed from
what was released and charged in training, as those of any other data party.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event

import numpy as np

from vesper.deployment.config.multi_party_config import MultiPartyConfig
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import PeerConnector, peer_connector
from vesper.deployment.label_process import saved_peer_runs
from vesper.deployment.own_graph import OWN_GRAPH_PATIENCE, InMemoryConnector
from vesper.deployment.state_folder import state_folder_lock
from vesper.errors import InputError, PeerLostError
from vesper.model.evaluation import Scores, metric_name_of
from vesper.model.objective import Label
from vesper.progress import Progress, no_progress
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.turns import Role
from vesper.serving.embedding_server import open_embedding_server, serve_peer
from vesper.serving.predictor import (
    BudgetFacts,
    NodePredictor,
    PeerPredictor,
    Predictions,
    evaluate_known,
    open_peer_predictor,
)
from vesper.session.peer import Link
from vesper.transport.channel import closing_with_reason
from vesper.transport.memory import MemoryRendezvous


@contextmanager
def serve_own_graph(config: PartyConfig) -> Iterator[InMemoryConnector]:
    """Serve the label party's own graph of training until the block ends.

    Raises:
        InputError: the run is not finished, or its graph has changed.
    """
    rendezvous, ready = MemoryRendezvous(patience=OWN_GRAPH_PATIENCE), Event()

    def serve() -> None:  # all in one thread: a ledger belongs to the thread that opened it
        with state_folder_lock(config.party.state), open_embedding_server(config) as server:
            ready.set()
            while not rendezvous.is_closed:
                with (
                    suppress(PeerLostError),
                    closing_with_reason(rendezvous.connect(0, None)) as channel,
                ):
                    serve_peer(server, Link(Role.DATA, channel, QUERY_TABLE))

    def stop(_: object) -> None:
        rendezvous.close()
        ready.set()

    with ThreadPoolExecutor(max_workers=1) as pool:
        serving = pool.submit(serve)
        serving.add_done_callback(stop)
        ready.wait()
        if serving.done():
            serving.result()
        try:
            yield InMemoryConnector(rendezvous)
        finally:
            rendezvous.close()
        serving.result()


class MultiPartyPredictor:
    """Predicts nodes at the label party, with several data parties.

    Args:
        members: one per data party; their predictions are raw scores.
    """

    def __init__(self, members: Sequence[PeerPredictor]) -> None:
        self._members, self.run = members, members[0].run
        self.columns = self.run.calibration.columns
        self.metric = metric_name_of(self.run.calibration, task=self.run.config.run.task)

    def predict(
        self, ids: Sequence[str], *, limit: float | None, progress: Progress = no_progress
    ) -> Predictions:
        """Predict the ids that all members can; arguments and errors as in `PeerPredictor`."""
        parts = [each.predict(ids, limit=limit, progress=progress) for each in self._members]
        common = [text for text in parts[0].values if all(text in each.values for each in parts)]
        values = {}
        if common:
            scores = sum(np.stack([each.values[text] for text in common]) for each in parts)
            values = dict(
                zip(common, self.run.calibration.predict(np.asarray(scores)), strict=True)
            )
        return Predictions(
            snapshot=self.snapshot,
            values=values,
            cached=frozenset.intersection(*(each.cached for each in parts)),
            unknown=frozenset.union(*(each.unknown for each in parts)),
            budget=self.budget(),
            unreachable=next(
                (each.unreachable for each in parts if each.unreachable is not None), None
            ),
        )

    def refresh_budget(self, *, limit: float | None) -> str | None:
        """Query all budgets; return why if a data party cannot be reached."""
        problems = [each.refresh_budget(limit=limit) for each in self._members]
        return next((problem for problem in problems if problem is not None), None)

    def budget(self) -> BudgetFacts | None:
        """The budget of the party with the least left."""
        known = [budget for each in self._members if (budget := each.budget()) is not None]
        return min(known, key=lambda budget: budget["left_epsilon"], default=None)

    @property
    def snapshot(self) -> str | None:
        """Names of the graphs that were last served; None until all have replied once."""
        names = [each.snapshot for each in self._members]
        return None if None in names else "+".join(str(name) for name in names)

    def evaluate(
        self, predictions: Predictions, truth: Mapping[str, Label], *, path: Path
    ) -> float | None:
        """Measure predictions against labels; None if some, or all of them, are not predicted."""
        return evaluate_known(predictions, truth, self.run, path=path)


def raw_scores(scores: Scores) -> Scores:
    """Return scores unchanged, to be added to those of other members."""
    return scores


@contextmanager
def open_predictor(
    table: MultiPartyConfig, *, progress: Progress = no_progress
) -> Iterator[NodePredictor]:
    """Open a finished run with one data party or several.

    Raises:
        InputError: the run is not finished, or a certificate or address cannot be used.
    """
    with ExitStack() as stack:
        if not table.peer_settings:
            yield stack.enter_context(open_peer_predictor(table.own, table.own, progress=progress))
            return
        pairs = saved_peer_runs(table)
        if not pairs:
            raise InputError(
                f"{table.own.party.state}: expected a finished run, found none; train first with "
                f"`vesper party label`"
            )
        own: PeerConnector = peer_connector
        if table.graph is not None:
            own = stack.enter_context(serve_own_graph(table.graph)).connector
        members = [
            stack.enter_context(
                open_peer_predictor(
                    pair,
                    saved,
                    progress=progress,
                    transform=raw_scores,
                    connector=own if _is_own(table, pair.party.peer) else peer_connector,
                )
            )
            for pair, saved in pairs
        ]
        yield MultiPartyPredictor(members)


def _is_own(table: MultiPartyConfig, name: str) -> bool:
    return any(party.own and party.name == name for party in table.peer_settings)
