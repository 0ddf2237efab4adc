"""Predicted numbers against true ones, a point a node."""

import numpy as np
from numpy.typing import NDArray

from vesper.drawing.svg import HEIGHT, WIDTH, Frame, dot, drawing, line, round_ticks, rows_of, text
from vesper.model.number_objective import mean_ranks

MOST_NODES = 600
"""Points of a chart; of more nodes, so many in equal steps of their labels."""
SMALLEST_RANGE = 1e-6
"""Of an axis, of its largest number: what is nearer together is drawn as one."""
Numbers = NDArray[np.float64]


def numbers_chart(labels: Numbers, predicted: Numbers) -> str:
    """Predicted numbers over true ones."""
    return _chart(labels, predicted, across="true number", up="predicted")


def ranks_chart(labels: Numbers, predicted: Numbers) -> str:
    """Places in both orders, in percent of all nodes."""
    places = (100 * mean_ranks(values) / len(values) for values in (labels, predicted))
    return _chart(*places, across="true place, %", up="predicted place, %")


def _chart(labels: Numbers, predicted: Numbers, *, across: str, up: str) -> str:
    """Both axes have one scale, so that what is predicted too near to the mean is seen."""
    low, high = (float(end([end(labels), end(predicted)])) for end in (np.min, np.max))
    ticks = round_ticks(low, high, least=SMALLEST_RANGE * max(abs(low), abs(high)) or 1.0)
    ends = (ticks[0], ticks[-1])
    frame = Frame(x_range=ends, y_range=ends, top=28, left=56, right=26)
    shapes = rows_of(frame, ticks, form="g")
    shapes.append(line(*(at(end) for end in ends for at in (frame.x, frame.y)), style="baseline"))
    shapes += [
        dot(frame.x(label), frame.y(guess), radius=2, style="point validation cloud")
        for label, guess in _some(labels, predicted)
    ]
    shapes += [text(frame.x(tick), HEIGHT - 24, f"{tick:g}") for tick in ticks]
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, across))
    shapes.append(text(8, 12, up, anchor="start"))
    return drawing(shapes, title=f"{up} over {across}")


def _some(labels: Numbers, predicted: Numbers) -> list[tuple[float, float]]:
    order = np.argsort(labels, kind="stable")
    steps = np.linspace(0, len(order) - 1, min(len(order), MOST_NODES)).astype(np.int64)
    chosen = order[steps]
    return list(zip(labels[chosen].tolist(), predicted[chosen].tolist(), strict=True))
