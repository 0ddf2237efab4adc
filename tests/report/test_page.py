"""The page is complete, self-contained, well formed, and written atomically."""

import base64
import csv
import io
import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.report.contents import Contents
from vesper.report.page import render, write_report

Make = Callable[..., Contents]
EMPTY = {"meta", "br", "line", "polyline", "circle", "rect"}


class Nesting(HTMLParser):
    """Refuses tags that do not close what was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self.open.append(tag)
        links = [value or "" for name, value in attrs if name in ("src", "href")]
        self.links += [link for link in links if not link.startswith("data:")]

    def handle_endtag(self, tag: str) -> None:
        assert tag in EMPTY or self.open.pop() == tag


@pytest.mark.parametrize("plan", ["certified", "edge-free", "paper", "none"])
@pytest.mark.parametrize("num_classes", [2, 3, 14])
def test_pages_are_well_formed_and_load_nothing(
    contents: Make, plan: str, num_classes: int
) -> None:
    page = render(contents(plan, num_classes=num_classes))
    nesting = Nesting()
    nesting.feed(page)
    assert nesting.open == []
    assert nesting.links == []
    assert not re.search(r"https?:|@import|url\(|<script", page)
    assert "<class" not in page, "names are escaped"
    assert "nan" not in re.sub(r"<[^>]*>", "", page).lower().split()


def test_a_certified_page_states_what_is_covered_and_what_is_not(contents: Make) -> None:
    page = render(contents())
    for words in (
        "Certified: epsilon 4, delta 1e-06 for every edge.",
        "66.0 %",
        "What is not covered",
        "this &amp; that",
        "Spent by this run",
        "operating system",
        "88.2 %",
        "without the graph (MLP)",
        "1,000 nodes",
        "label_messages",
    ):
        assert words in page
    assert "Not private" not in page


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("certified", "nothing that this run produced is protected"),
        ("paper", "does not hold against a label party that knows every batch"),
        ("none", "edges were used without noise"),
    ],
)
def test_a_page_without_privacy_warns(contents: Make, plan: str, words: str) -> None:
    page = render(contents(plan, secure=False))
    assert words in page
    assert 'class="verdict warn"' in page
    assert 'class="verdict good"' not in page


def test_test_nodes_come_first(contents: Make) -> None:
    report = contents(num_classes=2)
    assert report.evaluation is not None
    page = render(report.with_test(report.evaluation))
    assert page.index("ROC AUC, test") < page.index("ROC AUC, validation")
    assert "ROC curve" in page


def test_two_classes_have_curves_with_intervals_and_a_confusion_matrix(contents: Make) -> None:
    page = render(contents(num_classes=2))
    for words in ("ROC curve", "Precision and recall", "Confusion matrix", "95 % interval"):
        assert words in page
    assert page.count('class="interval"') == 2
    assert "ROC curve" not in render(contents(num_classes=3))


def test_the_page_names_the_run_its_data_and_date(contents: Make) -> None:
    page = render(contents(name="<first>", data="pay & co", date=0.0))
    assert "&lt;first&gt;" in page
    assert "pay &amp; co" in page
    assert "1970-01-01 00:00:00 UTC" in page
    assert "started" not in render(contents())


def test_downloads_have_the_facts_of_the_page(contents: Make) -> None:
    page = render(contents(name="first"))
    links = re.findall(r'download="([^"]+)" href="data:[^"]*;base64,([^"]+)"', page)
    files = {name: base64.b64decode(content).decode() for name, content in links}
    facts = json.loads(files["first.json"])
    assert facts["privacy"]["epsilon"] == 4.0
    assert facts["charges"] == ["gaussian release: noise std 2.4"]
    assert sum(map(sum, facts["evaluation"]["confusion"])) == 200
    rows = list(csv.reader(io.StringIO(files["first.csv"])))
    assert ["privacy", "epsilon", "4.0"] in rows
    assert ["settings privacy", "epsilon", "4.0"] in rows


def test_what_is_not_known_is_not_drawn(contents: Make) -> None:
    page = render(
        contents("edge-free", evaluation=None, stages=({"validation": 60.0},), chosen_stage=0)
    )
    assert "<svg" not in page


def test_the_page_is_written_atomically(
    contents: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(contents(), tmp_path / "report.html")
    first = path.read_text()

    def fail(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match=r"report.html: .* \(No space left on device\)"):
        write_report(contents("none"), path)
    assert path.read_text() == first
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_places_that_cannot_be_written(contents: Make, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file for the report, got a folder"):
        write_report(contents(), tmp_path)
    with pytest.raises(InputError, match="No such file or directory"):
        write_report(contents(), tmp_path / "missing" / "report.html")
