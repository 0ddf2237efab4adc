"""Predictions for nodes, from cached embeddings or from those that the data party sends.

ids -> embeddings -> decoder at the best stage -> calibrated probabilities, or numbers
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import PeerConnector, peer_connector, show_waiting
from vesper.deployment.saved_run import SavedLabelRun, read_saved_label_run
from vesper.errors import PeerError, PeerLostError, RemoteProtocolError
from vesper.method.registry import find_method
from vesper.model.evaluation import Scores, metric_name_of
from vesper.model.objective import Label
from vesper.party.state import load_weights, weights_of
from vesper.progress import Progress, no_progress
from vesper.protocol.messages import QueryAnswer
from vesper.serving.embedding_cache import Embedding, EmbeddingCache
from vesper.serving.embedding_client import EmbeddingClient
from vesper.session.metrics import evaluate_predictions
from vesper.session.observer import ProgressObserver

BudgetFacts = dict[str, float]


@dataclass(frozen=True)
class Predictions:
    """Predictions for as many of the requested ids as possible."""

    snapshot: str | None
    """Name of the graph that they are about."""
    values: dict[str, NDArray[np.float64]]
    """Predictions by id, (columns,) each."""
    cached: frozenset[str]
    """Ids that were answered from the cache."""
    unknown: frozenset[str]
    """Ids that are no node."""
    budget: BudgetFacts | None
    unreachable: str | None
    """Who did not answer for the remaining ids, and since when."""


class NodePredictor(Protocol):
    """Predicts nodes with one data party or several."""

    run: SavedLabelRun
    columns: list[str]
    metric: str

    def predict(
        self, ids: Sequence[str], *, limit: float | None, progress: Progress = no_progress
    ) -> Predictions:
        """Predict as many of the ids as possible."""

    def refresh_budget(self, *, limit: float | None) -> str | None:
        """Query the budgets; return why if a data party cannot be reached."""

    def budget(self) -> BudgetFacts | None:
        """The budget as last received."""

    def evaluate(
        self, predictions: Predictions, truth: Mapping[str, Label], *, path: Path
    ) -> float | None:
        """Measure predictions against labels; None if some nodes are not predicted yet."""

    @property
    def snapshot(self) -> str | None:
        """Name of the graph that was last served."""


def evaluate_known(
    predictions: Predictions, truth: Mapping[str, Label], run: SavedLabelRun, *, path: Path
) -> float | None:
    """Measure predictions against labels; None if some are not predicted, or none is a node.

    Args:
        predictions: to measure.
        truth: labels by id, from the table at `path`.
        run: knows the classes and the metric.
        path: for messages.

    Raises:
        InputError: labels do not occur in training, or allow no metric.
    """
    known = [text for text in truth if text in predictions.values]
    if not known or len(known) < len(truth.keys() - predictions.unknown):
        return None
    predicted = np.stack([predictions.values[text] for text in known])  # (known, columns)
    labels = [truth[text] for text in known]
    return evaluate_predictions(
        predicted, labels, run.calibration, task=run.config.run.task, path=path
    )


IDS_PER_QUERY = 4096
"""Most ids in one query."""
FRESH_SECONDS = 10.0
"""Seconds after a reply during which the peer is taken to serve the same graph."""
QUICK_TIMEOUT = 1.0
"""Seconds to wait for the data party where the cache may do without it."""

ScoreTransform = Callable[[Scores], Scores]


class PeerPredictor:
    """Predicts nodes at the label party, with one data party.

    Args:
        run: the label party's saved run.
        client: sends queries to the data party.
        cache: of received embeddings.
        peer: name and address of the data party, for messages.
        transform: turns scores into predictions; by default the calibration of the run.
    """

    def __init__(
        self,
        run: SavedLabelRun,
        client: EmbeddingClient,
        cache: EmbeddingCache,
        *,
        peer: str,
        transform: ScoreTransform | None = None,
    ) -> None:
        self.run, self._client, self._cache, self._peer = run, client, cache, peer
        self._transform = transform or run.calibration.predict
        self.columns = run.calibration.columns
        self.metric = metric_name_of(run.calibration, task=run.config.run.task)
        self._last_reply_at = -FRESH_SECONDS
        self._decoder = find_method(run.config.run.method).make_decoder(run.config, run.sizes)
        load_weights(self._decoder.module, weights_of(run.weights))
        self._decoder.module.eval()

    def predict(
        self, ids: Sequence[str], *, limit: float | None, progress: Progress = no_progress
    ) -> Predictions:
        """Predict as many of the ids as possible.

        Args:
            ids: of nodes, in any order.
            limit: seconds to wait for the data party; None to wait forever.
            progress: receives progress reports.

        Raises:
            PeerError: the data party sent something that it must not send.
            InputError: its settings differ.
        """
        wanted = tuple(dict.fromkeys(ids))
        unreachable = self._refresh_snapshot(wanted, limit)
        for _ in range(2):
            predictions = self._predict_on_one_graph(wanted, unreachable, limit, progress)
            if predictions is not None:
                return predictions
        raise PeerError(f"{self._peer} keeps switching between graphs while it answers")

    def _predict_on_one_graph(
        self, ids: tuple[str, ...], unreachable: str | None, limit: float | None, progress: Progress
    ) -> Predictions | None:
        """Predict on one graph; None if the data party switches to another meanwhile."""
        snapshot, cached = self._known(ids)
        values, unknown = self._decode(cached), set[str]()
        missing = [text for text in ids if text not in cached]
        for start in range(0, 0 if unreachable else len(missing), IDS_PER_QUERY):
            queried = tuple(missing[start : start + IDS_PER_QUERY])
            try:
                name, reply = self._client.query(queried, limit=limit)
            except PeerLostError as error:
                unreachable = str(error)
                break
            self._note(name, reply)
            if name != snapshot:
                return None
            known = [text for text in queried if text not in set(reply.unknown)]
            values |= self._decode(dict(zip(known, reply.values, strict=True)))
            self._cache.store(name, self.run.stage, known, reply.values)  # they fit the decoder
            unknown |= set(reply.unknown)
            progress("predicting", len(values) + len(unknown), len(ids))
        return Predictions(
            snapshot=snapshot,
            values=values,
            cached=frozenset(cached),
            unknown=frozenset(unknown),
            budget=self.budget(),
            unreachable=None if unreachable is None else f"{unreachable}; {self._waiting_text()}",
        )

    def refresh_budget(self, *, limit: float | None) -> str | None:
        """Query the budget; return why if the data party cannot be reached."""
        try:
            self._note(*self._client.query((), limit=limit))
        except PeerLostError as error:
            return f"{error}; {self._waiting_text()}"
        return None

    def budget(self) -> BudgetFacts | None:
        """The budget as last received: epsilon, delta, spent_epsilon, left_epsilon."""
        note = self._cache.read_note("budget")
        return None if note is None else dict(json.loads(note))

    def evaluate(
        self, predictions: Predictions, truth: Mapping[str, Label], *, path: Path
    ) -> float | None:
        """Measure predictions against labels, and note the metric next to the graph's budget."""
        test = evaluate_known(predictions, truth, self.run, path=path)
        if predictions.snapshot is None or test is None:
            return None
        self._cache.write_graph_note(predictions.snapshot, test=test)
        return test

    @property
    def snapshot(self) -> str | None:
        """Name of the graph that was last served."""
        return self._cache.read_note("snapshot")

    def _refresh_snapshot(self, ids: Sequence[str], limit: float | None) -> str | None:
        """Find out which graph is served, unless a reply said so a moment ago.

        Returns why, if the data party cannot be reached.
        """
        if monotonic() - self._last_reply_at < FRESH_SECONDS:
            return None
        if len(self._known(ids)[1]) == len(ids):  # the cache has all of them
            limit = QUICK_TIMEOUT if limit is None else min(limit, QUICK_TIMEOUT)
        try:
            self._note(*self._client.query((), limit=limit))
        except PeerLostError as error:
            return str(error)
        return None

    def _known(self, ids: Sequence[str]) -> tuple[str | None, dict[str, Embedding]]:
        snapshot = self.snapshot
        return snapshot, self._cache.find(snapshot, self.run.stage, ids) if snapshot else {}

    def _note(self, snapshot: str, reply: QueryAnswer) -> None:
        self._last_reply_at = monotonic()
        budget = {
            name: getattr(reply, name)
            for name in ("epsilon", "delta", "spent_epsilon", "left_epsilon")
        }
        self._cache.write_note("snapshot", snapshot)
        self._cache.write_note("budget", json.dumps(budget))
        self._cache.write_graph_note(snapshot, **budget)

    def _waiting_text(self) -> str:
        since = self._client.unreachable_since
        waited = 0 if since is None else monotonic() - since
        return f"waiting for {self._peer} for {waited:.0f} s"

    @torch.no_grad()
    def _decode(self, rows: dict[str, Embedding]) -> dict[str, NDArray[np.float64]]:
        """Decode and calibrate; embeddings that do not fit the decoder are the peer's fault."""
        if not rows:
            return {}
        try:
            embeddings = torch.from_numpy(np.stack(list(rows.values())))  # (ids, width, depth)
            scores = self._decoder.decode(embeddings, self.run.stage).double().numpy()
        except (RuntimeError, ValueError, IndexError) as error:
            raise RemoteProtocolError(
                f"{self._peer} sent embeddings that do not fit the decoder ({error})"
            ) from None
        if scores.shape != (len(rows), self.run.sizes.num_classes) or not np.isfinite(scores).all():
            raise RemoteProtocolError(
                f"{self._peer} sent embeddings that do not decode to finite scores"
            )
        return dict(zip(rows, self._transform(scores), strict=True))


@contextmanager
def open_peer_predictor(
    config: PartyConfig,
    saved: PartyConfig,
    *,
    progress: Progress = no_progress,
    transform: ScoreTransform | None = None,
    connector: PeerConnector = peer_connector,
) -> Iterator[PeerPredictor]:
    """Open a finished run to predict with one data party.

    Args:
        config: how to connect; its state folder has the cache.
        saved: settings whose state folder has the saved run.
        progress: receives progress reports.
        transform: turns scores into predictions; by default the calibration of the run.
        connector: opens connections to the data party.
    """
    run, own = read_saved_label_run(saved), config.party
    with connector(config, waiting=show_waiting(config, ProgressObserver(progress))) as connect:
        where = f" at {own.connect}" if own.connect else f", listening at {own.listen}"
        client = EmbeddingClient(connect, run, peer=own.peer)
        cache = EmbeddingCache(own.state / "cache")
        try:
            yield PeerPredictor(run, client, cache, peer=f"{own.peer}{where}", transform=transform)
        finally:
            client.close()
            cache.close()
