"""Sheet of small charts with curves over the same steps, as one self-contained SVG file.

    Sheet
      Panel     one chart: a title, curves
        Curve   mean and standard deviation at some steps; `level` draws it across all of them

Standard deviations are drawn as bands, published values as dotted lines with hollow points.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from vesper.drawing.svg import Frame, band, bar, dot, line, path, round_ticks, rows_of, text

WIDTH, HEIGHT, LEGEND = 330.0, 230.0, 22.0
LETTER = 6.6
"""Mean width of a letter in the legend."""

COLORS = (
    "#c1272d",
    "#1f77b4",
    "#2a8a3e",
    "#e08214",
    "#7b3fa0",
    "#17a2b8",
    "#8c564b",
    "#d6619a",
    "#7f7f2a",
    "#444444",
    "#5b7fd6",
)

STYLE = """
text { font: 11px system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; fill: #333; }
.title { font-weight: 600; font-size: 12px; } .grid { stroke: #e3e3e3; } .paper { fill: #fff; }
.curve { fill: none; stroke-width: 1.8; } .level { fill: none; stroke-dasharray: 6 4; }
.thick { stroke-width: 2.6; } .published { fill: none; stroke-dasharray: 1.5 3; }
.hollow { fill: #fff; stroke-width: 1.2; } .band { fill-opacity: 0.16; }
.bars { stroke-width: 10; stroke-opacity: 0.16; } .any { stroke: #555; }
"""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Means and standard deviations by step; NaN for an unknown deviation."""

    name: str
    points: Mapping[float, tuple[float, float]]
    color: int
    is_level: bool = False
    """Whether it is constant over all steps, and drawn as a dashed line across the chart."""
    is_thick: bool = False
    published: Mapping[float, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One chart; bars are drawn behind its curves."""

    title: str
    curves: Sequence[Curve]
    bars: Mapping[float, float] = field(default_factory=dict)
    bars_name: str = ""


def draw_sheet(
    panels: Sequence[Panel],
    *,
    title: str,
    steps: Sequence[float],
    step_name: str,
    columns: int = 3,
    labels: Sequence[float] | None = None,
) -> str:
    """Draw all panels. `steps` are spaced equally; those in `labels` are labelled."""
    curves = {curve.name: curve for panel in panels for curve in panel.curves}
    columns = max(min(columns, len(panels)), 1)
    width = columns * WIDTH
    bars = {panel.bars_name for panel in panels if panel.bars}
    legend, legend_rows = _legend(list(curves.values()), sorted(bars), width)
    head = legend_rows * LEGEND + 10
    height = head + max(-(-len(panels) // columns), 1) * HEIGHT
    colors = sorted({curve.color % len(COLORS) for curve in curves.values()} | {0})
    shapes = [bar(0, 0, width, height, style="paper"), *legend]
    for k, panel in enumerate(panels):
        x, y = k % columns * WIDTH, head + k // columns * HEIGHT
        inner = "".join(_panel(panel, steps, labels or steps, step_name))
        shapes.append(f'<g transform="translate({x:g},{y:g})">{inner}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" aria-label="{escape(title)}">'
        f"<style>{STYLE}{''.join(map(_color, colors))}</style>\n" + "\n".join(shapes) + "</svg>\n"
    )


def _color(k: int) -> str:
    color = COLORS[k]
    return (
        f".c{k} {{ stroke: {color}; }} .dot.c{k}, .band.c{k} {{ fill: {color}; stroke: none; }}\n"
    )


def _class_of(curve: Curve, *words: str) -> str:
    return " ".join([*words, f"c{curve.color % len(COLORS)}"])


def _line_class(curve: Curve) -> str:
    words = ["level" if curve.is_level else "curve", *["thick"] * curve.is_thick]
    return _class_of(curve, *words)


def _legend(curves: Sequence[Curve], bars: Sequence[str], width: float) -> tuple[list[str], int]:
    """Draw names with samples of their lines; also return the number of rows that this takes."""
    shapes, x, row = [], 14.0, 0
    names = [(name, "bars c0") for name in bars]
    names += [(curve.name, _line_class(curve)) for curve in curves]
    if any(curve.published for curve in curves):
        names.append(("published", "published any"))
    for name, style in names:
        needed = 42 + LETTER * len(name)
        if x + needed > width and x > 14:
            x, row = 14.0, row + 1
        y = 16 + row * LEGEND
        shapes.append(line(x, y, x + 24, y, style=style))
        shapes.append(text(x + 30, y + 4, name, anchor="start"))
        x += needed
    return shapes, row + 1


def _panel(
    panel: Panel, steps: Sequence[float], labels: Sequence[float], step_name: str
) -> Iterator[str]:
    heights = [y for curve in panel.curves for y in _heights(curve)] + [*panel.bars.values()]
    if panel.bars:
        heights.append(0.0)
    ticks = round_ticks(min(heights, default=0.0), max(heights, default=1.0))
    frame = Frame(
        x_range=(-0.3, max(len(steps) - 0.7, 0.3)),
        y_range=(ticks[0], ticks[-1]),
        top=30,
        bottom=44,
        width=WIDTH,
        height=HEIGHT,
    )
    yield text(frame.left, 18, panel.title, style="title", anchor="start")
    yield from rows_of(frame, ticks, form="g")
    places = {step: frame.x(k) for k, step in enumerate(steps)}
    for step in labels:
        name = "∞" if math.isinf(step) else f"{step:g}"
        yield text(places[step], HEIGHT - 26, name)
    yield text((frame.left + WIDTH - frame.right) / 2, HEIGHT - 9, step_name)
    wide = 0.8 * (frame.x(1) - frame.x(0))
    for step, value in panel.bars.items():
        y = frame.y(value)
        yield bar(places[step] - wide / 2, y, wide, frame.y(ticks[0]) - y, style="band c0")
    for curve in panel.curves:
        yield from _curve(curve, frame, places)


def _heights(curve: Curve) -> Iterator[float]:
    for mean, deviation in (*curve.points.values(), *curve.published.values()):
        spread = 0.0 if math.isnan(deviation) else deviation
        yield from (mean - spread, mean + spread)


def _curve(curve: Curve, frame: Frame, places: Mapping[float, float]) -> Iterator[str]:
    if curve.is_level:
        ends = (frame.left, frame.width - frame.right)
        points = {x: value for value in [*curve.points.values()][:1] for x in ends}
    else:
        points = {places[step]: value for step, value in sorted(curve.points.items())}
    known = {x: value for x, value in points.items() if not math.isnan(value[1])}
    if len(known) > 1:
        upper = [(x, frame.y(mean + deviation)) for x, (mean, deviation) in known.items()]
        lower = [(x, frame.y(mean - deviation)) for x, (mean, deviation) in known.items()]
        yield band(upper, lower, style=_class_of(curve, "band"))
    others = {places[step]: value[0] for step, value in sorted(curve.published.items())}
    if len(others) > 1:
        yield path(
            [(x, frame.y(y)) for x, y in others.items()], style=_class_of(curve, "published")
        )
    for x, y in others.items():
        yield dot(x, frame.y(y), radius=2.4, style=_class_of(curve, "hollow"))
    line_points = [(x, frame.y(mean)) for x, (mean, _) in points.items()]
    if len(line_points) > 1:
        yield path(line_points, style=_line_class(curve))
    if not curve.is_level:
        for x, y in line_points:
            yield dot(x, y, radius=2.6, style=_class_of(curve, "dot"))
