"""Links that save what a page shows as JSON or CSV; the files are in the page itself.

    <a download="NAME.json" href="data:application/json;base64,...">

Nothing is loaded from elsewhere, and a file has no fact that the page does not show.
"""

import base64
import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from vesper.session.result import without_non_finite

Row = Sequence[object]


def downloads(name: str, facts: Mapping[str, Any] | Sequence[Any], rows: Sequence[Row]) -> str:
    """Render a line with both links, as HTML.

    Args:
        name: of the files, without a suffix.
        facts: content of the JSON file; infinities and NaN become null.
        rows: content of the CSV file.
    """
    text = json.dumps(without_non_finite(facts), indent=2) + "\n"
    stem = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run"
    links = (
        _link(f"{stem}.json", "JSON", "application/json", text),
        _link(f"{stem}.csv", "CSV", "text/csv", csv_of(rows)),
    )
    return f'<p class="downloads">Download: {" ".join(links)}</p>'


def csv_of(rows: Sequence[Row]) -> str:
    r"""Write rows as CSV; texts that a spreadsheet would run as a formula are quoted.

    >>> csv_of([["name", "value"], ["=1+1", -2.5], ["empty", None]])
    "name,value\r\n'=1+1,-2.5\r\nempty,\r\n"
    """
    file = io.StringIO()
    csv.writer(file).writerows([[_cell(value) for value in row] for row in rows])
    return file.getvalue()


def _cell(value: object) -> object:
    is_formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if is_formula else value


def _link(name: str, label: str, kind: str, text: str) -> str:
    content = base64.b64encode(text.encode()).decode()
    href = f"data:{kind};charset=utf-8;base64,{content}"
    return f'<a download="{escape(name)}" href="{href}">{label}</a>'
