"""Files in links: complete, named safely, and harmless in a spreadsheet."""

import base64
import csv
import io
import json
import math
import re

from vesper.report.downloads import csv_of, downloads


def files_of(html: str) -> dict[str, str]:
    """Decode the files in a page by their names."""
    links = re.findall(r'download="([^"]+)" href="data:[^"]*;base64,([^"]+)"', html)
    return {name: base64.b64decode(content).decode() for name, content in links}


def test_both_files_hold_the_facts() -> None:
    files = files_of(downloads("my run", {"epsilon": math.inf, "who": "<b>"}, [["a"], [1.5]]))
    assert set(files) == {"my-run.json", "my-run.csv"}
    assert json.loads(files["my-run.json"]) == {"epsilon": None, "who": "<b>"}
    assert list(csv.reader(io.StringIO(files["my-run.csv"]))) == [["a"], ["1.5"]]


def test_names_of_files_have_no_path_and_no_markup() -> None:
    names = files_of(downloads('../"><script>', {}, [["a"]]))
    assert len(names) == 2
    assert not any(letter in name for name in names for letter in '"<>/')


def test_a_spreadsheet_runs_no_formula() -> None:
    assert csv_of([["=cmd()", "@x", -1.0]]) == "'=cmd(),'@x,-1.0\r\n"
