"""Figures of studies with some results or none."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vesper.study.cell import Cell, CellResult
from vesper.study.figures import write_figures
from vesper.study.findings import findings_in
from vesper.study.folder import Study, open_folder
from vesper.study.presets import NAMES, find_grid
from vesper.study.study_results import JOURNAL, append_line

TEXT = "{http://www.w3.org/2000/svg}text"


def draw(folder: Path, name: str, lines: list[CellResult]) -> tuple[ElementTree.Element, set[str]]:
    grid = find_grid(name)[1]
    sources = dict.fromkeys(grid.datasets, "simulated, 9 nodes")
    study = Study(name=name, small=False, grid=grid, seeds=2, sources=sources)
    with open_folder(folder, study):
        for line in lines:
            append_line(folder / JOURNAL, line)
    (path,) = write_figures(findings_in(folder), folder / "figures")
    tree = ElementTree.fromstring(path.read_text())
    return tree, {node.text or "" for node in tree.iter(TEXT)}


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_study_is_drawn(tmp_path: Path, name: str) -> None:
    draw(tmp_path, name, [])


def test_each_data_set_has_a_panel_with_the_mlp_as_a_level(
    tmp_path: Path, line: Callable[..., CellResult]
) -> None:
    ours = [
        line(Cell("reddit", "certified", epsilon, seed, "vesper (certified)"), test=50 + seed)
        for epsilon in (1.0, 4.0)
        for seed in (0, 1)
    ]
    mlp = line(Cell("reddit", "mlp", float("inf"), 0, "MLP"), test=40.0)
    tree, texts = draw(tmp_path, "trade-off", [*ours, mlp])
    assert {"Reddit (simulated, 9 nodes)", "MLP", "published", "∞", "32", "epsilon"} <= texts
    shapes = [node.get("class") or "" for node in tree.iter()]
    assert sum(name.startswith("band") for name in shapes) == 1
    assert sum(name.startswith("level") for name in shapes) == 2  # legend and panel
    assert sum(name.startswith("dot") for name in shapes) == 2


def test_an_ablation_has_a_panel_per_model_and_data_set(tmp_path: Path) -> None:
    _, texts = draw(tmp_path, "min-degree", [])
    assert "GCN-gru: Finance (simulated)" in texts
    assert {"D_min=10", "D_min=3", "vesper (certified)"} <= texts


def test_histograms_have_bars_and_published_counts(
    tmp_path: Path, line: Callable[..., CellResult]
) -> None:
    counts = (100.0,) * 51
    lines = [
        line(Cell("reddit", "certified", 0.1, 0, series), test=None, histogram=counts)
        for series in ("as in the paper", "vesper (certified)")
    ]
    tree, texts = draw(tmp_path, "degree-histograms", lines)
    assert {"as in the paper", "vesper (certified)", "published", "50"} <= texts
    shapes = [node.get("class") or "" for node in tree.iter()]
    assert shapes.count("band c0") == 51
