"""Every preset can be planned, and names of published scores match its cells."""

import math

import pytest

from vesper.errors import InputError
from vesper.study.parameter_grid import names_of, plan_cells
from vesper.study.presets import HISTOGRAMS, NAMES, find_grid, published_scores
from vesper.study.sets import find_sources


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_can_be_planned(name: str) -> None:
    grid = find_grid(name)[1]
    for small in (True, False):
        sources = find_sources(grid.datasets, data=None, small=small)
        planned = plan_cells(grid, sources, seeds=1, small=small)
        assert len(planned) == len(set(names_of(grid, small=small)))
        for each in planned:
            privacy = each.config.privacy
            if each.cell.method == "paper-gcn":  # it refuses anything else
                assert privacy.min_degree <= privacy.max_degree, each.cell.series
    assert any(each.cell.series == "vesper (certified)" for each in planned)


@pytest.mark.parametrize("name", [name for name in NAMES if name != HISTOGRAMS])
def test_every_published_score_has_a_cell(name: str) -> None:
    cells = set(names_of(find_grid(name)[1], small=False))
    assert set(published_scores(name)) - cells == set()


def test_methods_of_the_paper_are_run_with_its_settings() -> None:
    grid = find_grid("table-1")[1]
    sources = find_sources(grid.datasets, data=None, small=False)
    configs = {
        (each.cell.dataset, each.cell.series): each.config
        for each in plan_cells(grid, sources, seeds=1, small=False)
    }
    paper = configs["finance", "VESPER(GCN)"]
    assert (paper.run.width, paper.run.epochs, paper.privacy.max_degree) == (256, 2, 10)
    assert (paper.run.decoder, paper.privacy.min_degree) == ("gru", 3)
    assert configs["reddit", "GAP"].privacy.accounting == "theorem-1"
    assert configs["reddit", "VFGNN"].privacy.hops == 1
    assert configs["reddit", "MLP"].privacy.epsilon == math.inf


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown study 'tabel-1'; did you mean 'table-1'"):
        find_grid("tabel-1")
    with pytest.raises(InputError, match="expected a TOML file, got 'No such file"):
        find_grid("missing.toml")
