"""Predictions of nodes: from the cache where they are known, from the data party where not.

ids -> embeddings -> the decoder that validation chose -> calibrated probabilities, or numbers

What is said about nodes that were asked for, by whoever predicts them.
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
from vesper.model.evaluation import Scores
from vesper.model.objective import Label
from vesper.party.state import load_weights, weights_of
from vesper.progress import Progress, no_progress
from vesper.protocol.messages import QueryRefusal, QueryReply
from vesper.serving.embedding_cache import Embedding, EmbeddingCache
from vesper.serving.embedding_client import EmbeddingClient
from vesper.session.metrics import evaluate_predictions, metric_name_of
from vesper.session.observer import ProgressObserver

BudgetFacts = dict[str, float]


@dataclass(frozen=True)
class Predictions:
    """What could be said about the ids that were asked for."""

    snapshot: str | None
    values: dict[str, NDArray[np.float64]]
    """(columns,) by id."""
    cached: frozenset[str]
    """Ids that nothing has crossed for."""
    unknown: frozenset[str]
    """Ids that are no node."""
    budget: BudgetFacts | None
    refusal: str | None
    """Why the others were refused."""
    unreachable: str | None
    """Who did not answer about the others."""


class NodePredictor(Protocol):
    """Predicts nodes, of one data party or of several."""

    run: SavedLabelRun
    columns: list[str]
    metric: str

    def predict(
        self, ids: Sequence[str], *, limit: float | None, progress: Progress = no_progress
    ) -> Predictions:
        """Predict as many of the ids as can be."""

    def refresh_budget(self, *, limit: float | None) -> str | None:
        """Ask about budgets; say why when somebody is away."""

    def budget(self) -> BudgetFacts | None:
        """What was heard last."""

    def evaluate(
        self, found: Predictions, truth: Mapping[str, Label], *, path: Path
    ) -> float | None:
        """Hold predictions against labels; None where some are not predicted yet."""

    @property
    def snapshot(self) -> str | None:
        """Which graph was answered about last."""


def evaluate_known(
    found: Predictions, truth: Mapping[str, Label], run: SavedLabelRun, *, path: Path
) -> float | None:
    """Hold predictions against labels; None where some are not predicted, or none is a node.

    Args:
        found: what was predicted.
        truth: labels by id, from the table at `path`.
        run: knows the classes and the metric.
        path: for messages.

    Raises:
        InputError: labels are none of training, or no metric can be computed on them.
    """
    known = [text for text in truth if text in found.values]
    if not known or len(known) < len(truth.keys() - found.unknown):
        return None
    predicted = np.stack([found.values[text] for text in known])  # (known, columns)
    labels = [truth[text] for text in known]
    return evaluate_predictions(
        predicted, labels, run.calibration, task=run.config.run.task, path=path
    )


IDS_PER_QUERY = 4096
"""Ids in one query."""
FRESH_SECONDS = 10.0
"""Seconds for which the peer need not be asked again whether it still answers about the same."""
QUICK_TIMEOUT = 1.0
"""Seconds to look for the data party when the cache would do without."""

ScoreTransform = Callable[[Scores], Scores]


class PeerPredictor:
    """The label party's side of a finished run.

    Args:
        run: what the label party has kept of it.
        client: asks the data party.
        cache: of its answers.
        peer: who the data party is, for messages.
        transform: what scores of nodes say; by default what the run was calibrated for.
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
        """Predict as many of the ids as can be.

        Args:
            ids: of nodes, in any order.
            limit: seconds to wait for the data party; None to wait for ever.
            progress: is told how many are done.

        Raises:
            PeerError: the data party sent something that it may not send.
            InputError: its settings are others.
        """
        wanted = tuple(dict.fromkeys(ids))
        away = self._refresh_snapshot(wanted, limit)
        for _ in range(2):
            found = self._predict_on_one_graph(wanted, away, limit, progress)
            if found is not None:
                return found
        raise PeerError(f"{self._peer} answers about one graph now and about another then")

    def _predict_on_one_graph(
        self, ids: tuple[str, ...], unreachable: str | None, limit: float | None, progress: Progress
    ) -> Predictions | None:
        """Predict about one graph; None when another is answered about meanwhile."""
        snapshot, cached = self._known(ids)
        values, unknown, refusal = self._decode(cached), set[str](), None
        missing = [text for text in ids if text not in cached]
        for start in range(0, 0 if unreachable else len(missing), IDS_PER_QUERY):
            asked = tuple(missing[start : start + IDS_PER_QUERY])
            try:
                name, reply = self._client.query(asked, limit=limit)
            except PeerLostError as error:
                unreachable = str(error)
                break
            self._note(name, reply)
            if name != snapshot:
                return None
            if isinstance(reply, QueryRefusal):
                refusal = reply.reason
                break
            known = [text for text in asked if text not in set(reply.unknown)]
            values |= self._decode(dict(zip(known, reply.values, strict=True)))
            self._cache.store(name, self.run.stage, known, reply.values)  # it made sense
            unknown |= set(reply.unknown)
            progress("predicting", len(values) + len(unknown), len(ids))
        return Predictions(
            snapshot=snapshot,
            values=values,
            cached=frozenset(cached),
            unknown=frozenset(unknown),
            budget=self.budget(),
            refusal=refusal,
            unreachable=None if unreachable is None else f"{unreachable}; {self._waiting_text()}",
        )

    def refresh_budget(self, *, limit: float | None) -> str | None:
        """Ask the data party about its budget; say why when it is away."""
        try:
            self._note(*self._client.query((), limit=limit))
        except PeerLostError as error:
            return f"{error}; {self._waiting_text()}"
        return None

    def budget(self) -> BudgetFacts | None:
        """What was heard last: epsilon, delta, spent_epsilon, left_epsilon."""
        said = self._cache.read_note("budget")
        return None if said is None else dict(json.loads(said))

    def evaluate(
        self, found: Predictions, truth: Mapping[str, Label], *, path: Path
    ) -> float | None:
        """Hold predictions against labels, and note the metric down beside the graph's budget."""
        test = evaluate_known(found, truth, self.run, path=path)
        if found.snapshot is None or test is None:
            return None
        self._cache.write_graph_note(found.snapshot, test=test)
        return test

    @property
    def snapshot(self) -> str | None:
        """Which graph was answered about last."""
        return self._cache.read_note("snapshot")

    def _refresh_snapshot(self, ids: Sequence[str], limit: float | None) -> str | None:
        """Find out which graph is answered about, unless that was said a moment ago."""
        if monotonic() - self._last_reply_at < FRESH_SECONDS:
            return None
        if len(self._known(ids)[1]) == len(ids):
            limit = (
                QUICK_TIMEOUT if limit is None else min(limit, QUICK_TIMEOUT)
            )  # the cache would do, too
        try:
            self._note(*self._client.query((), limit=limit))
        except PeerLostError as error:
            return str(error)
        return None

    def _known(self, ids: Sequence[str]) -> tuple[str | None, dict[str, Embedding]]:
        snapshot = self.snapshot
        return snapshot, self._cache.find(snapshot, self.run.stage, ids) if snapshot else {}

    def _note(self, snapshot: str, reply: QueryReply) -> None:
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
        """Decode and calibrate; whatever does not fit the decoder is the peer's fault."""
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
            raise RemoteProtocolError(f"{self._peer} sent embeddings that mean nothing")
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
    """Open a finished run to ask one data party.

    Args:
        config: to meet it by; its state has the cache.
        saved: whose state has what is left of the run.
        progress: is told for whom this side waits.
        transform: what scores of nodes say; by default what the run was calibrated for.
        connector: where the two meet.
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
