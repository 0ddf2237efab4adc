"""SVG charts: a frame with axes, and shapes. Colours come from the surrounding style sheet."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 270
"""Size of a drawing in its own units; small, so that text stays readable on a phone."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Plot area that maps values to positions in the drawing."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 46
    right: float = 12
    top: float = 14
    bottom: float = 42
    width: float = WIDTH
    height: float = HEIGHT

    def x(self, value: float) -> float:
        """Return the position of a value on the horizontal axis."""
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        """Return the position of a value on the vertical axis."""
        low, high = self.y_range
        inner = self.height - self.top - self.bottom
        return self.height - self.bottom - (value - low) / (high - low) * inner


def drawing(shapes: Sequence[str], *, title: str, height: float = HEIGHT) -> str:
    """Wrap shapes in an SVG element; `title` is its label for screen readers."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(shapes)}</svg>"
    )


def text(x: float, y: float, words: str, *, style: str = "tick", anchor: str = "middle") -> str:
    """Draw a label."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, *, style: str) -> str:
    """Draw a straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def path(points: Sequence[tuple[float, float]], *, style: str) -> str:
    """Draw a line through points."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" class="{style}"/>'


def band(
    upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], *, style: str
) -> str:
    """Draw the area between two lines."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*upper, *reversed(lower)))
    return f'<polygon points="{joined}" class="{style}"/>'


def bar(x: float, y: float, width: float, height: float, *, style: str) -> str:
    """Draw a rectangle, given by its upper left corner."""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{style}"/>'
    )


def dot(x: float, y: float, *, radius: float, style: str) -> str:
    """Draw a point."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{style}"/>'


def gauge(spent: float, limit: float, *, name: str) -> str:
    """Draw how much of a limit is spent, as a bar of the full width above both numbers."""
    share = min(max(spent / limit, 0.0), 1.0)
    bar = '<rect width="{width:.2f}%" height="14" rx="7" class="{style}"/>'
    shapes = bar.format(width=100.0, style="track")
    if share > 0:
        shapes += bar.format(width=100 * share, style="spent")
    title = escape(f"{name} {spent:.3g} of {limit:g} is spent")
    return (
        f'<svg class="gauge" width="100%" height="14" role="img" aria-label="{title}">{shapes}'
        f'</svg><p class="ends"><span>{escape(name)} {spent:.3g} spent</span>'
        f"<span>of {limit:g}</span></p>"
    )


def rows_of(frame: Frame, ticks: Sequence[float], *, form: str) -> list[str]:
    """Draw horizontal grid lines with their values on the left."""
    return [
        shape
        for tick in ticks
        for shape in (
            line(frame.left, frame.y(tick), frame.width - frame.right, frame.y(tick), style="grid"),
            text(frame.left - 6, frame.y(tick) + 4, format(tick, form), anchor="end"),
        )
    ]


def round_ticks(low: float, high: float, *, least: float = 1.0) -> list[float]:
    """Return three to seven round values that enclose a range of at least the length `least`.

    >>> round_ticks(61.2, 84.9)
    [60.0, 65.0, 70.0, 75.0, 80.0, 85.0]
    >>> round_ticks(70.0, 70.0)
    [69.5, 70.0, 70.5]
    >>> round_ticks(0.31, 0.52, least=0.1)
    [0.3, 0.35, 0.4, 0.45, 0.5, 0.55]
    >>> round_ticks(-3e16, 9.1e16)
    [-5e+16, 0.0, 5e+16, 1e+17]
    """
    step = _round_step(max((high - low) / 5, least / 2))
    first, last = math.floor(low / step + _ALMOST), math.ceil(high / step - _ALMOST)
    while last - first < 2:
        touches = math.isclose(step * first, low)
        first, last = (first - 1, last) if touches else (first, last + 1)
    return [float(f"{step * k:.12g}") for k in range(first, last + 1)]


def percent_ticks(values: Iterable[float]) -> list[float]:
    """Return ticks of a whole axis in percent, from 0 to 100; below 0 where values are.

    An axis that starts above 0 makes small differences look large.

    >>> percent_ticks([61.2, 84.9])
    [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    >>> percent_ticks([-30.0, 12.0])
    [-50.0, 0.0, 50.0, 100.0]
    """
    known = [value for value in values if math.isfinite(value)]
    return round_ticks(min([0.0, *known]), max([100.0, *known]))


def _round_step(least: float) -> float:
    """Return the smallest of .., 1, 2, 5, 10, 20, 50, .. that is at least `least`."""
    power = math.floor(math.log10(least))
    steps = [float(f"{digit}e{power}") for digit in (1, 2, 5, 10)]
    return next((step for step in steps if step >= least * (1 - _ALMOST)), steps[-1])


_ALMOST = 1e-9
