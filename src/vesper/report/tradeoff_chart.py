"""Epsilon-utility curve: the metric of several runs over the epsilon that each of them states.

    one curve per method and guarantee    mean of its runs at each epsilon, and a point per run
    dashed line                           runs without an epsilon: no edge is read, or no privacy

Epsilon has a logarithmic axis, and the metric the whole axis from 0 to 100 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from vesper.drawing.svg import (
    HEIGHT,
    WIDTH,
    Frame,
    dot,
    drawing,
    line,
    path,
    percent_ticks,
    rows_of,
    text,
)
from vesper.report.contents import metric_label

SERIES = 6
"""Colours of curves in the style sheet; further curves use them again."""
MOST_LABELS = 7
"""Most values of epsilon that are written below the axis."""


@dataclass(frozen=True, kw_only=True)
class Tradeoff:
    """What one run reached, and for which epsilon."""

    method: str
    metric: str
    split: str
    """`test` or `validation`."""
    guarantee: str
    """In a word or two, as in tables."""
    epsilon: float | None
    """None, or 0 where no edge is read, has no place on the axis."""
    value: float
    data: str = ""
    """Name of the data, where it is known; runs on different data share no curve."""

    @property
    def has_place(self) -> bool:
        """Whether the run has an epsilon to be drawn at."""
        return self.epsilon is not None and self.epsilon > 0

    @property
    def series(self) -> str:
        """The name of the curve that it belongs to."""
        on_data = f", {self.data}" if self.data else ""
        return f"{self.method}, {self.guarantee}{on_data}"


def tradeoff_section(points: Sequence[Tradeoff]) -> str:
    """Render a chart per metric, as HTML; empty where no two runs can be compared."""
    kinds = sorted({(point.metric, point.split) for point in points})
    groups = [
        _with_distinct_data([p for p in points if (p.metric, p.split) == kind]) for kind in kinds
    ]
    return "".join(
        _section(group)
        for group in groups
        if len(group) > 1 and any(point.has_place for point in group)
    )


def _with_distinct_data(points: Sequence[Tradeoff]) -> list[Tradeoff]:
    """Leave the name of the data out where it is the same, or unknown, for all."""
    differ = len({point.data for point in points if point.data}) > 1
    return [point if differ else replace(point, data="") for point in points]


def _section(points: Sequence[Tradeoff]) -> str:
    names = sorted({point.series for point in points})
    keys = " ".join(
        f'<span class="item"><i class="key s{k % SERIES}'
        f'{"" if _has_place(points, name) else " level"}"></i>{escape(name)}</span>'
        for k, name in enumerate(names)
    )
    label, split = metric_label(points[0].metric), points[0].split
    return (
        f"<section><h2>Epsilon and utility</h2>{tradeoff_chart(points)}"
        f'<p class="note">{keys}</p><p class="note">{escape(label)} on {split} nodes, in percent; '
        "each point is a run. A smaller epsilon protects better. Runs on different data, and "
        "epsilons that are claimed instead of certified, are not comparable.</p></section>"
    )


def _has_place(points: Sequence[Tradeoff], series: str) -> bool:
    return any(point.has_place for point in points if point.series == series)


def tradeoff_chart(points: Sequence[Tradeoff]) -> str:
    """Draw one curve per method and guarantee; at least one point needs an epsilon."""
    epsilons = sorted({p.epsilon for p in points if p.epsilon is not None and p.has_place})
    low, high = math.log2(epsilons[0]), math.log2(epsilons[-1])
    ticks = percent_ticks(point.value for point in points)
    frame = Frame(x_range=(low - 0.4, high + 0.4), y_range=(ticks[0], ticks[-1]))
    shapes = rows_of(frame, ticks, form="g")
    for k, name in enumerate(sorted({point.series for point in points})):
        own = [point for point in points if point.series == name]
        shapes += _curve([p for p in own if p.has_place], frame, style=f"s{k % SERIES}")
        for point in own:
            if not point.has_place:
                y = frame.y(point.value)
                style = f"level s{k % SERIES}"
                shapes.append(line(frame.left, y, WIDTH - frame.right, y, style=style))
    step = -(-len(epsilons) // MOST_LABELS)
    shapes += [
        text(frame.x(math.log2(epsilon)), HEIGHT - 24, f"{epsilon:g}")
        for epsilon in epsilons[::step]
    ]
    shapes.append(text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 6, "epsilon"))
    return drawing(shapes, title="Metric of each run over its epsilon")


def _curve(points: Sequence[Tradeoff], frame: Frame, *, style: str) -> list[str]:
    values: dict[float, list[float]] = {}
    for point in points:
        if point.epsilon is not None:
            values.setdefault(point.epsilon, []).append(point.value)
    places = {epsilon: frame.x(math.log2(epsilon)) for epsilon in values}
    means = [(places[each], frame.y(sum(v) / len(v))) for each, v in sorted(values.items())]
    shapes = [path(means, style=f"curve {style}")] if len(means) > 1 else []
    return shapes + [
        dot(places[epsilon], frame.y(value), radius=3.5, style=f"point {style}")
        for epsilon, each in values.items()
        for value in each
    ]
