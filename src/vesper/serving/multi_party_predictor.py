"""Predictions of a model of several data parties: each is asked, or found in its own cache.

    scores = sum over parties of their scores      ->  calibrated probabilities, or numbers

A node is predicted when all parties have answered about it. What is said of budgets is said of the
party that has least left.

The label party's own graph answers the label party: a thread of the same process.

Answers are made of what was released and charged in training, as those of any other data party.
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
from vesper.model.evaluation import Scores
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
from vesper.session.metrics import metric_name_of
from vesper.session.peer import Link
from vesper.transport.channel import closing_with_reason
from vesper.transport.memory import MemoryRendezvous


@contextmanager
def serve_own_graph(config: PartyConfig) -> Iterator[InMemoryConnector]:
    """Answer about the graph of training until the block ends.

    Raises:
        InputError: the run is not finished, or its graph has changed.
    """
    meeting, ready = MemoryRendezvous(patience=OWN_GRAPH_PATIENCE), Event()

    def answer() -> None:  # all of it in one thread: a ledger belongs to the one that opened it
        with state_folder_lock(config.party.state), open_embedding_server(config) as server:
            ready.set()
            while not meeting.is_closed:
                with (
                    suppress(PeerLostError),
                    closing_with_reason(meeting.connect(0, None)) as channel,
                ):
                    serve_peer(server, Link(Role.DATA, channel, QUERY_TABLE))

    def over(_: object) -> None:
        meeting.close()
        ready.set()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answering = pool.submit(answer)
        answering.add_done_callback(over)
        ready.wait()
        if answering.done():
            answering.result()
        try:
            yield InMemoryConnector(meeting)
        finally:
            meeting.close()
        answering.result()


class MultiPartyPredictor:
    """The label party's side of a finished run with several data parties.

    Args:
        members: one a data party; they give scores.
    """

    def __init__(self, members: Sequence[PeerPredictor]) -> None:
        self._members, self.run = members, members[0].run
        self.columns = self.run.calibration.columns
        self.metric = metric_name_of(self.run.calibration, task=self.run.config.run.task)

    def predict(
        self, ids: Sequence[str], *, limit: float | None, progress: Progress = no_progress
    ) -> Predictions:
        """Predict as many of the ids as all can; arguments and errors as of `PeerPredictor`."""
        found = [each.predict(ids, limit=limit, progress=progress) for each in self._members]
        common = [text for text in found[0].values if all(text in each.values for each in found)]
        values = {}
        if common:
            scores = sum(np.stack([each.values[text] for text in common]) for each in found)
            values = dict(
                zip(common, self.run.calibration.predict(np.asarray(scores)), strict=True)
            )
        return Predictions(
            snapshot=self.snapshot,
            values=values,
            cached=frozenset.intersection(*(each.cached for each in found)),
            unknown=frozenset.union(*(each.unknown for each in found)),
            budget=self.budget(),
            refusal=next((each.refusal for each in found if each.refusal is not None), None),
            unreachable=next(
                (each.unreachable for each in found if each.unreachable is not None), None
            ),
        )

    def refresh_budget(self, *, limit: float | None) -> str | None:
        """Ask all about their budgets; say why when one is away."""
        said = [each.refresh_budget(limit=limit) for each in self._members]
        return next((why for why in said if why is not None), None)

    def budget(self) -> BudgetFacts | None:
        """That of the party with least left."""
        known = [budget for each in self._members if (budget := each.budget()) is not None]
        return min(known, key=lambda budget: budget["left_epsilon"], default=None)

    @property
    def snapshot(self) -> str | None:
        """Which graphs were answered about last; None until all have said."""
        names = [each.snapshot for each in self._members]
        return None if None in names else "+".join(str(name) for name in names)

    def evaluate(
        self, found: Predictions, truth: Mapping[str, Label], *, path: Path
    ) -> float | None:
        """Hold predictions against labels; None where some, or all of them, are not predicted."""
        return evaluate_known(found, truth, self.run, path=path)


def raw_scores(scores: Scores) -> Scores:
    """Scores, to be added to those of others."""
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
                    kept,
                    progress=progress,
                    transform=raw_scores,
                    connector=own if _is_own(table, pair.party.peer) else peer_connector,
                )
            )
            for pair, kept in pairs
        ]
        yield MultiPartyPredictor(members)


def _is_own(table: MultiPartyConfig, name: str) -> bool:
    return any(party.own and party.name == name for party in table.peer_settings)
