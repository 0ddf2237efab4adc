"""Predictions of a model of several data parties."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.deployment.connect import meeting_place
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_table
from vesper.errors import InputError
from vesper.graph.labels import open_labels
from vesper.protocol.inference_turns import ASKING
from vesper.protocol.turns import Role
from vesper.serving.embedding_server import converse, open_answerer
from vesper.serving.http.service import Service
from vesper.serving.multi_party_predictor import open_predictors
from vesper.session.peer import Link
from vesper.transport.channel import closing_in_words

if TYPE_CHECKING:
    from tests.fixtures.processes import Several


@contextmanager
def answering(several: "Several", *names: str) -> Iterator[None]:
    """These data parties answer one conversation each."""
    ready = threading.Barrier(len(names) + 1)

    def answer(name: str) -> None:
        config = several.data(name)
        with ExitStack() as opened:
            opened.callback(ready.abort)  # nobody waits for one that could not open
            connect = opened.enter_context(meeting_place(config))
            answerer = opened.enter_context(open_answerer(config))
            ready.wait(60)
            with closing_in_words(connect(60.0)) as channel:
                converse(answerer, Link(Role.DATA, channel, ASKING))

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
    several.sit_down(own="")
    with ThreadPoolExecutor(3) as pool:
        others = [pool.submit(run_data_party, several.data(name)) for name in several.data_files]
        result = run_label_table(several.table())
        for other in others:
            other.result()
    return result.test


def test_predictions_are_those_that_were_measured(several: "Several") -> None:
    test = trained(several)
    labels = open_labels(several.root / "bank" / "label")
    rows = labels.rows("test")
    ids = [str(text) for text in labels.ids.take(rows)]
    truth = {text: labels.classes[labels.labels[row]] for text, row in zip(ids, rows, strict=True)}
    with answering(several, "platform", "telecom"), open_predictors(several.table()) as predictor:
        found = predictor.predict([*ids, "nobody"], limit=30.0)
        assert found.unknown == {"nobody"}
        assert set(found.values) == set(ids)
        np.testing.assert_allclose([row.sum() for row in found.values.values()], 1.0)
        measured = predictor.judge(found, truth, path=several.label_file)
        assert measured == pytest.approx(test)
        nobody = predictor.predict(["nobody"], limit=30.0)
        assert predictor.judge(nobody, {"nobody": 0}, path=several.label_file) is None
        assert found.budget is not None
        assert found.budget["epsilon"] == 4.0
        service = Service(predictor, peer="platform and telecom", failed=lambda error: None)
        asked = json.dumps({"ids": [int(ids[0])]}).encode()
        reply = service.respond("POST", "/predict", "application/json", asked)
        said = json.loads(reply.content)["predictions"][0]["probabilities"]
        np.testing.assert_allclose(list(said.values()), found.values[ids[0]])
    with open_predictors(several.table()) as predictor:  # nobody answers but the cache
        again = predictor.predict(ids, limit=0.2)
        assert again.cached == set(ids)
        assert all(np.array_equal(again.values[text], found.values[text]) for text in ids)
        assert again.away is not None


def test_before_training_there_is_nothing_to_ask(several: "Several") -> None:
    several.sit_down(own="")
    with (
        pytest.raises(InputError, match="expected a finished run, found none"),
        open_predictors(several.table()),
    ):
        pass
