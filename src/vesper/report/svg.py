"""Charts as inline SVG: a frame with axes, and shapes in it. Colours come from the page's style."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 420, 270
"""Units of the drawing; small, so that letters stay readable on a phone."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A plot area, from values to places in the drawing."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: float = 46
    right: float = 12
    top: float = 14
    bottom: float = 42

    def x(self, value: float) -> float:
        """Place of a value on the horizontal axis."""
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (WIDTH - self.left - self.right)

    def y(self, value: float) -> float:
        """Place of a value on the vertical axis."""
        low, high = self.y_range
        inner = HEIGHT - self.top - self.bottom
        return HEIGHT - self.bottom - (value - low) / (high - low) * inner


def drawing(shapes: Sequence[str], *, title: str) -> str:
    """Wrap shapes; `title` is what a screen reader says."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(shapes)}</svg>"
    )


def text(x: float, y: float, words: str, *, style: str = "tick", anchor: str = "middle") -> str:
    """A label."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, *, style: str) -> str:
    """A straight line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def path(points: Sequence[tuple[float, float]], *, style: str) -> str:
    """A line through points."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" class="{style}"/>'


def dot(x: float, y: float, *, radius: float, style: str) -> str:
    """A point."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" class="{style}"/>'


def rows_of(frame: Frame, ticks: Sequence[float], *, form: str) -> list[str]:
    """Horizontal lines with their values on the left."""
    return [
        shape
        for tick in ticks
        for shape in (
            line(frame.left, frame.y(tick), WIDTH - frame.right, frame.y(tick), style="grid"),
            text(frame.left - 6, frame.y(tick) + 4, format(tick, form), anchor="end"),
        )
    ]


def round_ticks(low: float, high: float) -> list[float]:
    """Three to seven round values that enclose a range.

    >>> round_ticks(61.2, 84.9)
    [60.0, 65.0, 70.0, 75.0, 80.0, 85.0]
    >>> round_ticks(70.0, 70.0)
    [69.5, 70.0, 70.5]
    """
    spread = max(high - low, 1.0)
    step = next(s for s in (0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if spread / s <= 5 or s == 20.0)
    first, last = low // step, -(-high // step)
    while last - first < 2:
        first, last = (first - 1, last) if step * first == low else (first, last + 1)
    return [step * k for k in range(int(first), int(last) + 1)]
