"""The same numbers as a picture: metric against epsilon, one small chart a data set."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.utility_cells import EPSILONS, Line
from benchmarks.utility_table import Scores, score_at, scores_of

from vesper.method.registry import METHODS

COLUMNS = 2
WIDTH, HEIGHT = 440, 260
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 34, 40
LEGEND = 26
COLORS = (
    "#d62728",
    "#ff9f43",
    "#c9a227",
    "#555555",
    "#1f77b4",
    "#17becf",
    "#8c8c5a",
    "#2ca02c",
    "#9467bd",
    "#8c564b",
    "#e377c2",
)
DASHED = {"mlp", "gin", "gcn"}
"""Without noise at any epsilon: a level to compare with, not a curve."""


def drawn(lines: Sequence[Line]) -> str:
    """Draw every data set that has a score."""
    scores = scores_of(lines)
    datasets = list(dict.fromkeys(line.dataset for line in lines if line.test is not None))
    methods = [name for name in METHODS if any(key[1] == name for key in scores)]
    legend_rows = -(-len(methods) // 6)
    rows = -(-len(datasets) // COLUMNS)
    width, height = COLUMNS * WIDTH, LEGEND * legend_rows + 8 + max(rows, 1) * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_legend(methods),
    ]
    for k, dataset in enumerate(datasets):
        x = k % COLUMNS * WIDTH
        y = LEGEND * legend_rows + 8 + k // COLUMNS * HEIGHT
        metric = next(one.metric for one in lines if one.dataset == dataset and one.metric)
        parts.append(f'<g transform="translate({x},{y})">')
        parts += _chart(scores, dataset, f"{dataset} ({metric}, %)", methods)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def color_of(method: str) -> str:
    """The same color for a method in every chart."""
    return COLORS[list(METHODS).index(method) % len(COLORS)]


def _legend(methods: Sequence[str]) -> Iterator[str]:
    for k, method in enumerate(methods):
        x, y = 16 + k % 6 * 142, 18 + k // 6 * LEGEND
        yield _line([(x, y), (x + 24, y)], method)
        yield f'<text x="{x + 30}" y="{y + 4}">{escape(method)}</text>'


def _chart(scores: Scores, dataset: str, title: str, methods: Sequence[str]) -> Iterator[str]:
    means = [score.mean for (name, _, _), score in scores.items() if name == dataset]
    step = _step(max(means) - min(means))
    low = math.floor(min(means) / step) * step
    high = max(math.ceil(max(means) / step) * step, low + step)

    def at(k: int, mean: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - RIGHT) * k / (len(EPSILONS) - 1)
        return x, TOP + (HEIGHT - TOP - BOTTOM) * (high - mean) / (high - low)

    yield f'<text x="{LEFT}" y="20" font-weight="bold">{escape(title)}</text>'
    for tick in range(round((high - low) / step) + 1):
        value = low + tick * step
        x, y = at(0, value)
        yield f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
        yield f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    for k, epsilon in enumerate(EPSILONS):
        x, y = at(k, low)
        name = "∞" if math.isinf(epsilon) else f"{epsilon:g}"
        yield f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{name}</text>'
    x, y = at(len(EPSILONS) // 2, low)
    yield f'<text x="{x:.1f}" y="{y + 32:.1f}" text-anchor="middle">epsilon</text>'
    for method in methods:
        is_level = method in DASHED
        found = [
            score_at(scores, dataset, method, math.inf if is_level else epsilon)
            for epsilon in EPSILONS
        ]
        points = [at(k, score.mean) for k, score in enumerate(found) if score]
        if len(points) > 1:
            yield _line(points, method)
        if not is_level:
            yield from _dots(points, method)


def _step(spread: float) -> float:
    """A round distance of ticks: about five of them."""
    return next((step for step in (0.5, 1, 2, 5, 10, 20) if spread <= 5 * step), 25)


def _line(points: Sequence[tuple[float, float]], method: str) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="5 3"' if method in DASHED else ""
    thick = 2.5 if method == "vesper" else 1.3
    stroke = f'stroke="{color_of(method)}" stroke-width="{thick}"{dashes}'
    return f'<path d="M{path}" fill="none" {stroke}/>'


def _dots(points: Sequence[tuple[float, float]], method: str) -> Iterator[str]:
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{color_of(method)}"/>'
