"""Answers about the graph of training are free; a snapshot is charged once; noise is drawn once."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from vesper.graph.labels import open_labels
from vesper.model.metric import evaluate
from vesper.mechanism.noise import NoiseSource
from vesper.privacy.ledger_file import open_to_read
from vesper.privacy.ledger_reader import Entry
from vesper.protocol.messages import Answer, Query, Refusal
from vesper.run.serving.answering import open_answerer
from vesper.run.serving.kept_run import read_asking

if TYPE_CHECKING:
    from tests.run.serving.conftest import Finished, Train

METHODS: list[dict[str, Any]] = [
    {},
    {"hops": 2, "aggregator": "gcn"},
    {"method": "gap", "label_messages": False},
    {"method": "progap", "label_messages": False},
    {"method": "edgerand", "label_messages": False},
    {"method": "mlp"},
]


def entries(ledger: Path) -> list[Entry]:
    reader = open_to_read(ledger)
    found = list(reader.entries())
    reader.close()
    return found


def charges(ledger: Path) -> int:
    return sum(entry.cost > 0 for entry in entries(ledger))


def answered(
    finished: "Finished",
    ids: tuple[str, ...],
    *,
    snapshot: Path | None = None,
    seed: int = 5,
    stage: int | None = None,
) -> Answer | Refusal:
    """Start an answerer, ask it once, and let it go."""
    noise = NoiseSource.for_simulation(seed)
    stage = read_asking(finished.label).stage if stage is None else stage
    with open_answerer(finished.data, snapshot=snapshot, noise=noise) as answerer:
        return answerer.reply(Query(number=1, ids=ids), stage=stage)


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_answers_give_the_metric_that_training_measured(
    train: "Train", settings: dict[str, Any]
) -> None:
    finished = train(**settings)
    labels, rows = open_labels(finished.label.party.folder), []
    rows = labels.rows("test")
    ids = tuple(map(str, labels.ids.take(rows)))
    before = finished.ledger.read_bytes()
    with open_answerer(finished.data) as answerer, finished.asked(answerer) as predictor:
        found = predictor.predict(ids, limit=None)
    scores = np.log(np.stack([found.values[text] for text in ids]))
    result = json.loads((finished.label.party.state / "result" / "result.json").read_text())
    assert evaluate(scores, labels.labels[rows]) == pytest.approx(result["test"], abs=1e-9)
    assert finished.ledger.read_bytes() == before
