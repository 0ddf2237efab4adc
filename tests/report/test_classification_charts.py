"""Confusion matrices and curves show the numbers they are given."""

import re

import numpy as np

from vesper.report.classification_charts import (
    confusion_chart,
    confusion_counts,
    precision_recall_chart,
    roc_chart,
)
from vesper.report.threshold_curves import precision_recall_curve, roc_curve


def test_confusion_matrix() -> None:
    scores = np.eye(3)[[0, 0, 1, 2]]
    chart = confusion_chart(scores, np.array([0, 0, 0, 2]), ("a", "b", "c"))
    assert re.findall(r">(\d+)</text>", chart) == ["67", "0", "0", "100"], "b has no node, no row"


def test_counts_of_a_confusion_matrix() -> None:
    counts = confusion_counts(np.eye(3)[[0, 0, 1, 2]], np.array([0, 0, 0, 2]))
    assert counts.tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_curves_have_an_interval_and_whole_axes() -> None:
    scores, labels = np.arange(40.0), (np.arange(40) % 3 == 0).astype(np.int64)
    for chart in (
        roc_chart(roc_curve(scores, labels)),
        precision_recall_chart(precision_recall_curve(scores, labels), share=0.35),
    ):
        assert chart.count('class="interval"') == 1
        assert chart.count('class="baseline"') == 1
        assert {"0", "100"} <= set(re.findall(r">([^<>]+)</text>", chart))
