"""A table with a line for each of several things, as HTML."""

from collections.abc import Mapping, Sequence
from html import escape

UNKNOWN = "-"


def lines_table(columns: Mapping[str, Sequence[str]]) -> str:
    """Columns side by side; one of which nothing is known is left out.

    >>> lines_table({"graph": ["a", "b"], "nodes": ["-", "-"]})
    '<table class="lines"><tr><th>graph</th></tr><tr><td>a</td></tr><tr><td>b</td></tr></table>'
    """
    known = {name: cells for name, cells in columns.items() if any(map(_is_known, cells))}
    head = "".join(f"<th>{escape(name)}</th>" for name in known)
    rows = (
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for cells in zip(*known.values(), strict=True)
    )
    return f'<table class="lines"><tr>{head}</tr>{"".join(rows)}</table>'


def number(value: float | None, form: str, unit: str = "") -> str:
    """A number, or that it is not known.

    >>> number(0.25, ".1f", " %"), number(None, "g")
    ('0.2 %', '-')
    """
    return UNKNOWN if value is None else f"{value:{form}}{unit}"


def _is_known(cell: str) -> bool:
    return cell not in (UNKNOWN, "")
