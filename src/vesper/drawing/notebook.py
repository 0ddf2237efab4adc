"""HTML that a notebook shows for an object: a small table, in the notebook's own colours.

Notebooks are sent to others and published, so an object shows only what a report would show.
"""

from collections.abc import Mapping
from html import escape


def notebook_table(title: str, facts: Mapping[str, str | None]) -> str:
    """Render names and values below a title; what is None is left out.

    >>> notebook_table("Budget", {"epsilon": "4", "spent": None})
    '<table><caption style="text-align:left;font-weight:600">Budget</caption>\
<tr><th style="text-align:left">epsilon</th><td style="text-align:left">4</td></tr></table>'
    """
    left = 'style="text-align:left"'
    rows = "".join(
        f"<tr><th {left}>{escape(name)}</th><td {left}>{escape(value)}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    caption = 'style="text-align:left;font-weight:600"'
    return f"<table><caption {caption}>{escape(title)}</caption>{rows}</table>"


def in_percent(value: object) -> str | None:
    """Format a metric; None where it is not known.

    >>> in_percent(81.25), in_percent(None)
    ('81.2 %', None)
    """
    return f"{value:.1f} %" if isinstance(value, int | float) else None


def in_short(value: float | None) -> str | None:
    """Format a number with four digits; None where it is not known.

    >>> in_short(1.43719), in_short(1e-6)
    ('1.437', '1e-06')
    """
    return None if value is None else f"{value:.4g}"
