"""Predictions with several data parties."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.deployment.connect import peer_connector
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party_with_peers
from vesper.errors import InputError
from vesper.graph.labels import open_labels
from vesper.protocol.inference_turns import QUERY_TABLE
from vesper.protocol.turns import Role
from vesper.serving.embedding_server import open_embedding_server, serve_peer
from vesper.serving.http.service import Service
from vesper.serving.multi_party_predictor import open_predictor
from vesper.session.peer import Link
from vesper.transport.channel import closing_with_reason

if TYPE_CHECKING:
    from tests.fixtures.processes import Several


@contextmanager
def serve_peers(several: "Several", *names: str) -> Iterator[None]:
    """Let these data parties serve one connection each."""
    ready = threading.Barrier(len(names) + 1)

    def serve(name: str) -> None:
        config = several.data(name)
        with ExitStack() as opened:
            opened.callback(ready.abort)  # the others do not wait for one that could not open
            connect = opened.enter_context(peer_connector(config))
            server = opened.enter_context(open_embedding_server(config))
            ready.wait(60)
            with closing_with_reason(connect(60.0)) as channel:
                serve_peer(server, Link(Role.DATA, channel, QUERY_TABLE))

    with ThreadPoolExecutor(len(names)) as pool:
        running = [pool.submit(serve, name) for name in names]
        try:
            ready.wait(60)
        except threading.BrokenBarrierError:
            for each in running:
                if not isinstance(each.exception(), threading.BrokenBarrierError):
                    each.result()  # raises the cause
            raise
        yield
    for each in running:
        each.result()


def train_all(several: "Several") -> float | None:
    """Train with all three parties; return the metric on test nodes."""
    several.write_multi_party_config(own="")
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(run_data_party, several.data(name)) for name in several.data_files]
        result = run_label_party_with_peers(several.table())
        for other in others:
            other.result()
    return result.test


def test_predictions_give_the_metric_that_training_measured(several: "Several") -> None:
    test = train_all(several)
    labels = open_labels(several.root / "bank" / "label")
    rows = labels.rows("test")
    ids = [str(text) for text in labels.ids.take(rows)]
    truth = {text: labels.classes[labels.labels[row]] for text, row in zip(ids, rows, strict=True)}
    with serve_peers(several, "platform", "telecom"), open_predictor(several.table()) as predictor:
        predictions = predictor.predict([*ids, "nobody"], limit=30.0)
        assert predictions.unknown == {"nobody"}
        assert set(predictions.values) == set(ids)
        np.testing.assert_allclose([row.sum() for row in predictions.values.values()], 1.0)
        measured = predictor.evaluate(predictions, truth, path=several.label_file)
        assert measured == pytest.approx(test)
        nobody = predictor.predict(["nobody"], limit=30.0)
        assert predictor.evaluate(nobody, {"nobody": 0}, path=several.label_file) is None
        assert predictions.budget is not None
        assert predictions.budget["epsilon"] == 4.0
        service = Service(predictor, peer="platform and telecom", failed=lambda error: None)
        request = json.dumps({"ids": [int(ids[0])]}).encode()
        response = service.respond("POST", "/predict", "application/json", request)
        probabilities = json.loads(response.content)["predictions"][0]["probabilities"]
        np.testing.assert_allclose(list(probabilities.values()), predictions.values[ids[0]])
    with open_predictor(several.table()) as predictor:  # only the cache is left
        again = predictor.predict(ids, limit=0.2)
        assert again.cached == set(ids)
        assert all(np.array_equal(again.values[text], predictions.values[text]) for text in ids)
        assert again.unreachable is not None


def test_before_training_there_is_nothing_to_query(several: "Several") -> None:
    several.write_multi_party_config(own="")
    with (
        pytest.raises(InputError, match="expected a finished run, found none"),
        open_predictor(several.table()),
    ):
        pass
