"""Kept predictions: those of validation nodes, and only where labels are not protected."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from vesper.errors import InputError
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings
from vesper.session.config import load_config
from vesper.session.evaluation_file import EVALUATION_FILE, read_evaluation, write_evaluation

SCORES = np.log(np.array([[0.9, 0.1], [0.2, 0.8]]))


@pytest.fixture
def labels() -> LabelHoldings:
    """Two training, two validation and one test node."""
    return LabelHoldings(
        path=Path("labels.csv"),
        ids=Ids(pa.array(range(5))),
        classes=("no", "yes"),
        labels=np.array([0, 1, 0, 1, 1]),
        splits=np.array([0, 1, 0, 1, 2], dtype=np.int8),
    )


def test_predictions_of_validation_nodes_are_kept(tmp_path: Path, labels: LabelHoldings) -> None:
    write_evaluation(tmp_path, load_config(None, {}), labels, SCORES)
    stored = read_evaluation(tmp_path)
    assert stored is not None
    predicted, own, classes = stored
    assert np.allclose(predicted, [[0.9, 0.1], [0.2, 0.8]])
    assert own.tolist() == [1, 1]
    assert classes == ("no", "yes")


def test_protected_labels_are_not_written(tmp_path: Path, labels: LabelHoldings) -> None:
    write_evaluation(tmp_path, load_config(None, {"label_epsilon": 1.0}), labels, SCORES)
    assert list(tmp_path.iterdir()) == []
    assert read_evaluation(tmp_path) is None


def test_without_a_metric_there_are_no_scores(tmp_path: Path, labels: LabelHoldings) -> None:
    write_evaluation(tmp_path, load_config(None, {}), labels, np.zeros((0, 0)))
    assert read_evaluation(tmp_path) is None


def test_a_damaged_file_says_what_to_do(tmp_path: Path, labels: LabelHoldings) -> None:
    (tmp_path / EVALUATION_FILE).write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match="cannot be read"):
        read_evaluation(tmp_path)
    np.savez(tmp_path / EVALUATION_FILE, predicted=SCORES, labels=[7, 7], classes=["a", "b"])
    with pytest.raises(InputError, match="expected a probability per node and class"):
        read_evaluation(tmp_path)
