"""Predictions of a model of several data parties."""

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
    """These data parties answer one conversation each."""
    ready = threading.Barrier(len(names) + 1)

    def answer(name: str) -> None:
        config = several.data(name)
        with ExitStack() as opened:
            opened.callback(ready.abort)  # nobody waits for one that could not open
            connect = opened.enter_context(peer_connector(config))
            server = opened.enter_context(open_embedding_server(config))
            ready.wait(60)
            with closing_with_reason(connect(60.0)) as channel:
                serve_peer(server, Link(Role.DATA, channel, QUERY_TABLE))

    with ThreadPoolExecutor(len(names)) as pool:
        running = [pool.submit(answer, name) for name in names]
        try:
            ready.wait(60)
        except threading.BrokenBarrierError:
            for each in running:
                if not isinstance(each.exception(), threading.BrokenBarrierError):
                    each.result()  # says why
            raise
        yield
    for each in running:
        each.result()


def trained(several: "Several") -> float | None:
    """Train with all three; give the metric on test nodes."""
    several.write_multi_party_config(own="")
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(run_data_party, several.data(name)) for name in several.data_files]
        result = run_label_party_with_peers(several.table())
        for other in others:
            other.result()
    return result.test


def test_predictions_are_those_that_were_measured(several: "Several") -> None:
    test = trained(several)
    labels = open_labels(several.root / "bank" / "label")
    rows = labels.rows("test")
    ids = [str(text) for text in labels.ids.take(rows)]
    truth = {text: labels.classes[labels.labels[row]] for text, row in zip(ids, rows, strict=True)}
    with serve_peers(several, "platform", "telecom"), open_predictor(several.table()) as predictor:
        found = predictor.predict([*ids, "nobody"], limit=30.0)
        assert found.unknown == {"nobody"}
        assert set(found.values) == set(ids)
        np.testing.assert_allclose([row.sum() for row in found.values.values()], 1.0)
        measured = predictor.evaluate(found, truth, path=several.label_file)
        assert measured == pytest.approx(test)
        nobody = predictor.predict(["nobody"], limit=30.0)
        assert predictor.evaluate(nobody, {"nobody": 0}, path=several.label_file) is None
        assert found.budget is not None
        assert found.budget["epsilon"] == 4.0
        service = Service(predictor, peer="platform and telecom", failed=lambda error: None)
        asked = json.dumps({"ids": [int(ids[0])]}).encode()
        reply = service.respond("POST", "/predict", "application/json", asked)
        said = json.loads(reply.content)["predictions"][0]["probabilities"]
        np.testing.assert_allclose(list(said.values()), found.values[ids[0]])
    with open_predictor(several.table()) as predictor:  # nobody answers but the cache
        again = predictor.predict(ids, limit=0.2)
        assert again.cached == set(ids)
        assert all(np.array_equal(again.values[text], found.values[text]) for text in ids)
        assert again.unreachable is not None


def test_before_training_there_is_nothing_to_ask(several: "Several") -> None:
    several.write_multi_party_config(own="")
    with (
        pytest.raises(InputError, match="expected a finished run, found none"),
        open_predictor(several.table()),
    ):
        pass
