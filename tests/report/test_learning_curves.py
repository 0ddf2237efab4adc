"""Learning curves: every epoch is a point on the line of its stage, and no number is hidden."""

import re

from vesper.report.learning_curves import loss_chart, validation_chart
from vesper.session.observer import EpochFacts

EPOCHS = [
    EpochFacts(stage=stage, epoch=k, is_best=k == 1, loss=loss, validation=60.0 + k)
    for stage in (0, 1)
    for k, loss in enumerate((0.7, 0.6, 0.5))
]


def lines_of(chart: str) -> list[int]:
    """How many points each line has."""
    return [len(points.split()) for points in re.findall(r'<polyline points="([^"]*)"', chart)]


def test_a_line_for_each_stage() -> None:
    for chart in (validation_chart(EPOCHS, metric="Accuracy"), loss_chart(EPOCHS)):
        assert lines_of(chart) == [3, 3]
        assert "stage 0" in chart
        assert "stage 1" in chart


def test_the_best_epochs_have_points() -> None:
    assert validation_chart(EPOCHS, metric="Accuracy").count("<circle") == 2
    assert loss_chart(EPOCHS).count("<circle") == 0


def test_a_single_epoch_is_seen() -> None:
    chart = loss_chart(EPOCHS[:1])
    assert chart.count("<circle") == 1
    assert "nan" not in chart


def test_the_axis_of_losses_begins_at_zero() -> None:
    ticks = re.findall(r">(0|0\.\d+)</text>", loss_chart(EPOCHS[:3]))
    assert ticks == ["0", "0.2", "0.4", "0.6", "0.8"]
