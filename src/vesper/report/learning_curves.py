"""Learning curves: loss and validation metric by epoch, one stage after another."""

from collections.abc import Sequence

from vesper.drawing.svg import (
    HEIGHT,
    WIDTH,
    Frame,
    dot,
    drawing,
    line,
    path,
    percent_ticks,
    round_ticks,
    rows_of,
    text,
)
from vesper.session.observer import EpochFacts

SMALLEST_LOSS_RANGE = 0.1


def validation_chart(epochs: Sequence[EpochFacts], *, metric: str) -> str:
    """Draw the validation metric of each epoch; points mark the best of the stage so far."""
    values = [facts.validation or 0.0 for facts in epochs]
    ticks = percent_ticks(values)
    return _curve_chart(epochs, values, ticks, has_points=True, title=f"{metric} of each epoch")


def loss_chart(epochs: Sequence[EpochFacts]) -> str:
    """Draw the mean loss of each epoch."""
    values = [facts.loss or 0.0 for facts in epochs]
    ticks = round_ticks(min([0.0, *values]), max(values), least=SMALLEST_LOSS_RANGE)
    return _curve_chart(epochs, values, ticks, has_points=False, title="Loss of each epoch")


def _curve_chart(
    epochs: Sequence[EpochFacts],
    values: Sequence[float],
    ticks: Sequence[float],
    *,
    has_points: bool,
    title: str,
) -> str:
    last = len(epochs) - 1
    frame = Frame(x_range=(0, max(last, 1)), y_range=(ticks[0], ticks[-1]), top=28)
    shapes = rows_of(frame, ticks, form="g")
    for stage in sorted({facts.stage for facts in epochs}):
        own = [k for k, facts in enumerate(epochs) if facts.stage == stage]
        x = frame.x(own[0])
        shapes.append(line(x, frame.top, x, HEIGHT - frame.bottom, style="grid"))
        shapes.append(text(x, frame.top - 8, f"stage {stage}", anchor="start"))
        shapes.append(
            path([(frame.x(k), frame.y(values[k])) for k in own], style="curve validation")
        )
        shapes += [
            dot(frame.x(k), frame.y(values[k]), radius=2.6, style="point validation")
            for k in own
            if len(own) == 1 or (has_points and epochs[k].is_best)
        ]
    for k in sorted({0, last // 2, last}):
        shapes.append(text(frame.x(k), HEIGHT - 24, str(k + 1)))
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, "epoch, all stages"))
    return drawing(shapes, title=title)
