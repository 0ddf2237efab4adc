"""Predictions at the label party: cached ones send nothing; what the peer sends is checked."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from vesper.deployment.saved_run import SavedLabelRun, read_saved_label_run
from vesper.errors import InputError, LocalProtocolError, PeerError, PeerLostError
from vesper.protocol.codec import encode
from vesper.protocol.fields import digest_of_ids
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.messages import (
    DataHello,
    EmbeddingClientHello,
    EmbeddingQuery,
    EmbeddingServerHello,
    Message,
    QueryAnswer,
)
from vesper.protocol.turns import Role
from vesper.serving.embedding_cache import EmbeddingCache
from vesper.serving.embedding_client import EmbeddingClient
from vesper.serving.predictor import PeerPredictor
from vesper.session.peer import PROTOCOL_VERSION, Link
from vesper.transport.channel import Channel
from vesper.transport.memory import memory_pair

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun, Train


def no_peer(limit: float | None) -> Channel:
    raise PeerLostError("platform is not there")


def predictor_of(
    finished: "FinishedRun", connect: Callable[[float | None], Channel] = no_peer
) -> PeerPredictor:
    run = read_saved_label_run(finished.label)
    cache = EmbeddingCache(finished.label.party.state / "cache")
    return PeerPredictor(
        run, EmbeddingClient(connect, run, peer="platform"), cache, peer="platform"
    )


def test_class_probabilities_come_from_the_cache_the_second_time(
    finished: "FinishedRun",
) -> None:
    ids = ["u05", "u01", "nobody", "u05"]
    with finished.open_predictor() as predictor:
        first = predictor.predict(ids, limit=None)
        again = predictor.predict(ids, limit=None)
    assert first.cached == frozenset()
    assert first.unknown == again.unknown == {"nobody"}
    assert again.cached == {"u05", "u01"}
    for text in ("u05", "u01"):
        assert first.values[text].sum() == pytest.approx(1.0)
        assert np.allclose(first.values[text], again.values[text])
    assert first.budget is not None
    assert first.budget["epsilon"] == 8.0
    unreachable = predictor_of(finished).predict(["u05", "u02"], limit=0.0)
    assert unreachable.cached == {"u05"}
    assert set(unreachable.values) == {"u05"}
    assert unreachable.unreachable is not None
    assert "waiting for platform for" in unreachable.unreachable


def test_a_cache_that_is_damaged_while_serving_costs_a_query_and_no_prediction(
    finished: "FinishedRun",
) -> None:
    path = finished.label.party.state / "cache" / "embeddings.sqlite"
    changed = "UPDATE embeddings SET content = zeroblob(length(content))"
    with finished.open_predictor() as predictor:
        first = predictor.predict(["u05", "u01"], limit=None)
        for damage in (changed, "UPDATE notes SET value = '{'", "DROP TABLE embeddings"):
            with closing(sqlite3.connect(path)) as database, database:
                database.execute(damage)
            again = predictor.predict(["u05", "u01"], limit=None)
            assert not again.cached or damage.startswith("UPDATE notes")
            assert again.budget == first.budget
            for text in ("u05", "u01"):
                assert np.allclose(again.values[text], first.values[text])


def test_numbers_are_predicted_as_a_score(train: "Train") -> None:
    finished = train("numbers")
    with finished.open_predictor() as predictor:
        predictions = predictor.predict(["u05"], limit=None)
    assert predictor.columns == ["score"]
    assert -1 <= float(predictions.values["u05"][0]) <= 1


def test_a_new_snapshot_is_not_answered_from_the_cache_of_the_old_graph(
    finished: "FinishedRun",
) -> None:
    with finished.open_predictor() as predictor:
        old = predictor.predict(["u20"], limit=None)
    with finished.open_predictor(snapshot=finished.snapshot()) as predictor:
        new = predictor.predict(["u20"], limit=None)
        again = predictor.predict(["u20"], limit=None)
    assert new.snapshot != old.snapshot
    assert new.cached == frozenset()
    assert again.cached == {"u20"}
    with finished.open_predictor() as predictor:
        assert predictor.predict(["u20"], limit=None).cached == {"u20"}


def test_another_graph_behind_the_same_predictor_is_noticed(finished: "FinishedRun") -> None:
    """The data party restarts with a snapshot while the label party keeps running."""
    with finished.serve() as first, finished.serve(snapshot=finished.snapshot()) as second:
        current = [first]
        predictor = predictor_of(finished, lambda limit: current[0](limit))
        old = predictor.predict(["u20"], limit=None)
        current[0] = second
        predictor._client.close()
        new = predictor.predict(["u20", "v1"], limit=None)
        predictor._client.close()
    assert new.snapshot != old.snapshot
    assert set(new.values) == {"u20", "v1"}
    assert new.cached == frozenset()


class ScriptedServer:
    """A data party that sends prescribed messages."""

    def __init__(self, run: SavedLabelRun) -> None:
        self.hello = EmbeddingServerHello(PROTOCOL_VERSION, run.contract, run.session, "0" * 32)
        self.reply: Callable[[EmbeddingQuery], Message] = fitting_answer

    def __call__(self, limit: float | None) -> Channel:
        from threading import Thread

        ours, theirs = memory_pair(patience=10)
        Thread(target=self._run, args=(theirs,), daemon=True).start()
        return ours

    def _run(self, channel: Any) -> None:
        link = Link(Role.DATA, channel, QUERY_TABLE)
        try:
            link.send(self.hello)
            link.expect(EmbeddingClientHello)
            while isinstance(query := link.receive(), EmbeddingQuery):
                channel.send(encode(self.reply(query)))
                link._turns.record_sent(fitting_answer(query))
        except (PeerError, LocalProtocolError):
            channel.close()


def fitting_answer(query: EmbeddingQuery, **other: Any) -> QueryAnswer:
    facts: dict[str, Any] = {
        "number": query.number,
        "epsilon": 8.0,
        "delta": 1e-5,
        "spent_epsilon": 8.0,
        "left_epsilon": 0.0,
        "ids_digest": digest_of_ids(query.ids),
        "unknown": (),
        "values": np.ones((len(query.ids), 2, 3), dtype=np.float32),
    }
    return QueryAnswer(**{**facts, **other})


def test_an_answer_that_fits_is_accepted(finished: "FinishedRun") -> None:
    server = ScriptedServer(read_saved_label_run(finished.label))
    assert set(predictor_of(finished, server).predict(["a"], limit=None).values) == {"a"}


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"number": 99}, "another query"),
        ({"ids_digest": b"x" * 16}, "other ids"),
        ({"unknown": ("elsewhere",)}, "other ids"),
        ({"values": np.ones((1, 2, 3), dtype=np.float32)}, "other ids"),
        ({"values": np.ones((2,), dtype=np.float32)}, "other ids"),
        ({"values": np.ones((2, 5, 1), dtype=np.float32)}, "do not fit the decoder"),
    ],
    ids=str,
)
def test_answers_that_do_not_fit_are_the_peers_fault_and_not_cached(
    finished: "FinishedRun", wrong: dict[str, Any], problem: str
) -> None:
    server = ScriptedServer(read_saved_label_run(finished.label))
    server.reply = lambda query: fitting_answer(query, **(wrong if query.ids else {}))
    with pytest.raises(PeerError, match=problem):
        predictor_of(finished, server).predict(["a", "b"], limit=None)
    assert predictor_of(finished).predict(["a", "b"], limit=0.0).values == {}


def test_scores_that_are_no_numbers_are_not_predictions(finished: "FinishedRun") -> None:
    class Broken:
        def decode(self, embeddings: torch.Tensor, stage: int) -> torch.Tensor:
            return torch.full((len(embeddings), 2), float("nan"))

    predictor = predictor_of(finished, ScriptedServer(read_saved_label_run(finished.label)))
    broken: Any = Broken()
    predictor._decoder = broken
    with pytest.raises(PeerError, match="do not decode to finite scores"):
        predictor.predict(["a"], limit=None)


@pytest.mark.parametrize(
    ("wrong", "error", "problem"),
    [
        ({"version": 1}, PeerError, "version"),
        ({"contract": '{"run":{"seed":9}}'}, InputError, "differ"),
        ({"session": "other"}, PeerError, "another run"),
        ({"snapshot": "../../etc"}, PeerError, "name of a snapshot"),
    ],
)
def test_a_hello_that_does_not_fit_is_refused(
    finished: "FinishedRun", wrong: dict[str, Any], error: type[Exception], problem: str
) -> None:
    server = ScriptedServer(read_saved_label_run(finished.label))
    server.hello = EmbeddingServerHello(**{**vars(server.hello), **wrong})
    with pytest.raises(error, match=problem):
        predictor_of(finished, server).predict(["a"], limit=None)


def test_a_data_party_that_trains_is_recognised(finished: "FinishedRun") -> None:
    def training(limit: float | None) -> Channel:
        ours, theirs = memory_pair(patience=10)
        theirs.send(encode(DataHello(PROTOCOL_VERSION, "", 1, 1)))
        return ours

    with pytest.raises(PeerError, match="--answer"):
        predictor_of(finished, training).predict(["a"], limit=None)
